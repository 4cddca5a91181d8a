"""Mainspring: a distributed job scheduler and executor on PostgreSQL. The public names; each is imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainspring.app.handle import Handle
    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.errors import MainspringError
    from mainspring.model.context import Context
    from mainspring.model.filter import RunFilter
    from mainspring.model.lifecycle import Outcome, State
    from mainspring.model.listing import Page, RunSummary
    from mainspring.model.policy import RetryPolicy
    from mainspring.model.run import Attempt, Run

__all__ = [
    "Attempt",
    "Context",
    "Handle",
    "Job",
    "Mainspring",
    "MainspringError",
    "Outcome",
    "Page",
    "RetryPolicy",
    "Run",
    "RunFilter",
    "RunSummary",
    "State",
]

_HOMES = {
    "Attempt": "mainspring.model.run",
    "Context": "mainspring.model.context",
    "Handle": "mainspring.app.handle",
    "Job": "mainspring.app.job",
    "Mainspring": "mainspring.app.mainspring",
    "MainspringError": "mainspring.errors",
    "Outcome": "mainspring.model.lifecycle",
    "Page": "mainspring.model.listing",
    "RetryPolicy": "mainspring.model.policy",
    "Run": "mainspring.model.run",
    "RunFilter": "mainspring.model.filter",
    "RunSummary": "mainspring.model.listing",
    "State": "mainspring.model.lifecycle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mainspring' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
