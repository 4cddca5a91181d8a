"""Recurrence rules, intervals and instants in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from mainspring.schedule.interval import DEFAULT_ANCHOR
from mainspring.schedule.words.phrases import (
    MONTHS,
    WEEKDAYS,
    clock,
    counted,
    day,
    every,
    every_span,
    listed,
    moment,
    months,
    ordinal,
    runs,
    weekdays,
)
from mainspring.schedule.zones import wall_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mainspring.schedule.instants import Instants
    from mainspring.schedule.interval import Interval
    from mainspring.schedule.rule import Rule

UNITS = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
    "SECONDLY": "second",
}
DAY_NUMBERS = {"SU": 0, "MO": 1, "TU": 2, "WE": 3, "TH": 4, "FR": 5, "SA": 6}
PLACES = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last", -2: "second to last"}
_DAY = re.compile(r"([+-]?\d+)?([A-Z]{2})")


# ── instants and intervals ──────────────────────────────────────────────────────────────────────────────────


def instants_words(instants: Instants, zone: ZoneInfo) -> str:
    """`once, on 24 December 2026 at 18:00`."""
    walls = [wall_of(zone, instant) for instant in instants.at]
    if len(walls) == 1:
        return f"once, on {moment(walls[0])}"
    return f"{counted(len(walls), 'time')}, on {listed([moment(wall) for wall in walls])}"


def interval_words(interval: Interval, zone: ZoneInfo, starts_at: datetime | None) -> str:
    anchor = interval.anchor or starts_at or DEFAULT_ANCHOR
    if interval.elapsed:
        return _elapsed_words(interval, zone, anchor)
    wall = anchor if anchor.tzinfo is None else wall_of(zone, anchor)
    at = f"at {clock(wall)}"
    if interval.months:
        return _months_words(interval.months, wall, at)
    if interval.days % 7 == 0:
        weekday = WEEKDAYS[wall.isoweekday() % 7]
        weeks = every(interval.days // 7, "week")
        often = weeks.replace("week", weekday) if interval.days <= 14 else f"{weeks} on {weekday}"
    else:
        often = every(interval.days, "day")
    return f"{often} {at}" + ("" if interval.days in (1, 7) else f", counted from {day(wall)}")


def _months_words(count: int, wall: datetime, at: str) -> str:
    short = ", or the last day of shorter months," if wall.day > 28 else ""
    if count % 12 == 0:
        date = f"{wall.day} {MONTHS[wall.month - 1]}"
        counting = "" if count == 12 else f", counted from {wall.year}"
        return f"{every(count // 12, 'year')} on {date}{short if date == '29 February' else ''} {at}{counting}"
    counting = "" if count == 1 else f", counted from {day(wall)}"
    return f"{every(count, 'month')} on the {ordinal(wall.day)}{short} {at}{counting}"


def _elapsed_words(interval: Interval, zone: ZoneInfo, anchor: datetime) -> str:
    often = every_span(interval.elapsed)
    if anchor is DEFAULT_ANCHOR:
        whole = 86_400 % interval.elapsed.total_seconds() == 0
        return f"{often} of elapsed time" + (
            "" if whole else f", counted from {moment(anchor.replace(tzinfo=UTC))} UTC"
        )
    return f"{often}, counted from {moment(anchor if anchor.tzinfo is None else wall_of(zone, anchor))}"


# ── recurrence rules ────────────────────────────────────────────────────────────────────────────────────────


def rule_words(rule: Rule) -> str:
    """`every other Tuesday at 12:00, counted from 17 November 2026`."""
    parts = rule.by_key
    interval = int(parts.get("INTERVAL", "1"))
    words = [_how_often(parts, interval, rule.starts), _times(parts, rule.starts), _positions(parts)]
    sentence = " ".join(filter(None, words))
    if interval > 1 and rule.starts is not DEFAULT_ANCHOR:
        sentence += f", counted from {day(rule.starts)}"
    elif rule.starts != DEFAULT_ANCHOR:
        sentence += f", from {day(rule.starts)} on"
    return sentence + _end(parts)


def _how_often(parts: dict[str, str], interval: int, starts: datetime) -> str:
    unit = UNITS[parts["FREQ"]]
    days = _days(parts, unit, starts)
    if unit in ("day", "week") and days.startswith("on every "):
        named = days.removeprefix("on every ")
        if interval == 1:
            return f"every {named}{_months(parts)}"
        if unit == "week" and named in WEEKDAYS:
            days, often = f"on {named}", f"every other {named}"
            return f"{often}{_months(parts)}" if interval == 2 else f"{every(interval, unit)} {days}{_months(parts)}"
        if unit == "week" and not named.startswith("day") and named != "weekday":
            return f"{every(interval, unit)} on {named}{_months(parts)}"
    return f"{every(interval, unit)} {days}".rstrip() + _months(parts, days)


def _days(parts: dict[str, str], unit: str, starts: datetime) -> str:
    """The days that the parts name, or that DTSTART implies."""
    named = list(filter(None, (_weekdays(parts, unit), _month_days(parts), _year_days(parts), _weeks(parts))))
    if named:
        return " that is also ".join([f"on {named[0]}", *named[1:]]) if len(named) > 1 else f"on {named[0]}"
    if unit == "week":
        return f"on every {WEEKDAYS[starts.isoweekday() % 7]}"
    if unit == "month":
        return f"on the {ordinal(starts.day)}"
    if unit == "year":
        return f"on the {ordinal(starts.day)}" if "BYMONTH" in parts else f"on {starts.day} {MONTHS[starts.month - 1]}"
    return ""


def _weekdays(parts: dict[str, str], unit: str) -> str:
    found = [match.groups() for match in _DAY.finditer(parts.get("BYDAY", ""))]
    plain = {DAY_NUMBERS[name] for number, name in found if not number}
    nth = [f"the {_place(int(number))} {WEEKDAYS[DAY_NUMBERS[name]]}" for number, name in found if number]
    if nth and unit == "year" and "BYMONTH" not in parts:
        nth[-1] += " of the year"
    return listed([*([f"every {weekdays(plain)}"] if plain else []), *nth]) if found else ""


def _place(number: int) -> str:
    return PLACES.get(number) or (f"{ordinal(-number)} to last" if number < 0 else ordinal(number))


def _month_days(parts: dict[str, str]) -> str:
    return f"the {_numbered(parts['BYMONTHDAY'], 'day')}" if "BYMONTHDAY" in parts else ""


def _year_days(parts: dict[str, str]) -> str:
    return f"the {_numbered(parts['BYYEARDAY'], 'day')} of the year" if "BYYEARDAY" in parts else ""


def _weeks(parts: dict[str, str]) -> str:
    if "BYWEEKNO" not in parts:
        return ""
    return f"days of week {_numbered(parts['BYWEEKNO'], 'week', plain=True)} of the year"


def _numbered(text: str, unit: str, *, plain: bool = False) -> str:
    numbers = [int(each) for each in text.split(",")]
    ahead = sorted(each for each in numbers if each > 0)
    back = [f"{_place(each)} {unit}" for each in sorted(numbers, reverse=True) if each < 0]
    said = [runs(ahead, [str(each) if plain else ordinal(each) for each in ahead])] if ahead else []
    return listed([*said, *back])


def _months(parts: dict[str, str], days: str = "") -> str:
    if "BYMONTH" not in parts:
        return ""
    named = months([int(each) for each in parts["BYMONTH"].split(",")])
    return f" of {named}" if days.startswith("on the ") else f" in {named}"


def _times(parts: dict[str, str], starts: datetime) -> str:
    """The times of day: those of the parts, and DTSTART's for what they leave open."""
    unit = UNITS[parts["FREQ"]]
    hours, minutes, seconds = (_values(parts, key) for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if unit in ("hour", "minute", "second"):
        return _limits(hours, minutes, seconds)
    hours, minutes, seconds = hours or [starts.hour], minutes or [starts.minute], seconds or [starts.second]
    if len(hours) * len(minutes) * len(seconds) <= 12:
        return f"at {listed([clock(time(h, m, s)) for h in hours for m in minutes for s in seconds])}"
    return "at " + _limits(hours, minutes, seconds).removeprefix("in ")


def _values(parts: dict[str, str], key: str) -> list[int]:
    return [int(each) for each in parts[key].split(",")] if key in parts else []


def _limits(hours: list[int], minutes: list[int], seconds: list[int]) -> str:
    said = [
        f"{unit}{'' if len(values) == 1 else 's'} {runs(values, [f'{each:02}' for each in values])}"
        for values, unit in ((hours, "hour"), (minutes, "minute"), (seconds, "second"))
        if values
    ]
    return f"in {', '.join(said)}" if said else ""


def _positions(parts: dict[str, str]) -> str:
    if "BYSETPOS" not in parts:
        return ""
    places = [_place(int(each)) for each in parts["BYSETPOS"].split(",")]
    return f"(only the {listed(places)} of these days in each {UNITS[parts['FREQ']]})"


def _end(parts: dict[str, str]) -> str:
    if "COUNT" in parts:
        return f", {counted(int(parts['COUNT']), 'time')}"
    if "UNTIL" in parts:
        until = parts["UNTIL"]
        return f", until {moment(datetime.strptime(until.removesuffix('Z'), '%Y%m%dT%H%M%S'))}"  # noqa: DTZ007 - a wall
    return ""
