"""What every form of a schedule becomes: something that knows the instant after and the instant before another.

Also by which policies walls that never come or come twice are read, and how long an answer may be searched for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from mainspring.errors import InvalidSchedule

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2500, 1, 1, tzinfo=UTC)
MAX_STEPS = 10_000  # a few microseconds each


class GapPolicy(StrEnum):
    """The clock jumps from 02:00 to 03:00; what becomes of 02:30?"""

    AS_CRON = "as-cron"  # Debian cron's rule: fixed times run right after the gap; wildcards follow elapsed time
    RUN_AFTER = "run-after"  # at 03:00, once for the whole gap
    SHIFT = "shift"  # at 03:30
    SKIP = "skip"  # not at all


class RepeatPolicy(StrEnum):
    """The clock jumps from 03:00 to 02:00; which 02:30 is meant?"""

    AS_CRON = "as-cron"  # Debian cron's rule: fixed times run once, the first time; wildcards follow elapsed time
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Timeline(Protocol):
    """A set of instants in order. Both answers are strict: never the instant that was asked about."""

    def next_after(self, instant: datetime) -> datetime | None: ...

    def prev_before(self, instant: datetime) -> datetime | None: ...

    def __hash__(self) -> int: ...  # by identity: answers are remembered for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a form has to know besides itself to become a timeline."""

    zone: ZoneInfo
    gap: GapPolicy = GapPolicy.AS_CRON
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON
    starts_at: datetime | None = None  # where intervals without an anchor begin
    job: str = ""  # what `H` hashes


class _Search(threading.local):
    def __init__(self) -> None:
        self.left = MAX_STEPS
        self.counted: set[int] = set()


_search = _Search()


def begin_search() -> None:
    _search.left = MAX_STEPS
    _search.counted.clear()


def step(count: int = 1) -> None:
    """One more candidate, day of a calendar or part of a year was looked at in vain."""
    _search.left -= count
    if _search.left < 0:
        raise InvalidSchedule(
            f"Nothing was found in {MAX_STEPS:,} steps: rules, exclusions or calendars leave next to nothing of the"
            " schedule, or are too many.",
            code="schedule-too-sparse",
            hint="Say when it shall run rather than when not.",
            field="schedule",
            rule="an instant must be found in so many steps",
        )


def step_once(who: object, count: int) -> None:
    """Steps whose outcome is remembered: a search that needs it has to be able to afford them, but pays only once."""
    if id(who) not in _search.counted:
        _search.counted.add(id(who))
        step(count)


def steps_taken() -> int:
    """How many steps the last search of this thread took."""
    return MAX_STEPS - _search.left
