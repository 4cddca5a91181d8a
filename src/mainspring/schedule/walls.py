"""Walls: times of day, lengths of months, and a pattern of walls laid over the segments of a zone.

Which instants a pattern means there is decided by the policies for gaps and repeats.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from mainspring.schedule.timeline import EARLIEST, LATEST, GapPolicy, RepeatPolicy
from mainspring.schedule.zones import NO_SHIFT, Segment, instant_of, segment_at

if TYPE_CHECKING:
    from mainspring.schedule.timeline import Setting

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
TICK = timedelta(microseconds=1)
Day = TypeVar("Day", bound=date)


def month_length(year: int, month: int) -> int:
    if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0):
        return 29
    return _LENGTHS[month - 1]


def months_after(day: Day, months: int) -> Day:
    """So many months later, on the same day of the month or on the last day of a shorter one."""
    year, month = divmod(12 * day.year + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, month_length(year, month + 1)))


class DayTimes(NamedTuple):
    """Three sorted tuples, none of them empty."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    @property
    def first(self) -> time:
        return time(self.hours[0], self.minutes[0], self.seconds[0])

    @property
    def last(self) -> time:
        return time(self.hours[-1], self.minutes[-1], self.seconds[-1])

    def after(self, wall: datetime) -> time | None:
        """The first time of day after that of a wall."""
        (hours, minutes, seconds), hour, minute = self, wall.hour, wall.minute
        if hour in hours:
            if minute in minutes and (at := bisect_right(seconds, wall.second)) < len(seconds):
                return time(hour, minute, seconds[at])
            if (at := bisect_right(minutes, minute)) < len(minutes):
                return time(hour, minutes[at], seconds[0])
        if (at := bisect_right(hours, hour)) < len(hours):
            return time(hours[at], minutes[0], seconds[0])
        return None

    def before(self, wall: datetime) -> time | None:
        """The last time of day before that of a wall."""
        (hours, minutes, seconds), hour, minute = self, wall.hour, wall.minute
        if hour in hours:
            if minute in minutes and (at := bisect_left(seconds, wall.second + (wall.microsecond > 0))) > 0:
                return time(hour, minute, seconds[at - 1])
            if (at := bisect_left(minutes, minute)) > 0:
                return time(hour, minutes[at - 1], seconds[-1])
        if (at := bisect_left(hours, hour)) > 0:
            return time(hours[at - 1], minutes[-1], seconds[-1])
        return None


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
        while found is None:
            coming = self._pattern.next_wall(segment.wall(segment.end) + min(segment.shift_out, NO_SHIFT) - TICK)
            if coming is None or coming.year > LATEST.year:
                return None
            segment = max(segment_at(self._zone, segment.end), segment_at(self._zone, instant_of(self._zone, coming)))
            found = self._first_in(segment, segment.wall(segment.start) - TICK)
        return segment.instant(found)

    def prev_before(self, instant: datetime) -> datetime | None:
        if instant <= EARLIEST:
            return None
        segment = segment_at(self._zone, instant - TICK)
        found = self._last_in(segment, segment.wall(instant))
        while found is None:
            coming = self._pattern.prev_wall(segment.wall(segment.start) - segment.shift_in)
            if coming is None or coming.year < EARLIEST.year - 1:
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
