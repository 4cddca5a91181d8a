"""Calendars: named sets of days and times of day, and what a schedule does with them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from mainspring.errors import did_you_mean
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.timeline import step
from mainspring.schedule.walls import TICK, month_length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.errors import InvalidSchedule

MAX_DATES = 10_000
MAX_WINDOWS = 100
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DAY, _MIDNIGHT = timedelta(days=1), time(0)
_CYCLE = timedelta(days=366 * 9)  # a 29 February comes within eight years: all yearly days have come by then
_FIRST_DAY, _LAST_DAY = date(2, 1, 1), date(9998, 1, 1)


class Use(StrEnum):
    """What a schedule does with a calendar."""

    INCLUDE = "include"  # fire only inside
    EXCLUDE = "exclude"  # never fire inside
    BLACKOUT = "blackout"  # do not fire inside; BlackoutPolicy says what becomes of it


class BlackoutPolicy(StrEnum):
    DROP = "drop"
    MOVE = "move"  # to the end of the blackout; once, however many were inside


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """All walls on one of its days (any, if it names none) and in one of its windows (the whole day, if it has none).

    `weekdays` count from Monday = 0, as Python does. `ranges` include both ends. `yearly` are (month, day). A window
    whose end is not after its beginning reaches into the next day; one that ends at 00:00 ends with the day.
    """

    name: str
    dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()
    ranges: tuple[tuple[date, date], ...] = ()
    yearly: frozenset[tuple[int, int]] = frozenset()
    windows: tuple[tuple[time, time], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise _broken("name", self.name, "must be 1 to 100 letters, digits or _ . -")
        for field, most in (("dates", MAX_DATES), ("ranges", MAX_DATES), ("yearly", 366), ("windows", MAX_WINDOWS)):
            if len(getattr(self, field)) > most:
                raise _broken(field, f"{len(getattr(self, field)):,} entries", f"must have at most {most:,}")
        self._check_days()
        object.__setattr__(self, "dates", frozenset(self.dates))
        object.__setattr__(self, "weekdays", frozenset(self.weekdays))
        object.__setattr__(self, "yearly", frozenset(self.yearly))
        object.__setattr__(self, "ranges", tuple(sorted(set(self.ranges))))
        object.__setattr__(self, "windows", tuple(sorted(set(self.windows))))

    def _check_days(self) -> None:
        if not all(type(day) is date for day in self.dates):
            raise _broken("dates", "something else", "must be dates")
        if not all(isinstance(day, int) and 0 <= day <= 6 for day in self.weekdays):
            raise _broken("weekdays", sorted(self.weekdays, key=str), "must be numbers from 0 (Monday) to 6")
        for first, last in self.ranges:
            if last < first:
                raise _broken("ranges", f"{first} to {last}", "must not end before it begins")
        for month, day in self.yearly:
            if not (1 <= month <= 12 and 1 <= day <= month_length(2000, month)):
                raise _broken("yearly", (month, day), "must be a month and one of its days")
        for begin, end in self.windows:
            if begin.tzinfo or end.tzinfo or begin == end:
                raise _broken("windows", f"{begin} to {end}", "must be two different local times")

    def has_day(self, day: date) -> bool:
        if not self._names_days:
            return True
        if day in self.dates or day.weekday() in self.weekdays or (day.month, day.day) in self.yearly:
            return True
        at = bisect_right(self._merged_ranges, (day, date.max)) - 1
        return at >= 0 and day <= self._merged_ranges[at][1]

    def covers(self, wall: datetime) -> bool:
        """Whether a wall lies inside."""
        if not self.windows:
            return self.has_day(wall.date())
        moment = wall.time()
        if self.has_day(wall.date()) and any(b <= moment and (moment < e or e <= b) for b, e in self.windows):
            return True
        late = any(e <= b and moment < e for b, e in self.windows)  # of a window that began the day before
        return late and self.has_day(wall.date() - _DAY)

    def next_change(self, wall: datetime) -> datetime | None:
        """The first wall after this one that is inside where this one is outside, or vice versa; None if none comes."""
        inside, day = self.covers(wall), wall.date()
        last = min(max([day, *self._changing_days[-1:]]), _LAST_DAY - _CYCLE) + _CYCLE
        while day <= last:
            step()
            for edge in self._edges:
                at = datetime.combine(day, edge)
                if at > wall and self.covers(at) != inside:
                    return at
            day = self._next_interesting_day(day)
        return None

    def last_change(self, wall: datetime) -> datetime | None:
        """The wall from which on all is as at this one, inside or outside; None if always."""
        inside, day = self.covers(wall), wall.date()
        first = max(min([day, *self._changing_days[:1]]), _FIRST_DAY + _CYCLE) - _CYCLE
        while day >= first:
            step()
            for edge in reversed(self._edges):
                at = datetime.combine(day, edge)
                if at <= wall and self.covers(at - TICK) != inside:
                    return at
            day = self._last_interesting_day(day)
        return None

    @cached_property
    def _names_days(self) -> bool:
        return bool(self.dates or self.weekdays or self.ranges or self.yearly)

    @cached_property
    def _merged_ranges(self) -> list[tuple[date, date]]:
        merged: list[tuple[date, date]] = []
        for first, last in self.ranges:
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return merged

    @cached_property
    def _edges(self) -> list[time]:
        """The times of day at which something may change."""
        return sorted({_MIDNIGHT, *(edge for window in self.windows for edge in window)})

    @cached_property
    def _changing_days(self) -> list[date]:
        """The days on which a calendar without weekdays and yearly days may change, when it has no windows."""
        spans = [*((day, day) for day in self.dates), *self.ranges]
        return sorted({day for first, last in spans for day in (first, min(last, _LAST_DAY) + _DAY)})

    @cached_property
    def _changes_often(self) -> bool:
        return bool(self.weekdays or self.yearly or not self._names_days)

    def _next_interesting_day(self, day: date) -> date:
        if self._changes_often or (self.windows and (self.has_day(day) or self.has_day(day - _DAY))):
            return day + _DAY
        at = bisect_right(self._changing_days, day)
        return self._changing_days[at] if at < len(self._changing_days) else _LAST_DAY

    def _last_interesting_day(self, day: date) -> date:
        if self._changes_often or (self.windows and (self.has_day(day) or self.has_day(day - _DAY))):
            return day - _DAY
        at = bisect_left(self._changing_days, day)
        return self._changing_days[at - 1] if at > 0 else _FIRST_DAY


class NamedCalendar(Calendar):
    """A stored calendar of which only the name is known. A schedule that uses it can be told, but not computed."""

    def covers(self, wall: datetime) -> bool:
        raise AssertionError(f"the stored calendar {self.name} has not been looked up")


@dataclass(frozen=True, kw_only=True)
class CalendarUse:
    """A calendar, and what a schedule does with it. One that is stored is kept by its name, whatever is in it."""

    calendar: Calendar
    use: Use = Use.EXCLUDE
    then: BlackoutPolicy = BlackoutPolicy.DROP
    is_stored: bool = False

    def __post_init__(self) -> None:
        if self.then is not BlackoutPolicy.DROP and self.use is not Use.BLACKOUT:
            raise _broken("then", self.then.value, "is for blackouts only")


def unknown_calendar(name: str, known: Iterable[str]) -> InvalidSchedule:
    return broken_rule("calendar", name, "is not known", code="unknown-calendar", hint=did_you_mean(name, known))


def _broken(field: str, value: object, rule: str) -> InvalidSchedule:
    return broken_rule(f"calendar.{field}", value, rule, code="invalid-calendar")
