"""Which walls the fields of a cron expression name, forth and back; the day rule of Vixie cron.

Which days of a month match depends only on the month's first weekday and its length, so 28 little tuples are all there
is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import LastDay, LastWeekday, NearestWeekday, Nth
from mainspring.schedule.walls import DayTimes, month_length

if TYPE_CHECKING:
    from mainspring.schedule.cron_fields import CronField, Special

CYCLE = 400 * 12  # months until the Gregorian calendar repeats itself: what did not come by then never comes
_EARLIEST, _LATEST = (1, 1), (9998, 12)


class CronPattern:
    """A pattern over walls, in whole seconds. The fields are second, minute, hour, day, month, weekday and year."""

    def __init__(self, fields: tuple[CronField, ...]) -> None:
        self._times = DayTimes(fields[2].values, fields[1].values, fields[0].values)
        self._days, self._months, self._weekdays, years = fields[3:]
        self._years = None if years.is_full else years.values
        self._either_day_will_do = not (self._days.star or self._weekdays.star)  # Vixie cron's rule
        self._matching: dict[tuple[int, int], tuple[int, ...]] = {}

    def next_wall(self, wall: datetime) -> datetime | None:
        """The first wall after this one."""
        day = wall.date()
        if self._names(day):
            moment = self._times.after(wall)
            if moment is not None:
                return datetime.combine(day, moment)
        later = self._day_after(day)
        return None if later is None else datetime.combine(later, self._times.first)

    def prev_wall(self, wall: datetime) -> datetime | None:
        """The last wall before this one."""
        day = wall.date()
        if self._names(day):
            moment = self._times.before(wall)
            if moment is not None:
                return datetime.combine(day, moment)
        earlier = self._day_before(day)
        return None if earlier is None else datetime.combine(earlier, self._times.last)

    def _names(self, day: date) -> bool:
        if day.month not in self._months.values or (self._years is not None and day.year not in self._years):
            return False
        return day.day in self._days_of(day.year, day.month)

    def _day_after(self, day: date) -> date | None:
        year, month, after = day.year, day.month, day.day
        for _ in range(CYCLE + 1):
            if self._years is not None and year not in self._years:
                place = bisect_right(self._years, year)
                if place == len(self._years):
                    break
                year, month, after = self._years[place], 1, 0
            if month in self._months.values:
                days = self._days_of(year, month)
                if (at := bisect_right(days, after)) < len(days):
                    return date(year, month, days[at])
            year, month, after = (year, month + 1, 0) if month < 12 else (year + 1, 1, 0)
            if (year, month) > _LATEST:
                break
        return None

    def _day_before(self, day: date) -> date | None:
        year, month, before = day.year, day.month, day.day
        for _ in range(CYCLE + 1):
            if self._years is not None and year not in self._years:
                place = bisect_left(self._years, year)
                if place == 0:
                    break
                year, month, before = self._years[place - 1], 12, 32
            if month in self._months.values:
                days = self._days_of(year, month)
                if (at := bisect_left(days, before)) > 0:
                    return date(year, month, days[at - 1])
            year, month, before = (year, month - 1, 32) if month > 1 else (year - 1, 12, 32)
            if (year, month) < _EARLIEST:
                break
        return None

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        shape = (date(year, month, 1).weekday() + 1) % 7, month_length(year, month)
        days = self._matching.get(shape)
        if days is None:
            days = self._matching[shape] = self._find_days(*shape)
        return days

    def _find_days(self, first_weekday: int, length: int) -> tuple[int, ...]:
        by_day = set(self._days.values).union(_days_named(self._days.specials, first_weekday, length))
        by_weekday = {day for day in range(1, length + 1) if (first_weekday + day - 1) % 7 in self._weekdays.values}
        by_weekday.update(_days_named(self._weekdays.specials, first_weekday, length))
        both = by_day | by_weekday if self._either_day_will_do else by_day & by_weekday
        return tuple(sorted(day for day in both if 1 <= day <= length))


def _days_named(specials: tuple[Special, ...], first_weekday: int, length: int) -> list[int]:
    """The days that L, L-3, LW, L-3W, 15W, 2#1 and 5L name in a month of that shape; none is a number outside of it."""
    found = []
    for special in specials:
        match special:
            case LastDay(back):
                found.append(length - back)
            case NearestWeekday(day, back):
                found.append(_nearest_weekday(length - back if day is None else day, first_weekday, length))
            case Nth(weekday, nth):
                found.append(1 + (weekday - first_weekday) % 7 + 7 * (nth - 1))
            case LastWeekday(weekday):
                found.append(length - (first_weekday + length - 1 - weekday) % 7)
            case _:
                raise AssertionError(f"{special} was to be resolved first")
    return found


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    if not 1 <= day <= length:
        return 0
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:  # Saturday: the Friday before, or the Monday after when that Friday is in another month
        return day - 1 if day > 1 else day + 2
    if weekday == 0:  # Sunday: the Monday after, or the Friday before when that Monday is in another month
        return day + 1 if day < length else day - 2
    return day
