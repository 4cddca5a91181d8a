"""What calendars took away or moved: found by asking the same schedule without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from mainspring.schedule.calendar import BlackoutPolicy, CalendarUse, Use

if TYPE_CHECKING:
    from collections.abc import Set
    from datetime import datetime

    from mainspring.schedule.schedule import Schedule

MAX_LOOKED_AT = 5_000
TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Neighbouring occurrences that one calendar took away."""

    first_at: datetime
    count: int
    calendar: str
    reason: str
    is_complete: bool = True


def changes_by_calendar(
    schedule: Schedule, after: datetime, until: datetime, job: str, instants: Set[datetime]
) -> tuple[list[Dropped], dict[datetime, Dropped]]:
    """What was dropped, in groups; and what was moved, by the instant it was moved to."""
    if not schedule.calendars:
        return [], {}
    plain = replace(schedule, calendars=(), max_runs=None, spread=None)
    wanted = [each.nominal_at for each in islice(plain.between(after + TICK, until + TICK, job=job), MAX_LOOKED_AT)]
    groups = _groups(schedule, wanted, instants, job)
    moves = any(use.then is BlackoutPolicy.MOVE for use in schedule.calendars)
    moved_to = sorted(instants - set(wanted)) if moves else []
    moved = {at: gone for at in moved_to if (gone := _moved_to(at, groups)) is not None}
    dropped = [gone for gone in groups if gone not in moved.values()]
    return [_marked(gone, is_complete=len(wanted) < MAX_LOOKED_AT or gone is not groups[-1]) for gone in dropped], moved


def _groups(schedule: Schedule, wanted: list[datetime], instants: Set[datetime], job: str) -> list[Dropped]:
    """Neighbours that are missing, with the calendar that took the first of them."""
    found: list[Dropped] = []
    is_open = False
    for at in wanted:
        if at in instants:
            is_open = False
            continue
        if is_open and found:
            found[-1] = replace(found[-1], count=found[-1].count + 1)
            continue
        use = _taker(schedule, at, job)
        if use is not None:
            found.append(Dropped(first_at=at, count=1, calendar=use.calendar.name, reason=_reason(use)))
            is_open = True
    return found


def _taker(schedule: Schedule, at: datetime, job: str) -> CalendarUse | None:
    """The calendar without which it would fire."""
    for use in schedule.calendars:
        if not replace(schedule, calendars=(use,), max_runs=None, spread=None).is_due(at, job=job):
            return use
    return None


def _reason(use: CalendarUse) -> str:
    match use.use:
        case Use.INCLUDE:
            return f"not within the calendar {use.calendar.name}"
        case Use.EXCLUDE:
            return f"within the calendar {use.calendar.name}"
        case Use.BLACKOUT:
            moves = use.then is BlackoutPolicy.MOVE
            return f"within the blackout {use.calendar.name}" + (", which runs once at its end" if moves else "")


def _moved_to(at: datetime, groups: list[Dropped]) -> Dropped | None:
    """The last group before the end of a blackout is what was moved there."""
    before = [gone for gone in groups if gone.first_at < at]
    return before[-1] if before else None


def _marked(gone: Dropped, *, is_complete: bool) -> Dropped:
    return replace(gone, is_complete=is_complete)
