"""Time zones from the pinned tzdata package, never from the system, whose copies differ; and their segments."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata

from mainspring.errors import shortened
from mainspring.schedule.faults import broken_rule

TZDATA_VERSION: str = tzdata.IANA_VERSION
NO_SHIFT = timedelta(0)
_STEP = timedelta(days=7)  # no zone has ever changed its mind twice in a week
_REACH = timedelta(days=2)  # what a jump swallows or shifts is nearer to it than that: clocks jump by a day at most
_FIRST_WALL, _LAST_WALL = datetime.min, datetime.max  # noqa: DTZ901 - walls
_SECOND, _HOUR = timedelta(seconds=1), timedelta(hours=1)


class Segment(NamedTuple):
    """A stretch of time with one offset from UTC, about a year long at most."""

    start: datetime
    end: datetime
    offset: timedelta
    shift_in: timedelta  # how far the wall clock jumps at the start: forward, a gap; back, a repeat; mostly not at all
    shift_out: timedelta  # how far it jumps at the end

    def wall(self, instant: datetime) -> datetime:
        return (instant + self.offset).replace(tzinfo=None)

    def instant(self, wall: datetime) -> datetime:
        return wall.replace(tzinfo=UTC) - self.offset


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    return frozenset((resources.files("tzdata") / "zones").read_text().split())


def zone_named(name: str) -> ZoneInfo:
    """The zone of that IANA name; an unknown one suggests close names."""
    if not isinstance(name, str) or name not in zone_names():  # also keeps names like "../../etc" away from the files
        raise broken_rule("zone", name, "must be an IANA time zone", code="unknown-zone", hint=_suggestion(name))
    return _zone(name)


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    with (resources.files("tzdata") / "zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _suggestion(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= 60:
        return "Names look like 'Europe/Berlin' or 'UTC'."
    wanted = name.replace(" ", "_").lower()
    close = [each for each in sorted(zone_names()) if each.lower() == wanted or each.lower().endswith("/" + wanted)]
    by_lower = {each.lower(): each for each in zone_names()}
    close += [by_lower[each] for each in difflib.get_close_matches(wanted, by_lower, n=3, cutoff=0.7)]
    found = list(dict.fromkeys(close))[:3]
    return f"Did you mean {' or '.join(map(repr, found))}?" if found else "Names look like 'Europe/Berlin' or 'UTC'."


def segment_at(zone: ZoneInfo, instant: datetime) -> Segment:
    segments = segments_of(zone, instant.year)
    if instant < segments[0].start:
        segments = segments_of(zone, instant.year - 1)
    for segment in segments:
        if instant < segment.end:
            return segment
    raise AssertionError(f"{shortened(instant)} is in no segment of its year")


def instant_of(zone: ZoneInfo, wall: datetime, *, fold: int = 0) -> datetime:
    """The instant a wall names; the first of two; in a gap, as far after its beginning as the wall says."""
    return in_utc(wall.replace(tzinfo=zone, fold=fold))


def in_utc(instant: datetime) -> datetime:
    """The same instant in UTC; beyond the years 1 and 9999, the end of the calendar."""
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return (_FIRST_WALL if instant.year == 1 else _LAST_WALL).replace(tzinfo=UTC)


def hour_around(zone: ZoneInfo, instant: datetime) -> tuple[datetime, datetime]:
    """From when to when clocks show the hour that they show at an instant, or to the jump that cuts it."""
    segment = segment_at(zone, instant)
    begin = segment.instant(segment.wall(instant).replace(minute=0, second=0, microsecond=0))
    return max(begin, segment.start), min(begin + _HOUR, segment.end)


def first_instant_at(zone: ZoneInfo, wall: datetime) -> datetime:
    """The first instant at which clocks show a wall; in a gap, its end."""
    instant = instant_of(zone, wall)
    return instant if wall_of(zone, instant) == wall else segment_at(zone, instant).start


def wall_of(zone: ZoneInfo, instant: datetime) -> datetime:
    """What clocks show; beyond the years 1 and 9999, the end of the calendar."""
    try:
        return instant.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        return _FIRST_WALL if instant.year == 1 else _LAST_WALL


@lru_cache(maxsize=4096)
def segments_of(zone: ZoneInfo, year: int) -> tuple[Segment, ...]:
    """The segments of a year (of UTC). zoneinfo does not tell its transitions: they are found by looking every week."""
    start, end = _new_year(zone, year), _new_year(zone, year + 1)
    changes = [start, *_changes(zone, start, end), end]
    found: list[Segment] = []
    for begin, stop in pairwise(changes):
        offset = _offset(zone, begin)
        shift_in = offset - _offset(zone, begin - _SECOND)
        found.append(Segment(begin, stop, offset, shift_in, _offset(zone, stop) - offset))
    return tuple(found)


def _new_year(zone: ZoneInfo, year: int) -> datetime:
    """Where the segments of a year begin: a little later if the clock jumps then, as Kiritimati's did in 1994.

    What a gap swallowed belongs to the segment after it, and has to find room there.
    """
    start = datetime(year, 1, 1, tzinfo=UTC)
    while _offset(zone, start - _REACH) != _offset(zone, start + _REACH):
        start += _REACH
    return start


def _changes(zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    at, before = start, _offset(zone, start)
    while at < end:
        since, at = at, min(at + _STEP, end)
        after = _offset(zone, at)
        if after != before:
            change = _change_between(zone, since, at, before)
            if change < end:
                found.append(change)
            before = after
    return found


def _change_between(zone: ZoneInfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    seconds_low, seconds_high = 0, int((high - low).total_seconds())
    while seconds_high - seconds_low > 1:
        middle = (seconds_low + seconds_high) // 2
        if _offset(zone, low + timedelta(seconds=middle)) == before:
            seconds_low = middle
        else:
            seconds_high = middle
    return low + timedelta(seconds=seconds_high)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset
