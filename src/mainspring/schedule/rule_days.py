"""Which days a recurrence rule names, a year at a time.

Days are numbers (`date.toordinal`), which do not overflow at the ends of the calendar. All that matters of a year is on
which weekday it begins and how long it and its neighbours are: what the filters leave is worked out once for each kind.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mainspring.schedule.walls import month_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WITHIN_A_DAY = ("HOURLY", "MINUTELY", "SECONDLY")
_WEEK = 7


class RuleDays(NamedTuple):
    """The part of a rule that is about days. Rules that differ only in their times of day share what is known."""

    frequency: str  # YEARLY, MONTHLY, WEEKLY or DAILY
    interval: int
    starts: int
    week_start: int
    filters: DayFilters
    positions: tuple[int, ...]

    @staticmethod
    def of(parts: dict[str, str], starts: date) -> RuleDays:
        within_a_day = parts["FREQ"] in WITHIN_A_DAY
        written_out = with_implied(parts, starts)
        return RuleDays(
            frequency="DAILY" if within_a_day else parts["FREQ"],
            interval=1 if within_a_day else int(parts.get("INTERVAL", "1")),
            starts=starts.toordinal(),
            week_start=WEEKDAYS.index(parts.get("WKST", "MO")),
            filters=DayFilters.of(written_out),
            positions=numbers(parts, "BYSETPOS"),
        )

    def is_in_step(self, year: int) -> bool:
        """Whether a year may have days: those that a yearly rule passes over need not be looked at."""
        return self.frequency != "YEARLY" or (year - date.fromordinal(self.starts).year) % self.interval == 0


def with_implied(parts: dict[str, str], starts: date) -> dict[str, str]:
    """The parts, and what DTSTART says where they leave open which days are meant."""
    named = parts.keys() & {"BYDAY", "BYMONTHDAY", "BYYEARDAY"}
    weekday, day = {"BYDAY": WEEKDAYS[starts.weekday()]}, {"BYMONTHDAY": str(starts.day)}
    if named:
        return parts
    match parts["FREQ"]:
        case "YEARLY" if "BYWEEKNO" in parts:
            return parts | weekday
        case "YEARLY":
            return {"BYMONTH": str(starts.month)} | parts | day
        case "MONTHLY":
            return parts | day
        case "WEEKLY":
            return parts | weekday
        case _:
            return parts


def numbers(parts: dict[str, str], key: str) -> tuple[int, ...]:
    return tuple(map(int, parts[key].split(","))) if key in parts else ()


class DayFilters(NamedTuple):
    """What a day has to pass. A filter without values lets every day pass."""

    months: tuple[int, ...]
    month_days: tuple[int, ...]
    year_days: tuple[int, ...]
    weeks: tuple[int, ...]
    week_start: int
    weekdays: tuple[int, ...]
    numbered: tuple[tuple[int, int], ...]  # (which, weekday): the first Monday, the last Friday
    numbered_within_months: bool

    @staticmethod
    def of(parts: dict[str, str]) -> DayFilters:
        days = parts["BYDAY"].split(",") if "BYDAY" in parts else []
        return DayFilters(
            months=numbers(parts, "BYMONTH"),
            month_days=numbers(parts, "BYMONTHDAY"),
            year_days=numbers(parts, "BYYEARDAY"),
            weeks=numbers(parts, "BYWEEKNO"),
            week_start=WEEKDAYS.index(parts.get("WKST", "MO")),
            weekdays=tuple(WEEKDAYS.index(each) for each in days if len(each) == 2),
            numbered=tuple((int(each[:-2]), WEEKDAYS.index(each[-2:])) for each in days if len(each) > 2),
            numbered_within_months=parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts,
        )


# ── days by the calendar ────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1024)
def days_of(rule: RuleDays, year: int) -> tuple[int, ...]:
    """The days of a rule in a year, in order: those in step with DTSTART, and of these the positions that count."""
    named = _named(rule, year)
    if rule.interval == 1 and not rule.positions:
        return named
    match rule.frequency:
        case "YEARLY":
            return _picked(named, rule.positions) if rule.is_in_step(year) else ()
        case "MONTHLY":
            return _of_months(rule, year, named)
        case "WEEKLY":
            return _of_weeks(rule, year, named)
        case _:
            return tuple(day for day in named if (day - rule.starts) % rule.interval == 0)


def _named(rule: RuleDays, year: int) -> tuple[int, ...]:
    """The days that pass the filters, in step or not."""
    before = new_year(year) - 1
    return tuple(before + day for day in _passing(rule.filters, _kind(year)))


def _picked(days: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    if not positions:
        return days
    places = {at - 1 if at > 0 else len(days) + at for at in positions}
    return tuple(days[at] for at in sorted(places) if 0 <= at < len(days))


def _of_months(rule: RuleDays, year: int, named: tuple[int, ...]) -> tuple[int, ...]:
    starts, before, found = date.fromordinal(rule.starts), new_year(year) - 1, list[int]()
    for month, (first, last) in enumerate(_months(_kind(year)), 1):
        if (12 * (year - starts.year) + month - starts.month) % rule.interval == 0:
            days = tuple(day for day in named if before + first <= day <= before + last)
            found.extend(_picked(days, rule.positions))
    return tuple(found)


def _of_weeks(rule: RuleDays, year: int, named: tuple[int, ...]) -> tuple[int, ...]:
    """Positions count within whole weeks, also where a week reaches into another year."""
    if rule.positions:
        named = (*_named(rule, year - 1)[-_WEEK:], *named, *_named(rule, year + 1)[:_WEEK])
    begin = rule.starts - (_weekday(rule.starts) - rule.week_start) % _WEEK
    weeks: dict[int, list[int]] = {}
    for day in named:
        week = (day - begin) // _WEEK
        if week % rule.interval == 0:
            weeks.setdefault(week, []).append(day)
    first, end = new_year(year), new_year(year + 1)
    return tuple(day for days in weeks.values() for day in _picked(tuple(days), rule.positions) if first <= day < end)


# ── kinds of years ──────────────────────────────────────────────────────────────────────────────────────────


class _YearKind(NamedTuple):
    """All that matters of a year; there are 28 different ones."""

    weekday: int  # of 1 January
    length: int
    length_before: int
    length_after: int


def new_year(year: int) -> int:
    """The day of 1 January, of any year whatever."""
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 + 1


def _weekday(day: int) -> int:
    return (day - 1) % _WEEK


def _kind(year: int) -> _YearKind:
    begins = [new_year(year + at) for at in (-1, 0, 1, 2)]
    before, length, after = (end - begin for begin, end in pairwise(begins))
    return _YearKind(_weekday(begins[1]), length, before, after)


@lru_cache(maxsize=64)
def _months(kind: _YearKind) -> tuple[tuple[int, int], ...]:
    """The first and the last day of each month, counted from the beginning of the year."""
    found, last = list[tuple[int, int]](), 0
    for month in range(1, 13):
        first, last = last + 1, last + month_length(2000 if kind.length == 366 else 2001, month)
        found.append((first, last))
    return tuple(found)


@lru_cache(maxsize=2048)
def _passing(filters: DayFilters, kind: _YearKind) -> tuple[int, ...]:
    """The days that pass every filter, counted from the beginning of the year."""
    left = set(range(1, kind.length + 1))
    if filters.months:
        chosen = [_months(kind)[month - 1] for month in filters.months]
        left.intersection_update(day for first, last in chosen for day in range(first, last + 1))
    if filters.month_days:
        left.intersection_update(day for span in _months(kind) for day in _counted(span, filters.month_days))
    if filters.year_days:
        left.intersection_update(_counted((1, kind.length), filters.year_days))
    if filters.weeks:
        left.intersection_update(_of_week_numbers(filters, kind))
    if filters.weekdays or filters.numbered:  # a day on either list will do
        left.intersection_update({*_on_weekdays(filters, kind), *_on_numbered_weekdays(filters, kind)})
    return tuple(sorted(left))


def _counted(span: tuple[int, int], places: Iterable[int]) -> Iterator[int]:
    """The days at these places of a span; those below zero are counted from its end."""
    first, last = span
    for place in places:
        day = first + place - 1 if place > 0 else last + place + 1
        if first <= day <= last:
            yield day


def _of_week_numbers(filters: DayFilters, kind: _YearKind) -> Iterator[int]:
    """Weeks as ISO 8601 numbers them: the first has at least four days in its year; the ends are in other years."""
    begins, first = list[int](), 1 - kind.length_before
    for length in (kind.length_before, kind.length, kind.length_after, 0):
        passed = (kind.weekday + first - 1 - filters.week_start) % _WEEK  # days of the week before 1 January
        begins.append(first - passed if passed <= 3 else first - passed + _WEEK)
        first += length
    for begin, end in pairwise(begins):
        for week in _counted((0, (end - begin) // _WEEK - 1), filters.weeks):
            yield from range(begin + _WEEK * week, begin + _WEEK * (week + 1))


def _on_weekdays(filters: DayFilters, kind: _YearKind) -> Iterator[int]:
    for weekday in filters.weekdays:
        yield from range(1 + (weekday - kind.weekday) % _WEEK, kind.length + 1, _WEEK)


def _on_numbered_weekdays(filters: DayFilters, kind: _YearKind) -> Iterator[int]:
    spans = _months(kind) if filters.numbered_within_months else ((1, kind.length),)
    for first, last in spans if filters.numbered else ():
        for place, weekday in filters.numbered:
            days = range(first + (weekday - kind.weekday - first + 1) % _WEEK, last + 1, _WEEK)
            at = place - 1 if place > 0 else len(days) + place
            if 0 <= at < len(days):
                yield days[at]
