"""How long an answer may be searched for: exclusions and calendars can leave next to nothing of a schedule."""

from __future__ import annotations

import threading

from mainspring.errors import InvalidSchedule

MAX_STEPS = 10_000  # a few microseconds each


class _Search(threading.local):
    left = MAX_STEPS


_search = _Search()


def begin_search() -> None:
    _search.left = MAX_STEPS


def step() -> None:
    """One more candidate, or day of a calendar, was looked at in vain."""
    _search.left -= 1
    if _search.left < 0:
        raise InvalidSchedule(
            f"Nothing was found in {MAX_STEPS:,} steps: exclusions or calendars leave next to nothing of the schedule.",
            code="schedule-too-sparse",
            hint="Say when it shall run rather than when not.",
            field="schedule",
            rule="an instant must be found in so many steps",
        )
