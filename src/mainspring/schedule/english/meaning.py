"""What a clause means, in the languages that mean one thing only: cron, recurrence rules, intervals and instants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.clause import Clause
from mainspring.schedule.english.clocks import (
    DAY_SECONDS,
    Fields,
    clock_fields,
    field,
    listed_numbers,
    second_of,
    stepped,
    time_at,
    times_within,
)
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.step_checks import check_first_step, check_whole_day, same_ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader
    from mainspring.schedule.english.times import TimeWindow

SECONDS = {"second": 1, "minute": 60, "hour": 3600}
MAX_PARTS = 24
QUARTER_BEGINS = frozenset({1, 4, 7, 10})
QUARTER_ENDS = frozenset({3, 6, 9, 12})
YEAR = frozenset(range(1, 13))
WEEK = frozenset(range(7))
BYDAY = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
RULE_UNITS = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "quarter": "MONTHLY", "year": "YEARLY"}


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
    first_months: frozenset[int] = YEAR  # in which the first may be


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


@dataclass(frozen=True, slots=True)
class PlainRuleMeaning:
    """A rule that is not counted from anywhere."""

    text: str


Meaning = CronMeaning | PlainRuleMeaning | RuleMeaning | StepMeaning | WallMeaning | DelayMeaning


def meanings_of(reader: Reader, clause: Clause) -> list[Meaning]:
    """The parts whose union is meant."""
    if clause.delay is not None:
        return [DelayMeaning(clause.delay)]
    if clause.day is not None:
        return [WallMeaning(datetime.combine(clause.day, each)) for each in clause.times or ()]
    if clause.days is not None and clause.days.if_weekdays:
        return _numbered_weekdays(reader, clause, clause.days)
    if clause.is_within_days:
        return _steps(reader, clause)
    if clause.count > 1:
        return list(_rules(reader, clause))
    return _crons(reader, clause, clock_fields(clause.times or (), listed_numbers))


def excluded_days(reader: Reader, clause: Clause) -> list[CronMeaning]:
    """Every second of the days that are left out: whatever is due on them, at whatever time, is not meant."""
    clauses = [Clause(begins=clause.begins, days=days) for days in clause.without.days]
    found = [each for one in clauses for each in _crons(reader, one, [("*", "*", "*")])]
    dates = [f"* * * {each.day} {each.month} * {each.year}" for each in clause.without.dates]
    return [*(each for each in found if isinstance(each, CronMeaning)), *map(CronMeaning, dates)]


# ── cron ────────────────────────────────────────────────────────────────────────────────────────────────────


def _crons(reader: Reader, clause: Clause, clocks: list[Fields]) -> list[Meaning]:
    days = [each for part in _apart(clause) for each in _day_fields(reader, clause, part)]
    found: list[Meaning] = [CronMeaning(_cron(clock, day)) for day in days for clock in clocks]
    if len(found) > MAX_PARTS:
        words = f"that would take {len(found)} cron expressions; at most {MAX_PARTS} are made"
        remedy = "Write steps that divide the hour."
        raise Refusal(reader.text, clause.begins, words, remedy=remedy, examples=("every 15 minutes",))
    return found


def _cron(clock: Fields, day: tuple[str, str, str]) -> str:
    second, minute, hour = clock
    five = f"{minute} {hour} {' '.join(day)}"
    return five if second == "0" else f"{second} {five}"


def _apart(clause: Clause) -> list[Days | None]:
    """Days that one cron expression can name: dates by the day of the month, those of a quarter by their month."""
    days = clause.days
    if days is not None and clause.is_quarterly:
        return list(_of_quarter(days))
    if days is None or not days.dates:
        return [days]
    groups: dict[int, frozenset[int]] = {}
    for month, day in days.dates:
        groups[day] = groups.get(day, frozenset()) | {month}
    return [replace(days, dates=(), of_month=(str(day),), months=months) for day, months in groups.items()]


def _of_quarter(days: Days) -> Iterator[Days]:
    """The last … of a quarter is in its last month, anything else in its first."""
    for months, is_last in ((QUARTER_BEGINS, False), (QUARTER_ENDS, True)):
        of_month = tuple(item for item in days.of_month if item.startswith("L") == is_last)
        of_week = tuple(item for item in days.weekdays_of_month if item.endswith("L") == is_last)
        if of_month:
            yield replace(days, of_month=of_month, weekdays_of_month=(), months=days.months or months)
        if of_week:
            yield replace(days, of_month=(), weekdays_of_month=of_week, months=days.months or months)


def _day_fields(reader: Reader, clause: Clause, days: Days | None) -> Iterator[tuple[str, str, str]]:
    """The day-of-month, month and day-of-week fields."""
    months = ((days and days.months) or clause.months or YEAR) - clause.without.months
    weekdays = ((days and days.weekdays) or WEEK) - clause.without.weekdays
    if not months or not weekdays:
        examples = ("every day except sunday at 09:00",)
        raise Refusal(reader.text, clause.begins, "no day is left", remedy="Leave out less.", examples=examples)
    of_month = days.of_month if days else ()
    of_week = days.weekdays_of_month if days else ()
    month = field(months, 1, 12)
    if of_month:  # a day of the month and a weekday in one expression would be either, or both: cron's rule
        yield ",".join(of_month), month, "*"
    if of_week:
        yield "*", month, ",".join(of_week)
    if not of_month and not of_week:
        yield "*", month, field(weekdays, 0, 6)


# ── every so many minutes ───────────────────────────────────────────────────────────────────────────────────


def _steps(reader: Reader, clause: Clause) -> list[Meaning]:
    step = SECONDS[clause.unit or ""] * clause.count
    check_first_step(reader, clause, step)
    window = clause.window
    if window is not None and window.end is None:
        check_whole_day(reader, clause, window.begin, step)
    whole = _whole_day(step, clause) if window is None or window.end is None else None
    if whole is not None:
        return _crons(reader, clause, whole)
    if window is not None:
        return _crons(reader, clause, _clocks_in_window(reader, clause, window, step))
    if clause.days or clause.months or clause.without.weekdays or clause.without.months or clause.minutes_past:
        words = "that step does not divide the hour or the day, so it is not clear where each day would begin"
        examples = ("every 30 minutes on weekdays", "every 90 minutes between 8am and 6pm on weekdays")
        raise Refusal(reader.text, clause.begins, words, examples=examples)
    if clause.offset is not None:
        words = "an offset goes with steps that divide the hour or the day"
        raise Refusal(reader.text, clause.begins, words, examples=("every 5 minutes offset by 2 minutes",))
    return [StepMeaning(timedelta(seconds=step), clause.anchor)]


def _whole_day(step: int, clause: Clause) -> list[Fields] | None:
    """Steps that divide the minute, the hour or the day are the same every day; others have to be counted."""
    first = _first_step(step, clause)
    hour, minute, second = first // 3600, first // 60 % 60, first % 60
    if step < 60 and 60 % step == 0:
        return [(stepped(set(range(second, 60, step)), 60), "*", "*")]
    if step % 60 == 0 and step < 3600 and 3600 % step == 0:
        return [(str(second), stepped(set(range(minute, 60, step // 60)), 60), "*")]
    if step % 3600 == 0 and step < 86_400 and 86_400 % step == 0:
        hours = stepped(set(range(hour, 24, step // 3600)), 24)
        if clause.minutes_past is not None:  # what it is counted from says in which hours
            return [("0", field(set(clause.minutes_past), 0, 59), hours)]
        return [(str(second), str(minute), hours)]
    return None


def _first_step(step: int, clause: Clause) -> int:
    """The second of the day with which steps begin: 0, unless it is said that they begin at another time."""
    if clause.offset is not None:
        return clause.offset
    if clause.window is not None:
        return second_of(clause.window.begin)
    return 0 if clause.first_step is None else second_of(clause.first_step) % step


def _clocks_in_window(reader: Reader, clause: Clause, window: TimeWindow, step: int) -> list[Fields]:
    begin, end, has_end = window.begin, window.end, window.has_end
    if end is None:
        end, has_end = time(23, 59, 59), True
    elif end == begin:
        raise same_ends(reader, clause, begin)
    elif end < begin and (clause.days or clause.months or clause.without.weekdays or clause.without.months):
        words = "the hours after midnight may belong to either day"
        examples = ("every hour from 22:00 to 23:00 on fridays",)
        raise Refusal(reader.text, clause.begins, words, remedy="Name them apart.", examples=examples)
    if clause.minutes_past is None:
        return clock_fields(times_within(begin, end, step, has_end=has_end), stepped)
    return clock_fields(_minutes_past_within(clause.minutes_past, begin, end, step, has_end=has_end), stepped)


def _minutes_past_within(minutes: list[int], begin: time, end: time, step: int, *, has_end: bool) -> list[time]:
    """Those minutes of every so many hours, within the window only."""
    first, last = second_of(begin), second_of(end)
    last += DAY_SECONDS if last < first else 0
    hours = range(first - first % 3600, last + 1, step)
    found = [hour + 60 * minute for hour in hours for minute in minutes]
    return [time_at(second % DAY_SECONDS) for second in found if first <= second < last + has_end]


# ── every other … ───────────────────────────────────────────────────────────────────────────────────────────


def _rules(reader: Reader, clause: Clause) -> Iterator[Meaning]:
    for rest in _rule_days(reader, clause):
        for at in clause.times or ():
            frequency, count = RULE_UNITS[clause.unit or ""], clause.count
            if clause.unit == "quarter":
                months = QUARTER_ENDS if "=-" in rest else QUARTER_BEGINS  # the last … is in its last month
                yield RuleMeaning(frequency, 3 * count, rest, at, months)
            else:
                yield RuleMeaning(frequency, count, rest, at)


def _rule_days(reader: Reader, clause: Clause) -> list[str]:
    """What the rule says besides frequency, interval and time, one text for each rule that is needed."""
    days = clause.days
    if clause.without.weekdays or clause.without.months or clause.months:
        words = "'every other' and a restriction to some months or days may be counted in two ways"
        raise Refusal(reader.text, clause.begins, words, examples=("every other tuesday at noon",))
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


def _numbered_weekdays(reader: Reader, clause: Clause, days: Days) -> list[Meaning]:
    """`friday the 13th`. Cron has either of the two, where one of them is enough; a rule has both."""
    if clause.is_within_days or clause.count > 1 or clause.without.months:
        words = "a weekday with its number goes with times of day"
        raise Refusal(reader.text, clause.begins, words, examples=("every friday the 13th at 09:00",))
    named = days.months or clause.months or YEAR
    within = "" if named == YEAR else f";BYMONTH={','.join(map(str, sorted(named)))}"
    weekdays = ",".join(BYDAY[day] for day in sorted(days.if_weekdays))
    rule = f"RRULE:FREQ=MONTHLY{within};BYMONTHDAY={','.join(days.of_month)};BYDAY={weekdays}"
    times = [f";BYHOUR={at.hour};BYMINUTE={at.minute};BYSECOND={at.second}" for at in clause.times or ()]
    return [PlainRuleMeaning(f"{rule}{each}") for each in times]


def _uncountable(reader: Reader, clause: Clause) -> Refusal:
    examples = ("every other day at 09:00", "every other tuesday at noon", "every 2 months on the 1st at 09:00")
    return Refusal(reader.text, clause.begins, "those days cannot be counted by twos or more", examples=examples)
