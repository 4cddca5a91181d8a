"""Which days a recurrence rule names, worked out slowly: every day is held against every sentence of RFC 5545."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
DAY = timedelta(days=1)


def slow_days(rule: str, starts: date, end: date) -> list[date]:
    """The days from DTSTART on and before another."""
    parts = dict(part.split("=") for part in rule.split(";"))
    periods: dict[Hashable, list[date]] = {}
    day = starts - timedelta(days=366)  # positions count from the beginning of the period in which DTSTART lies
    while day < end + timedelta(days=366):
        if is_in_step(parts, starts, day) and passes(parts, starts, day):
            periods.setdefault(period(parts, day), []).append(day)
        day += DAY
    found = [each for days in periods.values() for each in positions(parts, days)]
    return sorted(each for each in found if starts <= each < end)


def period(parts: dict[str, str], day: date) -> Hashable:
    match parts["FREQ"]:
        case "YEARLY":
            return day.year
        case "MONTHLY":
            return day.year, day.month
        case "WEEKLY":
            return week_of(parts, day)
        case _:
            return day


def week_of(parts: dict[str, str], day: date) -> date:
    while WEEKDAYS[day.weekday()] != parts.get("WKST", "MO"):
        day -= DAY
    return day


def is_in_step(parts: dict[str, str], starts: date, day: date) -> bool:
    passed = {
        "YEARLY": day.year - starts.year,
        "MONTHLY": 12 * (day.year - starts.year) + day.month - starts.month,
        "WEEKLY": (week_of(parts, day) - week_of(parts, starts)).days // 7,
        "DAILY": (day - starts).days,
    }
    return passed[parts["FREQ"]] % int(parts.get("INTERVAL", 1)) == 0


def positions(parts: dict[str, str], days: list[date]) -> list[date]:
    if "BYSETPOS" not in parts:
        return days
    wanted = numbers(parts, "BYSETPOS")
    return [day for at, day in enumerate(days) if at + 1 in wanted or at - len(days) in wanted]


def numbers(parts: dict[str, str], key: str) -> list[int]:
    return [int(each) for each in parts.get(key, "").split(",") if each]


def passes(parts: dict[str, str], starts: date, day: date) -> bool:
    month_length, year_length = calendar.monthrange(day.year, day.month)[1], 365 + calendar.isleap(day.year)
    of_year = (day - date(day.year, 1, 1)).days + 1
    week, weeks = week_number(parts, day)
    for key, number, length in (
        ("BYMONTH", day.month, 12),
        ("BYMONTHDAY", day.day, month_length),
        ("BYYEARDAY", of_year, year_length),
        ("BYWEEKNO", week, weeks),
    ):
        wanted = numbers(parts, key)
        if wanted and number not in wanted and number - length - 1 not in wanted:
            return False
    if "BYDAY" in parts:
        return any(is_weekday(parts, each, day) for each in parts["BYDAY"].split(","))
    return is_implied(parts, starts, day)


def is_implied(parts: dict[str, str], starts: date, day: date) -> bool:
    """What DTSTART says when neither weekdays nor days are named."""
    if parts.keys() & {"BYMONTHDAY", "BYYEARDAY"} or parts["FREQ"] == "DAILY":
        return True
    if parts["FREQ"] == "WEEKLY" or "BYWEEKNO" in parts:
        return day.weekday() == starts.weekday()
    same_month = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts or day.month == starts.month
    return day.day == starts.day and same_month


def is_weekday(parts: dict[str, str], wanted: str, day: date) -> bool:
    if WEEKDAYS[day.weekday()] != wanted[-2:]:
        return False
    if len(wanted) == 2:
        return True
    first, last = date(day.year, 1, 1), date(day.year, 12, 31)
    if parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts:
        first, last = day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
    return int(wanted[:-2]) in ((day - first).days // 7 + 1, -((last - day).days // 7) - 1)


def week_number(parts: dict[str, str], day: date) -> tuple[int, int]:
    """The number of the week, and how many weeks its year has: the fourth day of a week says which year it is of."""
    fourth = week_of(parts, day) + 3 * DAY
    ends = [week_of(parts, date(fourth.year, 12, 31) - each * DAY) + 3 * DAY for each in range(8)]
    last = max(each for each in ends if each.year == fourth.year)
    first = date(fourth.year, 1, 1)
    return (fourth - first).days // 7 + 1, (last - first).days // 7 + 1
