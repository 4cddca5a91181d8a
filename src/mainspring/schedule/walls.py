"""Lays a pattern of walls over the segments of a zone: which instants it means, by policy."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from mainspring.schedule.daylight import GapPolicy, RepeatPolicy
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.zones import NO_SHIFT, Segment, instant_of, segment_at

if TYPE_CHECKING:
    from mainspring.schedule.timeline import Setting

TICK = timedelta(microseconds=1)
MAX_YEARS = 400  # how far a search goes: the calendar has repeated itself by then


class WallPattern(Protocol):
    """A set of walls in order; both answers are strict."""

    def next_wall(self, wall: datetime) -> datetime | None: ...

    def prev_wall(self, wall: datetime) -> datetime | None: ...


class WallTimeline:
    """The instants of a pattern in a zone.

    Within a segment, walls and instants go in step; only where segments meet there is something to decide. The walls of
    a gap belong to the segment after it; of the two appearances of a repeated wall, the policy drops one or none.
    """

    def __init__(self, pattern: WallPattern, setting: Setting, *, follows_elapsed_time: bool = False) -> None:
        self._pattern, self._zone = pattern, setting.zone
        self._gap, self._repeat = setting.gap, setting.repeat
        if self._gap is GapPolicy.AS_CRON:
            self._gap = GapPolicy.SKIP if follows_elapsed_time else GapPolicy.RUN_AFTER
        if self._repeat is RepeatPolicy.AS_CRON:
            self._repeat = RepeatPolicy.BOTH if follows_elapsed_time else RepeatPolicy.FIRST

    def next_after(self, instant: datetime) -> datetime | None:
        if instant >= LATEST:
            return None
        segment = segment_at(self._zone, instant)
        found = self._first_in(segment, segment.wall(instant))
        last_year = instant.year + MAX_YEARS
        while found is None:
            coming = self._pattern.next_wall(segment.wall(segment.end) + min(segment.shift_out, NO_SHIFT) - TICK)
            if coming is None or coming.year > last_year:
                return None
            segment = max(segment_at(self._zone, segment.end), segment_at(self._zone, instant_of(self._zone, coming)))
            found = self._first_in(segment, segment.wall(segment.start) - TICK)
        return segment.instant(found)

    def prev_before(self, instant: datetime) -> datetime | None:
        if instant <= EARLIEST:
            return None
        segment = segment_at(self._zone, instant - TICK)
        found = self._last_in(segment, segment.wall(instant))
        first_year = instant.year - MAX_YEARS
        while found is None:
            coming = self._pattern.prev_wall(segment.wall(segment.start) - segment.shift_in)
            if coming is None or coming.year < first_year:
                return None
            latest = max(instant_of(self._zone, coming, fold=fold) for fold in (0, 1))
            segment = min(segment_at(self._zone, segment.start - TICK), segment_at(self._zone, latest))
            found = self._last_in(segment, segment.wall(segment.end))
        return segment.instant(found)

    def _first_in(self, segment: Segment, after: datetime) -> datetime | None:
        """The first wall of the segment that fires after another, gap included."""
        begin, end = self._walls(segment)
        found = self._pattern.next_wall(max(after, begin - TICK))
        if found is not None and found >= end:
            found = None
        if segment.shift_in > NO_SHIFT and self._gap is not GapPolicy.SKIP:
            late = self._first_out_of_gap(begin, segment.shift_in, after)
            return min(filter(None, (found, late)), default=None)
        return found

    def _first_out_of_gap(self, begin: datetime, gap: timedelta, after: datetime) -> datetime | None:
        if self._gap is GapPolicy.SHIFT:
            missed = self._pattern.next_wall(max(after, begin - TICK) - gap)
            return missed + gap if missed is not None and missed < begin else None
        missed = self._pattern.next_wall(begin - gap - TICK) if after < begin else None
        return begin if missed is not None and missed < begin else None

    def _last_in(self, segment: Segment, before: datetime) -> datetime | None:
        """The last wall of the segment that fires before another, gap included."""
        begin, end = self._walls(segment)
        found = self._pattern.prev_wall(min(before, end))
        if found is not None and found < begin:
            found = None
        if segment.shift_in > NO_SHIFT and self._gap is not GapPolicy.SKIP:
            late = self._last_out_of_gap(begin, segment.shift_in, before)
            return max(filter(None, (found, late)), default=None)
        return found

    def _last_out_of_gap(self, begin: datetime, gap: timedelta, before: datetime) -> datetime | None:
        missed = self._pattern.prev_wall(min(before - gap, begin) if self._gap is GapPolicy.SHIFT else begin)
        if missed is None or missed < begin - gap or before <= begin:
            return None
        return missed + gap if self._gap is GapPolicy.SHIFT else begin

    def _walls(self, segment: Segment) -> tuple[datetime, datetime]:
        """From which wall to which the segment fires: without the appearance of repeated walls that is dropped."""
        begin, end = segment.wall(segment.start), segment.wall(segment.end)
        if self._repeat is RepeatPolicy.FIRST and segment.shift_in < NO_SHIFT:
            begin -= segment.shift_in
        if self._repeat is RepeatPolicy.SECOND and segment.shift_out < NO_SHIFT:
            end += segment.shift_out
        return begin, end
