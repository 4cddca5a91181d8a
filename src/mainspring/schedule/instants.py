"""Instants: a list of points in time, each fired once; and how one is read, checked and written."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from mainspring.schedule.faults import broken_rule, fault
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.zones import instant_of, wall_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from zoneinfo import ZoneInfo

    from mainspring.schedule.timeline import Setting, Timeline

MAX_INSTANTS = 10_000
YEARS = f"the years {EARLIEST.year} and {LATEST.year}"
NEARER = f"Schedules end with the year {LATEST.year - 1}: give an instant before {LATEST:%Y-%m-%d}."
DATES = "2026-12-24T18:00:00, also with Z or an offset"


@dataclass(frozen=True)
class Instants:
    """Sorted, without doubles, in UTC."""

    at: tuple[datetime, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.at) <= MAX_INSTANTS:
            raise broken_rule(
                "instants", f"{len(self.at)} instants", f"must be 1 to {MAX_INSTANTS}", code="schedule-too-large"
            )
        for instant in self.at:
            check_instant(instant, "instants")
        object.__setattr__(self, "at", tuple(sorted({instant.astimezone(UTC) for instant in self.at})))

    @staticmethod
    def of(*instants: datetime) -> Instants:
        return Instants(instants)

    @cached_property
    def text(self) -> str:
        return ", ".join(instant_text(instant) for instant in self.at)

    def timeline(self, setting: Setting) -> Timeline:
        return ListedTimeline(self.at)


class ListedTimeline:
    """A sorted list of instants."""

    def __init__(self, instants: Iterable[datetime]) -> None:
        self._instants = tuple(instants)

    def next_after(self, instant: datetime) -> datetime | None:
        at = bisect_right(self._instants, instant)
        return self._instants[at] if at < len(self._instants) else None

    def prev_before(self, instant: datetime) -> datetime | None:
        at = bisect_left(self._instants, instant)
        return self._instants[at - 1] if at > 0 else None


def instant_text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def check_instant(value: object, field: str) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise broken_rule(field, value, "must be a datetime with a time zone", code="invalid-instant")
    if not EARLIEST <= value <= LATEST:
        raise broken_rule(field, value, f"must be between {YEARS}", code="invalid-instant", hint=NEARER)
    return value.astimezone(UTC)


def read_instant(text: str, at: int, piece: str, zone: ZoneInfo, *, allowed: str = DATES) -> datetime:
    """An instant, or a wall of the zone, which has to exist there; the first of two."""
    found = read_datetime(piece)
    if found is None:
        raise fault(text, at, f"{piece.strip()[:40]!r} is no date and time", allowed=allowed, code="invalid-instant")
    if not EARLIEST.year <= found.year <= LATEST.year:
        problem = f"{piece.strip()[:40]} is too far away"
        raise fault(text, at, problem, allowed=f"dates between {YEARS}", code="invalid-instant")
    if found.tzinfo is not None:
        return found.astimezone(UTC)
    instant = instant_of(zone, found)
    if wall_of(zone, instant) != found:
        problem = f"{found} does not exist in {zone.key}: the clock jumps over it"
        offers = [
            text[:at] + piece.replace(piece.strip(), wall_of(zone, instant).isoformat()) + text[at + len(piece) :]
        ]
        raise fault(text, at, problem, offers=offers, code="invalid-instant")
    return instant


def read_datetime(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip()) if len(text) <= 40 else None
    except ValueError:
        return None
