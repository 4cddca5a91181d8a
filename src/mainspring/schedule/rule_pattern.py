"""Which walls a recurrence rule names: dateutil finds the days, a grid of hours, minutes and seconds the times of day.

dateutil counts from DTSTART and builds every time of day in advance; a rule from 1970, or one with 86,400 times a day,
would take seconds. So each question starts a fresh rule at the beginning of a period near it (a year, month, week or
day in step with DTSTART), with what DTSTART implies written out, and times of day are arithmetic.
"""

from __future__ import annotations

from datetime import MAXYEAR, date, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dateutil import rrule

from mainspring.schedule.walls import TICK, DayTimes, SteppedTimes, month_length

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAY = timedelta(days=1)
_UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_FREQUENCIES = {"YEARLY": rrule.YEARLY, "MONTHLY": rrule.MONTHLY, "WEEKLY": rrule.WEEKLY, "DAILY": rrule.DAILY}
_DAY_KEYS = ("BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYSETPOS")
_WEEKDAYS = dict(zip(("MO", "TU", "WE", "TH", "FR", "SA", "SU"), rrule.weekdays, strict=True))
# How many periods are searched: some 41 years, the longest wait for a certain weekday on a 29 February.
_PERIODS = {"YEARLY": 41, "MONTHLY": 12 * 41, "WEEKLY": 53 * 41, "DAILY": 366 * 41}
_FIRST_YEAR, _LAST_YEAR = 1, 9_400
END = datetime(_LAST_YEAR, 1, 1)  # noqa: DTZ001 - a wall


class RulePattern:
    """A pattern over walls. `until` is the last wall that counts; COUNT has its own."""

    def __init__(self, parts: dict[str, str], starts: datetime, until: datetime = END) -> None:
        self._parts, self._starts, self._until = parts, starts, until
        self._times = _times(parts, starts)
        within_a_day = parts["FREQ"] in _UNITS
        self._frequency = "DAILY" if within_a_day else parts["FREQ"]
        self._interval = 1 if within_a_day else int(parts.get("INTERVAL", "1"))
        self._week_start: Any = _WEEKDAYS[parts.get("WKST", "MO")]
        self._arguments = self._rule_arguments()

    def next_wall(self, wall: datetime) -> datetime | None:
        found = self._next(max(wall, self._starts - TICK))
        return None if found is None or found > self._last else found

    def prev_wall(self, wall: datetime) -> datetime | None:
        found = self._prev(min(wall, self._last + TICK))
        return None if found is None or found < self._starts else found

    @cached_property
    def _last(self) -> datetime:
        """The last wall that counts."""
        if "COUNT" not in self._parts:
            return self._until
        last = self._starts - TICK
        for _ in range(int(self._parts["COUNT"])):
            found = self._next(last)
            if found is None:
                break
            last = found
        return last

    def _next(self, wall: datetime) -> datetime | None:
        for day in self._days_from(wall.date()):
            after = wall if day == wall.date() else datetime.combine(day, time(0)) - TICK
            moment = self._times.after(after) if after.date() == day else self._first_of(day)
            if moment is not None:
                return datetime.combine(day, moment)
        return None

    def _first_of(self, day: date) -> time | None:
        """The first time of a day, which may be midnight."""
        midnight = datetime.combine(day, time(0))
        just_before = self._times.before(midnight + TICK)
        return just_before if just_before is not None else self._times.after(midnight)

    def _prev(self, wall: datetime) -> datetime | None:
        for day in self._days_back_from(wall.date()):
            end = wall if day == wall.date() else datetime.combine(day, time.max)
            moment = self._times.before(end)
            if moment is not None:
                return datetime.combine(day, moment)
        return None

    def _days_from(self, day: date) -> Iterator[date]:
        """The days of the rule from this one on, as far as it makes sense to look."""
        if self._frequency == "DAILY":
            return self._daily(day, 1)
        if self._names_nothing:
            return iter(())
        anchor = self._anchor(day)
        until = self._ahead(anchor, _PERIODS[self._frequency])
        rule = rrule.rrule(dtstart=anchor, until=until, **self._arguments)
        return (found.date() for found in rule if found.date() >= day)

    def _days_back_from(self, day: date) -> Iterator[date]:
        """The days of the rule from this one back: of its period, then of more and more periods before it."""
        if self._frequency == "DAILY":
            yield from self._daily(day, -1)
            return
        if self._names_nothing:
            return
        anchor, until, width = self._anchor(day), day, 1
        while True:
            rule = rrule.rrule(dtstart=anchor, until=datetime.combine(until, time(0)), **self._arguments)
            yield from reversed([found.date() for found in rule])
            if anchor <= self._starts or width > _PERIODS[self._frequency]:
                return
            width, until = 4 * width, anchor.date() - _DAY
            anchor = self._anchor(self._ahead(anchor, -width).date())

    @cached_property
    def _names_nothing(self) -> bool:
        """dateutil walks to the end of time when a rule names no day: so it is first asked close to the end of time."""
        years = max(41, {"YEARLY": 12, "MONTHLY": 1, "WEEKLY": 1}[self._frequency] * self._interval)
        anchor = self._anchor(date(max(MAXYEAR - years, self._starts.year), 1, 1))
        return next(iter(rrule.rrule(dtstart=anchor, **self._arguments)), None) is None

    def _daily(self, day: date, direction: int) -> Iterator[date]:
        """dateutil takes seconds to find that a daily rule names no day; there is little to find here."""
        step = timedelta(days=self._interval * direction)
        at = self._anchor(day).date()
        if direction > 0 and at < day:
            at += step
        for _ in range(_PERIODS["DAILY"]):
            if not _FIRST_YEAR < at.year < _LAST_YEAR:
                return
            if self._names(at):
                yield at
            at += step

    def _names(self, day: date) -> bool:
        """Whether a daily rule names a day: it has to pass every filter; those from the end count backwards."""
        for key, number, length in (
            ("bymonth", day.month, 12),
            ("bymonthday", day.day, month_length(day.year, day.month)),
            ("byyearday", day.timetuple().tm_yday, 365 + (month_length(day.year, 2) == 29)),
        ):
            wanted = self._arguments.get(key)
            if wanted and number not in wanted and number - length - 1 not in wanted:
                return False
        weekdays = self._arguments.get("byweekday")
        return not weekdays or any(each.weekday == day.weekday() for each in weekdays)

    def _anchor(self, day: date) -> datetime:
        """The beginning of the last period at or before a day that is in step with DTSTART."""
        starts, every = self._starts.date(), self._interval
        match self._frequency:
            case "YEARLY":
                found = date(max(starts.year + (day.year - starts.year) // every * every, _FIRST_YEAR), 1, 1)
            case "MONTHLY":
                months = 12 * (day.year - starts.year) + day.month - starts.month
                first = 12 * starts.year + starts.month - 1 + months // every * every
                found = date(max(first // 12, _FIRST_YEAR), first % 12 + 1, 1)
            case "WEEKLY":
                starts -= timedelta(days=(starts.weekday() - self._week_start.weekday) % 7)
                found = starts + (day - starts) // timedelta(weeks=every) * timedelta(weeks=every)
            case _:
                found = starts + (day - starts) // timedelta(days=every) * timedelta(days=every)
        return datetime.combine(found, time(0))

    def _ahead(self, anchor: datetime, periods: int) -> datetime:
        """So many periods later, roughly; never outside of what dates can say."""
        days = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 1}[self._frequency] * self._interval * periods
        least, most = (datetime(_FIRST_YEAR + 1, 1, 1) - anchor).days, (END - anchor).days  # noqa: DTZ001 - walls
        return anchor + timedelta(days=max(least, min(days, most)))

    def _rule_arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {key.lower(): _numbers(self._parts, key) for key in _DAY_KEYS if key in self._parts}
        if "BYDAY" in self._parts:
            arguments["byweekday"] = [_weekday(each) for each in self._parts["BYDAY"].split(",")]
        if not arguments.keys() & {"byweekno", "byyearday", "bymonthday", "byweekday"}:
            arguments |= self._implied_by_start("bymonth" in arguments)
        frequency = _FREQUENCIES[self._frequency]
        times = {"byhour": 0, "byminute": 0, "bysecond": 0}
        return {"freq": frequency, "interval": self._interval, "wkst": self._week_start, **times, **arguments}

    def _implied_by_start(self, month_is_given: bool) -> dict[str, Any]:
        """What DTSTART says when the rule itself names no days."""
        match self._frequency:
            case "YEARLY":
                return {"bymonthday": self._starts.day} | ({} if month_is_given else {"bymonth": self._starts.month})
            case "MONTHLY":
                return {"bymonthday": self._starts.day}
            case "WEEKLY":
                return {"byweekday": self._starts.weekday()}
            case _:
                return {}


def _times(parts: dict[str, str], starts: datetime) -> DayTimes | SteppedTimes:
    """The times of day: those named; else DTSTART's, or all of them when the rule runs through the day."""
    unit = _UNITS.get(parts["FREQ"], 86_400)
    times = DayTimes(
        _numbers(parts, "BYHOUR") or (tuple(range(24)) if unit <= 3600 else (starts.hour,)),
        _numbers(parts, "BYMINUTE") or (tuple(range(60)) if unit <= 60 else (starts.minute,)),
        _numbers(parts, "BYSECOND") or (tuple(range(60)) if unit == 1 else (starts.second,)),
    )
    interval = int(parts.get("INTERVAL", "1"))
    if unit == 86_400 or interval == 1:
        return times
    origin = starts.replace(minute=0 if unit == 3600 else starts.minute, second=0 if unit > 1 else starts.second)
    return SteppedTimes(origin, timedelta(seconds=unit * interval), unit, times)


def _numbers(parts: dict[str, str], key: str) -> tuple[int, ...]:
    return tuple(map(int, parts[key].split(","))) if key in parts else ()


def _weekday(text: str) -> Any:
    weekday = _WEEKDAYS[text[-2:]]
    return weekday(int(text[:-2])) if len(text) > 2 else weekday
