"""Cron expressions: five fields, or six with leading seconds; the day rule of Vixie cron; which walls they name.

Our own calculator and not cronsim's, which answers in instants by one fixed policy: other policies need walls in both
directions, and nW, L-3, H and wrap-around ranges are missing there. It is an oracle in the tests. Which days of a month
match depends only on the month's first weekday and its length, so 28 little tuples are all there is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import CronField, Hashed, LastDay, LastWeekday, NearestWeekday, Nth
from mainspring.schedule.cron_parser import read_fields
from mainspring.schedule.walls import DayTimes, WallTimeline, month_length

if TYPE_CHECKING:
    from mainspring.schedule.cron_fields import Special
    from mainspring.schedule.timeline import Setting, Timeline

CYCLE = 400 * 12  # months until the Gregorian calendar repeats itself: what did not come by then never comes
_EARLIEST, _LATEST = (1, 1), (9998, 12)
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@minutely": "* * * * *",
}


class CronPattern:
    """A pattern over walls, in whole seconds."""

    def __init__(self, fields: tuple[CronField, ...]) -> None:
        self._times = DayTimes(fields[2].values, fields[1].values, fields[0].values)
        self._days, self._months, self._weekdays = fields[3:]
        self._either_day_will_do = not (self._days.star or self._weekdays.star)  # Vixie cron's rule
        self._matching: dict[tuple[int, int], tuple[int, ...]] = {}

    def next_wall(self, wall: datetime) -> datetime | None:
        """The first wall after this one."""
        day = wall.date()
        if day.month in self._months.values and day.day in self._days_of(day.year, day.month):
            moment = self._times.after(wall)
            if moment is not None:
                return datetime.combine(day, moment)
        later = self._day_after(day)
        return None if later is None else datetime.combine(later, self._times.first)

    def prev_wall(self, wall: datetime) -> datetime | None:
        """The last wall before this one."""
        day = wall.date()
        if day.month in self._months.values and day.day in self._days_of(day.year, day.month):
            moment = self._times.before(wall)
            if moment is not None:
                return datetime.combine(day, moment)
        earlier = self._day_before(day)
        return None if earlier is None else datetime.combine(earlier, self._times.last)

    def _day_after(self, day: date) -> date | None:
        year, month, after = day.year, day.month, day.day
        for _ in range(CYCLE + 1):
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
    """The days that L, L-3, LW, 15W, 2#1 and 5L name in a month of that shape; 0 and numbers past its end for none."""
    found = []
    for special in specials:
        match special:
            case LastDay(back):
                found.append(length - back)
            case NearestWeekday(day):
                found.append(_nearest_weekday(length if day is None else day, first_weekday, length))
            case Nth(weekday, nth):
                found.append(1 + (weekday - first_weekday) % 7 + 7 * (nth - 1))
            case LastWeekday(weekday):
                found.append(length - (first_weekday + length - 1 - weekday) % 7)
            case _:
                raise AssertionError(f"{special} was to be resolved first")
    return found


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    if day > length:
        return 0
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:  # Saturday: the Friday before, or the Monday after when that Friday is in another month
        return day - 1 if day > 1 else day + 2
    if weekday == 0:  # Sunday: the Monday after, or the Friday before when that Monday is in another month
        return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True)
class Cron:
    """A cron expression. `fields` are second, minute, hour, day of month, month and day of week."""

    fields: tuple[CronField, ...]

    @staticmethod
    def parse(text: str) -> Cron:
        return _parsed(MACROS.get(text.strip().lower(), text))

    @cached_property
    def text(self) -> str:
        """The canonical expression: six fields only when it needs seconds."""
        texts = [field.text for field in self.fields]
        return " ".join(texts[1:] if texts[0] == "0" else texts)

    @property
    def is_hashed(self) -> bool:
        return any(isinstance(each, Hashed) for field in self.fields for each in field.specials)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether Debian cron sees a wildcard job, which runs by elapsed time when the clock jumps."""
        return self.fields[1].star or self.fields[2].star

    def seconds_of_day(self) -> list[int]:
        """The times of day, in seconds since midnight."""
        second, minute, hour = (field.values for field in self.fields[:3])
        return [h * 3600 + m * 60 + s for h in hour for m in minute for s in second]

    def resolved(self, job: str) -> Cron:
        """The expression with the job's own numbers in place of H."""
        return Cron(tuple(field.resolved(job) for field in self.fields)) if self.is_hashed else self

    def timeline(self, setting: Setting) -> Timeline:
        cron = self.resolved(setting.job)
        return WallTimeline(CronPattern(cron.fields), setting, follows_elapsed_time=cron.follows_elapsed_time)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Cron:
    return Cron(read_fields(text))
