"""Short ways to ask schedules in tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mainspring.schedule.text import parse
from mainspring.schedule.zones import wall_of

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Occurrence, Schedule


def utc(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def walls(schedule: Schedule, begin: str, end: str, *, job: str = "") -> list[str]:
    """What clocks in the schedule's zone show at its occurrences between two instants."""
    return [_shown(schedule, each) for each in schedule.between(utc(begin), utc(end), job=job)]


def walls_before(schedule: Schedule, end: str, count: int) -> list[str]:
    """The same for the last occurrences before an instant, latest first."""
    found: list[str] = []
    at = schedule.prev_before(utc(end))
    while at is not None and len(found) < count:
        found.append(_shown(schedule, at))
        at = schedule.prev_before(at.nominal_at)
    return found


def _shown(schedule: Schedule, found: Occurrence) -> str:
    return f"{wall_of(schedule.zone_info, found.nominal_at):%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def instants(schedule: Schedule, begin: str, end: str, *, job: str = "") -> list[str]:
    found = schedule.between(utc(begin), utc(end), job=job)
    return [f"{each.nominal_at:%Y-%m-%d %H:%M:%S}".removesuffix(":00") for each in found]


def next_wall(text: str, after: str, zone: str = "UTC") -> str | None:
    """What the clock shows at the first occurrence after a wall (or an instant with offset)."""
    schedule = parse(text, zone=zone)
    asked = datetime.fromisoformat(after)
    asked = asked if asked.tzinfo else asked.replace(tzinfo=schedule.zone_info)
    found = schedule.next_after(asked)
    if found is None:
        return None
    return _shown(schedule, found)
