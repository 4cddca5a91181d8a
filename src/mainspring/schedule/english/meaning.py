"""What a clause means, in the languages that mean one thing only: cron, recurrence rules, intervals and instants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from mainspring.schedule.english.reader import unclear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Set

    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader

Fields = tuple[str, str, str]  # second, minute, hour

DAY_SECONDS = 86_400
SECONDS = {"second": 1, "minute": 60, "hour": 3600}
MAX_PARTS = 24
QUARTERS = frozenset({1, 4, 7, 10})
YEAR = frozenset(range(1, 13))
WEEK = frozenset(range(7))
BYDAY = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
RULE_UNITS = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}


def field(values: Set[int], first: int, last: int) -> str:
    """A set of numbers as a list or a range; all of them as a star."""
    numbers = sorted(values)
    if len(numbers) == last - first + 1:
        return "*"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers))


def stepped(values: Set[int], size: int) -> str:
    """A set of numbers from 0 up to a size, as a step if it is one: */15, 10-50/10.

    A star is more than a spelling: on days when the clock jumps, cron treats `*/6` as elapsed time and `0,6,12,18` as
    times of day. So steps are spelled for steps only.
    """
    numbers = sorted(values)
    steps = {after - before for before, after in pairwise(numbers)}
    step = steps.pop() if len(steps) == 1 else 0
    if step > 1 and numbers[0] == 0 and len(numbers) == -(-size // step):
        return f"*/{step}"
    if step > 1 and len(numbers) > 2:
        return f"{numbers[0]}-{numbers[-1]}/{step}"
    return field(values, 0, size - 1)


def clock_fields(times: Iterable[time], spell: Callable[[Set[int], int], str]) -> list[Fields]:
    """The fewest second, minute and hour fields that together are these times of day, hours of equal minutes joined."""
    minutes: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for each in times:
        minutes[each.hour][each.minute].add(each.second)
    hours: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for hour, seconds_of in minutes.items():
        for second, minute in _minute_fields(seconds_of, spell):
            hours[second, minute].add(hour)
    return [(second, minute, _hours(set_of_hours)) for (second, minute), set_of_hours in hours.items()]


def _hours(values: set[int]) -> str:
    return "0-23" if len(values) == 24 else stepped(values, 24).replace("*/", "0-23/")


def listed_numbers(values: Set[int], size: int) -> str:
    """Times of day that were named one by one stay a list."""
    return ",".join(map(str, sorted(values))) if len(values) < size else f"0-{size - 1}"


def _minute_fields(seconds_of: dict[int, set[int]], spell: Callable[[Set[int], int], str]) -> list[tuple[str, str]]:
    groups: defaultdict[str, set[int]] = defaultdict(set)
    for minute, seconds in seconds_of.items():
        groups[spell(seconds, 60)].add(minute)
    return [(second, spell(minutes, 60)) for second, minutes in groups.items()]


def times_within(begin: time, end: time, step: int, *, has_end: bool) -> list[time]:
    """Every `step` seconds from `begin` to `end`, over midnight if the end is earlier."""
    first, last = _second_of(begin), _second_of(end)
    last += DAY_SECONDS if last < first else 0
    return [_time_at(second % DAY_SECONDS) for second in range(first, last + has_end, step)]


def _second_of(at: time) -> int:
    return at.hour * 3600 + at.minute * 60 + at.second


def _time_at(second: int) -> time:
    return time(second // 3600, second // 60 % 60, second % 60)


@dataclass(frozen=True, slots=True)
class CronMeaning:
    text: str


@dataclass(frozen=True, slots=True)
class RuleMeaning:
    """A rule of every so many days, weeks, months or years; what it is counted from is found later."""

    frequency: str
    interval: int
    rest: str
    at: time
    starts: date | None


@dataclass(frozen=True, slots=True)
class StepMeaning:
    step: timedelta
    starts: tuple[date, time | None] | None


@dataclass(frozen=True, slots=True)
class WallMeaning:
    wall: datetime


@dataclass(frozen=True, slots=True)
class DelayMeaning:
    delay: timedelta


Meaning = CronMeaning | RuleMeaning | StepMeaning | WallMeaning | DelayMeaning


def meanings_of(reader: Reader, clause: Clause) -> list[Meaning]:
    """The parts whose union is meant."""
    if clause.delay is not None:
        return [DelayMeaning(clause.delay)]
    if clause.day is not None:
        return [WallMeaning(datetime.combine(clause.day, each)) for each in clause.times or ()]
    if clause.is_within_days:
        return _steps(reader, clause)
    if clause.count > 1:
        return list(_rules(reader, clause))
    return _crons(reader, clause, clock_fields(clause.times or (), listed_numbers))


# ── cron ────────────────────────────────────────────────────────────────────────────────────────────────────


def _crons(reader: Reader, clause: Clause, clocks: list[Fields]) -> list[Meaning]:
    days = [each for part in _apart(clause.days) for each in _day_fields(reader, clause, part)]
    found: list[Meaning] = [CronMeaning(_cron(clock, day)) for day in days for clock in clocks]
    if len(found) > MAX_PARTS:
        words = f"that would take {len(found)} cron expressions; at most {MAX_PARTS} are made"
        raise unclear(
            reader.text, clause.begins, words, "Write steps that divide the hour, as in", ("every 15 minutes",)
        )
    return found


def _cron(clock: Fields, day: tuple[str, str, str]) -> str:
    second, minute, hour = clock
    five = f"{minute} {hour} {' '.join(day)}"
    return five if second == "0" else f"{second} {five}"


def _apart(days: Days | None) -> list[Days | None]:
    """Dates in a year, one group for each day of the month; anything else as it is."""
    if days is None or not days.dates:
        return [days]
    groups: dict[int, frozenset[int]] = {}
    for month, day in days.dates:
        groups[day] = groups.get(day, frozenset()) | {month}
    return [replace(days, dates=(), of_month=(str(day),), months=months) for day, months in groups.items()]


def _day_fields(reader: Reader, clause: Clause, days: Days | None) -> Iterator[tuple[str, str, str]]:
    """The day-of-month, month and day-of-week fields."""
    months = ((days and days.months) or clause.months or (QUARTERS if clause.unit == "quarter" else YEAR)) - (
        clause.except_months or frozenset()
    )
    weekdays = ((days and days.weekdays) or WEEK) - (clause.except_weekdays or frozenset())
    if not months or not weekdays:
        raise unclear(
            reader.text, clause.begins, "no day is left", "Leave out less, as in", ("every day except sunday at 09:00",)
        )
    of_month = ",".join(days.of_month) if days else ""
    of_week = ",".join(days.weekdays_of_month) if days else ""
    month = field(months, 1, 12)
    if of_month or of_week:
        yield of_month or "*", month, of_week or "*"
    else:
        yield "*", month, field(weekdays, 0, 6)


# ── every so many minutes ───────────────────────────────────────────────────────────────────────────────────


def _steps(reader: Reader, clause: Clause) -> list[Meaning]:
    step = SECONDS[clause.unit or ""] * clause.count
    if clause.window is not None:
        return _crons(reader, clause, _clocks_in_window(reader, clause, step))
    whole = _whole_day(step, clause)
    if whole is not None:
        return _crons(reader, clause, whole)
    if clause.days or clause.months or clause.except_weekdays or clause.except_months or clause.minutes_past:
        words = "that step does not divide the hour or the day, so it is not clear where each day would begin"
        forms = ("every 30 minutes on weekdays", "every 90 minutes between 8am and 6pm on weekdays")
        raise unclear(reader.text, clause.begins, words, "Write", forms)
    return [StepMeaning(timedelta(seconds=step), clause.starts)]


def _whole_day(step: int, clause: Clause) -> list[Fields] | None:
    """Steps that divide the minute, the hour or the day are the same every day; others have to be counted."""
    if step < 60 and 60 % step == 0:
        return [(stepped(set(range(0, 60, step)), 60), "*", "*")]
    if step % 60 == 0 and step < 3600 and 3600 % step == 0:
        return [("0", stepped(set(range(0, 60, step // 60)), 60), "*")]
    if step % 3600 == 0 and step < 86_400 and 86_400 % step == 0:
        minutes = field(set(clause.minutes_past or [0]), 0, 59)
        return [("0", minutes, stepped(set(range(0, 24, step // 3600)), 24))]
    return None


def _clocks_in_window(reader: Reader, clause: Clause, step: int) -> list[Fields]:
    window = clause.window
    assert window is not None
    if window.end < window.begin and (clause.days or clause.months or clause.except_weekdays or clause.except_months):
        words = "the hours after midnight may belong to either day"
        raise unclear(
            reader.text, clause.begins, words, "Name them apart, as in", ("every hour from 22:00 to 23:00 on fridays",)
        )
    times = times_within(window.begin, window.end, step, has_end=window.has_end)
    if clause.minutes_past is not None:
        times = [each.replace(minute=minute) for each in times for minute in clause.minutes_past]
        times = [each for each in times if window.begin <= each <= window.end]
    return clock_fields(times, stepped)


# ── every other … ───────────────────────────────────────────────────────────────────────────────────────────


def _rules(reader: Reader, clause: Clause) -> Iterator[Meaning]:
    for rest in _rule_days(reader, clause):
        for at in clause.times or ():
            starts = clause.starts[0] if clause.starts else None
            yield RuleMeaning(RULE_UNITS[clause.unit or ""], clause.count, rest, at, starts)


def _rule_days(reader: Reader, clause: Clause) -> list[str]:
    """What the rule says besides frequency, interval and time, one text for each rule that is needed."""
    days = clause.days
    if clause.except_weekdays or clause.except_months or clause.months:
        words = "'every other' and a restriction to some months or days may be counted in two ways"
        raise unclear(reader.text, clause.begins, words, "Write", ("every other tuesday at noon",))
    if clause.unit == "day":
        if days is not None:
            raise _uncountable(reader, clause)
        return [""]
    assert days is not None
    if clause.unit == "week":
        return [";BYDAY=" + ",".join(BYDAY[day] for day in sorted(days.weekdays))]
    if clause.unit == "year":
        return [f";BYMONTH={month};BYMONTHDAY={day}" for month, day in _dates(reader, clause, days)]
    return [_rule_day_of_month(reader, clause, item) for item in (*days.of_month, *days.weekdays_of_month)]


def _dates(reader: Reader, clause: Clause, days: Days) -> list[tuple[int, int]]:
    if days.dates:
        return list(days.dates)
    if days.weekdays_of_month or not all(item.isdigit() for item in days.of_month):
        raise _uncountable(reader, clause)
    return [(month, int(day)) for month in sorted(days.months) for day in days.of_month]


def _rule_day_of_month(reader: Reader, clause: Clause, item: str) -> str:
    if item.isdigit():
        return f";BYMONTHDAY={item}"
    if item.startswith("L") and item != "LW":
        return f";BYMONTHDAY=-{int(item[2:] or 0) + 1}"
    if item == "LW":
        return ";BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"
    if "#" in item:
        return f";BYDAY={item[2:]}{BYDAY[int(item[0])]}"
    if item.endswith("L"):
        return f";BYDAY=-1{BYDAY[int(item[0])]}"
    raise _uncountable(reader, clause)


def _uncountable(reader: Reader, clause: Clause) -> Exception:
    forms = ("every other day at 09:00", "every other tuesday at noon", "every 2 months on the 1st at 09:00")
    return unclear(
        reader.text, clause.begins, "those days cannot be counted by twos or more", "Write, for example,", forms
    )
