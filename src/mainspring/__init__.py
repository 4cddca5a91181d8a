"""Mainspring: a distributed job scheduler and executor on PostgreSQL. The public names; each is imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainspring.app.chunk_job import ChunkJob
    from mainspring.app.flow import Flow, FlowHandle, Node
    from mainspring.app.handle import Handle
    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.control.watching import RunUpdate
    from mainspring.errors import MainspringError
    from mainspring.model.admission import Explanation, Gate
    from mainspring.model.backlog import Backlog, BacklogNotice, BacklogStatus
    from mainspring.model.breaker import Breaker, BreakerState, BreakerStatus
    from mainspring.model.chain import After, Chain
    from mainspring.model.concurrency import Limit, LimitStatus
    from mainspring.model.context import Context
    from mainspring.model.filter import RunFilter
    from mainspring.model.flow import FlowState, FlowStatus
    from mainspring.model.lifecycle import Outcome, State
    from mainspring.model.listing import Page, RunSummary
    from mainspring.model.occurrence import RunOccurrence
    from mainspring.model.policy import BackOff, Jitter, RetryPolicy
    from mainspring.model.report import LogLine, Progress
    from mainspring.model.resource import Resource
    from mainspring.model.run import Attempt, Run
    from mainspring.model.scheduling import (
        CalendarSummary,
        OccurrenceRecord,
        SchedulePage,
        ScheduleState,
        ScheduleSummary,
    )
    from mainspring.model.steering import Cancel, Fail, Retry, Snooze
    from mainspring.model.unique import Debounce, Unique
    from mainspring.schedule.calendar import Calendar
    from mainspring.schedule.deciding import CatchUp
    from mainspring.schedule.schedule import Schedule

__all__ = [
    "After",
    "Attempt",
    "BackOff",
    "Backlog",
    "BacklogNotice",
    "BacklogStatus",
    "Breaker",
    "BreakerState",
    "BreakerStatus",
    "Calendar",
    "CalendarSummary",
    "Cancel",
    "CatchUp",
    "Chain",
    "ChunkJob",
    "Context",
    "Debounce",
    "Explanation",
    "Fail",
    "Flow",
    "FlowHandle",
    "FlowState",
    "FlowStatus",
    "Gate",
    "Handle",
    "Jitter",
    "Job",
    "Limit",
    "LimitStatus",
    "LogLine",
    "Mainspring",
    "MainspringError",
    "Node",
    "OccurrenceRecord",
    "Outcome",
    "Page",
    "Progress",
    "Resource",
    "Retry",
    "RetryPolicy",
    "Run",
    "RunFilter",
    "RunOccurrence",
    "RunSummary",
    "RunUpdate",
    "Schedule",
    "SchedulePage",
    "ScheduleState",
    "ScheduleSummary",
    "Snooze",
    "State",
    "Unique",
]

_HOMES = {
    "After": "mainspring.model.chain",
    "Attempt": "mainspring.model.run",
    "BackOff": "mainspring.model.policy",
    "Backlog": "mainspring.model.backlog",
    "BacklogNotice": "mainspring.model.backlog",
    "BacklogStatus": "mainspring.model.backlog",
    "Breaker": "mainspring.model.breaker",
    "BreakerState": "mainspring.model.breaker",
    "BreakerStatus": "mainspring.model.breaker",
    "Calendar": "mainspring.schedule.calendar",
    "CalendarSummary": "mainspring.model.scheduling",
    "Cancel": "mainspring.model.steering",
    "CatchUp": "mainspring.schedule.deciding",
    "Chain": "mainspring.model.chain",
    "ChunkJob": "mainspring.app.chunk_job",
    "Context": "mainspring.model.context",
    "Debounce": "mainspring.model.unique",
    "Explanation": "mainspring.model.admission",
    "Fail": "mainspring.model.steering",
    "Flow": "mainspring.app.flow",
    "FlowHandle": "mainspring.app.flow",
    "FlowState": "mainspring.model.flow",
    "FlowStatus": "mainspring.model.flow",
    "Gate": "mainspring.model.admission",
    "Handle": "mainspring.app.handle",
    "Jitter": "mainspring.model.policy",
    "Job": "mainspring.app.job",
    "Limit": "mainspring.model.concurrency",
    "LimitStatus": "mainspring.model.concurrency",
    "LogLine": "mainspring.model.report",
    "Mainspring": "mainspring.app.mainspring",
    "MainspringError": "mainspring.errors",
    "Node": "mainspring.app.flow",
    "OccurrenceRecord": "mainspring.model.scheduling",
    "Outcome": "mainspring.model.lifecycle",
    "Page": "mainspring.model.listing",
    "Progress": "mainspring.model.report",
    "Resource": "mainspring.model.resource",
    "Retry": "mainspring.model.steering",
    "RetryPolicy": "mainspring.model.policy",
    "Run": "mainspring.model.run",
    "RunFilter": "mainspring.model.filter",
    "RunOccurrence": "mainspring.model.occurrence",
    "RunSummary": "mainspring.model.listing",
    "RunUpdate": "mainspring.control.watching",
    "Schedule": "mainspring.schedule.schedule",
    "SchedulePage": "mainspring.model.scheduling",
    "ScheduleState": "mainspring.model.scheduling",
    "ScheduleSummary": "mainspring.model.scheduling",
    "Snooze": "mainspring.model.steering",
    "State": "mainspring.model.lifecycle",
    "Unique": "mainspring.model.unique",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mainspring' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
