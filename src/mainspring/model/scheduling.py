"""Schedules as people see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.model.lifecycle import State


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"  # it has no instant left


def checked_state(state: object) -> ScheduleState:
    try:
        return ScheduleState(state)  # type: ignore[arg-type]  # whatever was given
    except ValueError:
        raise InvalidInput(
            f"states contains {quoted(state)}; each must be one of {', '.join(ScheduleState)}.",
            code="invalid-state",
            field="states",
            value=quoted(state),
            rule=f"must be one of {', '.join(ScheduleState)}",
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSummary:
    """A schedule, where it stands, and who touched it last."""

    id: UUID
    name: str
    job: str
    version: int
    when: str  # the canonical text
    words: str  # what it means, in English
    zone: str
    state: ScheduleState
    next_at: datetime | None  # the next nominal instant; None while it is paused, or over
    next_due_at: datetime | None  # and when its run may start, spread included
    payload: Any
    options: dict[str, Any]
    tags: list[str]
    catch_up: str
    catch_up_window: timedelta
    overlap: str
    pause_after_failures: int | None  # so many in a row
    is_declared: bool  # in an application's code
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    paused_until: datetime | None
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class PutOutcome(StrEnum):
    """What it took to make a schedule what was asked for."""

    CREATED = "created"
    CHANGED = "changed"  # it has a new version
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class PutReport:
    """How many schedules were made, got a new version, or were left alone, because they were what was asked for."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePage:
    """Some schedules, and where the next page begins: None if this is the last one."""

    schedules: Sequence[ScheduleSummary]
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarSummary:
    """A stored calendar, which schedules use it, and who touched it last."""

    name: str
    version: int
    days: dict[str, Any]  # dates, ranges, yearly, weekdays, windows: what it has of these, as JSON says it
    used_by: list[str]  # the first hundred schedules, by name
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSummary:
    """A scheduler that lives, and how many lanes it looks after."""

    id: UUID
    host: str
    pid: int
    version: str
    started_at: datetime
    silent_seconds: float
    lanes: int


class OccurrenceOutcome(StrEnum):
    """What an instant of a schedule became."""

    FIRED = "fired"
    COLLAPSED = "collapsed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceRecord:
    """One instant of a schedule, or several in a row with one fate, and what became of it."""

    nominal_at: datetime
    last_at: datetime  # of several in a row
    outcome: OccurrenceOutcome
    version: int
    decided_at: datetime
    run_id: UUID | None = None  # the one that stands for it now: the last rerun, if there was one
    run_state: State | None = None  # now; None if there is no run, or it is no longer kept
    first_run_id: UUID | None = None  # what it became at first, if that was run again as another run
    due_at: datetime | None = None
    reason: str | None = None
    late: timedelta | None = None  # how long after it was due it was decided


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleVersion:
    """What a schedule was for a while."""

    version: int
    job: str
    when: str
    words: str
    zone: str
    payload: Any
    options: dict[str, Any]
    tags: list[str] = field(default_factory=list)
    catch_up: str
    catch_up_window: timedelta
    overlap: str
    pause_after_failures: int | None  # so many in a row
    changed_at: datetime
    changed_by: str
    replaced_at: datetime | None = None
    is_deleted: bool = False
