"""At which times of day a recurrence rule fires: slots of an hour, a minute or a second, and times within them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mainspring.schedule.rule_days import numbers

if TYPE_CHECKING:
    from datetime import datetime

A_DAY, AN_HOUR = 86_400, 3_600
_UNITS = {"HOURLY": AN_HOUR, "MINUTELY": 60, "SECONDLY": 1}


class RuleTimes:
    """Slots follow each other by a step in seconds, which need not divide the day; only those in the hours count.

    `within` are the seconds of a slot that count. No slot reaches from one hour into the next. Times are arithmetic: a
    rule with 86,400 of them a day is none the slower.
    """

    def __init__(self, origin: int, step: int, within: tuple[int, ...], hours: tuple[int, ...]) -> None:
        self._origin, self._step, self._within, self._hours = origin, step, within, hours

    @staticmethod
    def of(parts: dict[str, str], starts: datetime) -> RuleTimes:
        """The times named; else DTSTART's, or all of them when the rule runs through the day."""
        unit = _UNITS.get(parts["FREQ"], A_DAY)
        hours = numbers(parts, "BYHOUR") or (tuple(range(24)) if unit <= AN_HOUR else (starts.hour,))
        minutes = numbers(parts, "BYMINUTE") or (tuple(range(60)) if unit <= 60 else (starts.minute,))
        seconds = numbers(parts, "BYSECOND") or (tuple(range(60)) if unit == 1 else (starts.second,))
        interval = int(parts.get("INTERVAL", "1"))
        if unit == A_DAY or interval == 1:
            unit, interval = AN_HOUR, 1
        within = tuple(60 * minute + second for minute in minutes for second in seconds)
        if unit < AN_HOUR:
            within = seconds if unit == 60 else (0,)
        day, second = place_of(starts)
        return RuleTimes(A_DAY * day + second // unit * unit, unit * interval, within, hours)

    def after(self, day: int, second: int) -> int | None:
        """The first time of a day after a second of it; -1 asks for the first of all."""
        if self._slot_from(A_DAY * day) >= A_DAY * (day + 1):
            return None
        for hour in self._hours[bisect_left(self._hours, second // AN_HOUR) :]:
            begin = A_DAY * day + AN_HOUR * hour
            found = self._after(begin, max(A_DAY * day + second, begin - 1))
            if found is not None:
                return found - A_DAY * day
        return None

    def before(self, day: int, second: int) -> int | None:
        """The last time of a day before a second of it."""
        for hour in reversed(self._hours[: bisect_left(self._hours, -(-second // AN_HOUR))]):
            begin = A_DAY * day + AN_HOUR * hour
            found = self._before(begin, min(A_DAY * day + second, begin + AN_HOUR))
            if found is not None:
                return found - A_DAY * day
        return None

    def count(self, day: int) -> int:
        """How many times there are on a day."""
        if self._step == AN_HOUR:
            return len(self._hours) * len(self._within)
        if len(self._hours) == 24:
            return self._slots(A_DAY * day, A_DAY) * len(self._within)
        return sum(self._slots(A_DAY * day + AN_HOUR * hour, AN_HOUR) for hour in self._hours) * len(self._within)

    @property
    def counts_at_once(self) -> bool:
        """Whether the times of a day need not be counted hour by hour."""
        return len(self._hours) == 24 or self._step == AN_HOUR

    def next_day(self, day: int) -> int:
        """The first day after another that has a slot."""
        return self._slot_from(A_DAY * (day + 1)) // A_DAY

    def _after(self, begin: int, at: int) -> int | None:
        """The same within an hour, in seconds of all time."""
        slot = at - (at - self._origin) % self._step
        if slot >= begin and (place := bisect_right(self._within, at - slot)) < len(self._within):
            return slot + self._within[place]
        slot = self._slot_from(at + 1)
        return slot + self._within[0] if slot < begin + AN_HOUR else None

    def _before(self, begin: int, at: int) -> int | None:
        slot = at - 1 - (at - 1 - self._origin) % self._step
        if slot >= begin and (place := bisect_left(self._within, at - slot)) > 0:
            return slot + self._within[place - 1]
        slot -= self._step
        return slot + self._within[-1] if slot >= begin else None

    def _slot_from(self, at: int) -> int:
        return at + (self._origin - at) % self._step

    def _slots(self, begin: int, length: int) -> int:
        return -(-(begin + length - self._origin) // self._step) + (begin - self._origin) // -self._step


def place_of(wall: datetime) -> tuple[int, int]:
    """The day of a wall and the second of the day."""
    return wall.toordinal(), AN_HOUR * wall.hour + 60 * wall.minute + wall.second
