"""Recurrence rules, intervals and instants in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from mainspring.schedule.interval import DEFAULT_ANCHOR
from mainspring.schedule.rule import local_date, read_wall
from mainspring.schedule.rule_days import numbers, with_implied
from mainspring.schedule.walls import month_length
from mainspring.schedule.words.phrases import (
    MONTHS,
    WEEKDAYS,
    WHERE_THERE_IS_ONE,
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
LENGTHS = {"HOURLY": 3_600, "MINUTELY": 60, "SECONDLY": 1}
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


def rule_words(rule: Rule, zone: ZoneInfo) -> str:
    """`every other Tuesday at 12:00, counted from 17 November 2026`; clock times are those of the rule's own zone."""
    zone, parts = rule.zone_in(zone), with_implied(rule.by_key, rule.starts)
    words = [_how_often(parts), _times(parts, rule.starts), _positions(parts)]
    sentence = " ".join(filter(None, words)).removesuffix(",") + _beginning(parts, rule.starts) + _end(parts, zone)
    if rule.added:
        sentence += f", also on {listed([moment(rule.wall_added(each, zone)) for each in rule.added])}"
    return sentence + (f", but not on {listed([_date(each, zone) for each in rule.without])}" if rule.without else "")


def _how_often(parts: dict[str, str]) -> str:
    """How often, and on which days. Steps and positions count in the rule's own unit; else the days say it all."""
    unit, interval = UNITS[parts["FREQ"]], int(parts.get("INTERVAL", "1"))
    within_a_day = unit in ("hour", "minute", "second")
    if within_a_day or interval > 1 or "BYSETPOS" in parts:
        return _in_steps(parts, unit, interval)
    unit = _unit_of_days(parts)
    if unit in ("day", "week"):
        return f"{_weekdays(parts) or 'every day'}{_months(parts)}"
    days = _days(parts, unit)
    return days if days.startswith("every ") and " that is also " in days else f"every {unit} on {days}"


def _in_steps(parts: dict[str, str], unit: str, interval: int) -> str:
    often, days = every(interval, unit), _days(parts, unit)
    if unit == "week" and days.startswith("every ") and days.removeprefix("every ") in WEEKDAYS and interval == 2:
        return often.replace("week", days.removeprefix("every "))
    if unit == "week" and _weekday_names(parts):
        days = days.replace(_weekdays(parts), _weekday_names(parts), 1)
    if not days or days.startswith("in "):
        return f"{often} {days}".rstrip()
    is_filter = unit == "day" or (unit == "week" and bool(parts.keys() & {"BYMONTHDAY", "BYYEARDAY"}))
    return f"{often}, only on {days.removesuffix(',')}," if is_filter else f"{often} on {days}"


def _unit_of_days(parts: dict[str, str]) -> str:
    """What the days recur by, whatever FREQ says: the 1st of a month comes every month, also in a yearly rule."""
    is_numbered = "the " in _weekdays(parts)
    if "BYYEARDAY" in parts or "BYWEEKNO" in parts:
        return "year"
    if is_numbered or "BYMONTHDAY" in parts:
        return "year" if "BYMONTH" in parts or (is_numbered and parts["FREQ"] == "YEARLY") else "month"
    return "week" if "BYDAY" in parts else "day"


def _days(parts: dict[str, str], unit: str) -> str:
    """The days that the parts name; several kinds of them all have to hold."""
    missing = WHERE_THERE_IS_ONE if _may_be_missing(parts) else ""
    if date := _date_of_year(parts):
        return f"{date}{missing}"
    on_weekdays = (_weekday_names(parts) if "BYWEEKNO" in parts else "") or _weekdays(parts)
    named = list(filter(None, (on_weekdays, _month_days(parts), _year_days(parts))))
    of_month = " of every month" if unit == "year" and "BYMONTHDAY" in parts and "BYMONTH" not in parts else ""
    months, weeks = _months(parts, " of " if named and not named[-1].startswith("every ") else " in "), _weeks(parts)
    return f"{' that is also '.join(named)}{of_month}{weeks}{months}{missing}".strip()


def _may_be_missing(parts: dict[str, str]) -> bool:
    """Whether some months or years do not have one of the days: a 31st, a fifth Monday, a week 53."""
    shortest = min(month_length(2001, month) for month in _values(parts, "BYMONTH") or range(1, 13))
    of_month = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts
    weekdays = [int(number) for number, _ in _DAY.findall(parts.get("BYDAY", "")) if number]
    limits = (("BYMONTHDAY", shortest), ("BYYEARDAY", 365), ("BYWEEKNO", 52))
    too_far = any(abs(each) > most for key, most in limits for each in _values(parts, key))
    return too_far or any(abs(each) > (4 if of_month else 52) for each in weekdays)


def _date_of_year(parts: dict[str, str]) -> str:
    """`17 November`, if that is all there is."""
    one = [parts.get(key, "") for key in ("BYMONTH", "BYMONTHDAY")]
    if parts.keys() & {"BYDAY", "BYYEARDAY", "BYWEEKNO"} or not all(each.isdigit() for each in one):
        return ""
    return f"{one[1]} {MONTHS[int(one[0]) - 1]}"


def _weekdays(parts: dict[str, str]) -> str:
    found = [match.groups() for match in _DAY.finditer(parts.get("BYDAY", ""))]
    plain = {DAY_NUMBERS[name] for number, name in found if not number}
    numbered = [(int(number), DAY_NUMBERS[name]) for number, name in found if number]
    nth = [f"the {_place(number)} {WEEKDAYS[each]}" for number, each in numbered if each not in plain]
    if nth and parts["FREQ"] == "YEARLY" and "BYMONTH" not in parts:
        nth[-1] += " of the year"
    return listed([*([f"every {weekdays(plain)}"] if plain else []), *nth]) if found else ""


def _weekday_names(parts: dict[str, str]) -> str:
    """`Tuesday and Thursday`, where it reads as well as `every`."""
    names = _weekdays(parts).removeprefix("every ")
    return "" if names.startswith(("day", "weekday", "the ")) else names


def _place(number: int) -> str:
    return PLACES.get(number) or (f"{ordinal(-number)} to last" if number < 0 else ordinal(number))


def _month_days(parts: dict[str, str]) -> str:
    return f"the {_numbered(parts['BYMONTHDAY'], 'day')}" if "BYMONTHDAY" in parts else ""


def _year_days(parts: dict[str, str]) -> str:
    days = _numbered(parts["BYYEARDAY"], "day") if "BYYEARDAY" in parts else ""
    return f"the {days.removesuffix(' day')} day of the year" if days else ""


def _weeks(parts: dict[str, str]) -> str:
    if "BYWEEKNO" not in parts:
        return ""
    weeks = _values(parts, "BYWEEKNO")
    ahead = sorted(each for each in weeks if each > 0)
    back = [f"the {_place(each)} week" for each in sorted(weeks, reverse=True) if each < 0]
    said = [f"week{'s' if len(ahead) > 1 else ''} {runs(ahead, [str(each) for each in ahead])}"] if ahead else []
    return f" in {listed([*said, *back])} of the year"


def _numbered(text: str, unit: str) -> str:
    places = [int(each) for each in text.split(",")]
    ahead = sorted(each for each in places if each > 0)
    back = [f"{_place(each)} {unit}" for each in sorted(places, reverse=True) if each < 0]
    return listed([*([runs(ahead, [ordinal(each) for each in ahead])] if ahead else []), *back])


def _months(parts: dict[str, str], preposition: str = " in ") -> str:
    return f"{preposition}{months(_values(parts, 'BYMONTH'))}" if "BYMONTH" in parts else ""


def _times(parts: dict[str, str], starts: datetime) -> str:
    """The times of day: those of the parts, and DTSTART's for what they leave open."""
    unit = UNITS[parts["FREQ"]]
    hours, minutes, seconds = (_values(parts, key) for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if unit in ("hour", "minute", "second"):
        is_counted = "INTERVAL" in parts  # then the words say from when on
        minutes = minutes or ([starts.minute] if unit == "hour" and starts.minute and not is_counted else [])
        seconds = seconds or ([starts.second] if unit != "second" and starts.second and not is_counted else [])
        return _limits(hours, minutes, seconds)
    hours, minutes, seconds = hours or [starts.hour], minutes or [starts.minute], seconds or [starts.second]
    if len(hours) * len(minutes) * len(seconds) <= 12:
        return f"at {listed([clock(time(h, m, s)) for h in hours for m in minutes for s in seconds])}"
    return "at " + _limits(hours, minutes, seconds).removeprefix("in ")


def _values(parts: dict[str, str], key: str) -> list[int]:
    return list(numbers(parts, key))


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


def _beginning(parts: dict[str, str], starts: datetime) -> str:
    """Where steps are counted from, unless every day has the same anyway; or when the rule begins."""
    length = LENGTHS.get(parts["FREQ"])
    if "INTERVAL" not in parts:
        return "" if starts == DEFAULT_ANCHOR else f", from {day(starts)} on"
    if length is None:
        return f", counted from {day(starts)}"
    is_same_every_day = 86_400 % (length * int(parts["INTERVAL"])) == 0
    return "" if starts == DEFAULT_ANCHOR and is_same_every_day else f", counted from {moment(starts)}"


def _end(parts: dict[str, str], zone: ZoneInfo) -> str:
    if "COUNT" in parts:
        return f", {counted(int(parts['COUNT']), 'time')}"
    return f", until {moment(_wall(parts['UNTIL'], zone))}" if "UNTIL" in parts else ""


def _wall(text: str, zone: ZoneInfo) -> datetime:
    """As it was written, however far away."""
    wall = read_wall(text)
    assert wall is not None
    return wall_of(zone, wall.replace(tzinfo=UTC)).replace(microsecond=0) if text.endswith("Z") else wall


def _date(text: str, zone: ZoneInfo) -> str:
    found = local_date(text, zone)
    return moment(found) if isinstance(found, datetime) else day(found)
