"""Times of day: every combination of some hours, minutes and seconds, in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime, time, timedelta
from typing import NamedTuple

_TICK, _HOUR = timedelta(microseconds=1), timedelta(hours=1)


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


class SteppedTimes:
    """Times of day in slots that follow each other by a step which need not divide the day, counted from an origin.

    A slot is an hour, a minute or a second; minutes and seconds are the times within it; only slots in the hours count.
    """

    def __init__(self, origin: datetime, step: timedelta, unit: int, times: DayTimes) -> None:
        self._origin, self._step, self._unit, self._times = origin, step, unit, times

    def after(self, wall: datetime) -> time | None:
        slot = self._slot_of(wall)
        while slot.date() <= wall.date():
            if slot.hour in self._times.hours or slot.date() < wall.date():
                found = self._within(slot).first if slot > wall else self._within(slot).after(wall)
                if found is not None and slot.date() == wall.date():
                    return found
                slot += self._step
            else:
                slot = self._slot_from(slot.replace(minute=0, second=0) + _HOUR)
        return None

    def before(self, wall: datetime) -> time | None:
        slot = self._slot_of(wall - _TICK)
        while slot.date() == wall.date():
            if slot.hour in self._times.hours:
                found = self._within(slot).before(wall)
                if found is not None:
                    return found
                slot -= self._step
            else:
                slot = self._slot_of(slot.replace(minute=0, second=0) - _TICK)
        return None

    def _slot_of(self, wall: datetime) -> datetime:
        """The last slot that begins at a wall or before."""
        return self._origin + (wall - self._origin) // self._step * self._step

    def _slot_from(self, wall: datetime) -> datetime:
        """The first slot that begins at a wall or after."""
        return self._slot_of(wall - _TICK) + self._step

    def _within(self, slot: datetime) -> DayTimes:
        minutes = self._times.minutes if self._unit == 3600 else (slot.minute,)
        return DayTimes((slot.hour,), minutes, self._times.seconds if self._unit > 1 else (slot.second,))
