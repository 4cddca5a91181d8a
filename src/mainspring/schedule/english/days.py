"""Days: `weekdays`, `mondays and fridays`, `the 15th of the month`, `the last friday of the month`, `24 december`.

A day is kept as cron would write it: an item of the day-of-month field, of the day-of-week field, or a date in a year.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mainspring.schedule.english.months import OfMonths, read_month, read_of_months
from mainspring.schedule.english.reader import Reader, listed
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.vocabulary import (
    DAY_NUMBERS,
    MONTHS,
    ORDINALS,
    WEEKDAYS,
    WEEKEND,
    WORKDAYS,
)

A_WEEKDAY = "a day of the week"
LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Days:
    """Some days. `recurs` says whether the words alone mean that they come again, as plurals do."""

    weekdays: frozenset[int] = frozenset()
    of_month: tuple[str, ...] = ()  # items of cron's day-of-month field: 15, L, L-1, LW, 15W
    weekdays_of_month: tuple[str, ...] = ()  # items of cron's day-of-week field: 1#2, 5L
    dates: tuple[tuple[int, int], ...] = ()  # month and day
    if_weekdays: frozenset[int] = frozenset()  # the days of the month count only if they are one of these
    months: frozenset[int] = field(default=frozenset())
    recurs: bool = False
    of_quarter: bool = False


def read_days(reader: Reader) -> Days | None:
    """One of the ways to name days. `on` and `the` may come before it, and `at` before the end of a month."""
    if reader.is_next(("at",)) and reader.after(1).text in ("the", "end", "start", "beginning", "month"):
        reader.place += 1
    reader.skip("on")
    return (
        reader.attempt(_dates)
        or reader.attempt(_weekdays_with_number)
        or reader.attempt(_days_of_month)
        or reader.attempt(_weekdays)
        or reader.attempt(_all_days)
    )


def _all_days(reader: Reader) -> Days | None:
    return Days(weekdays=frozenset(range(7)), recurs=True) if reader.word("days") else None


# ── days of the week ────────────────────────────────────────────────────────────────────────────────────────


def _weekdays(reader: Reader) -> Days | None:
    found = listed(reader, _some_weekdays, marks=(",", "/"), loose=True)
    if found is None:
        return None
    return Days(weekdays=frozenset().union(*(days for days, _ in found)), recurs=all(plural for _, plural in found))


def _some_weekdays(reader: Reader) -> tuple[frozenset[int], bool] | None:
    if word := read_workday(reader):
        return WORKDAYS, word.endswith("s")
    if word := reader.word("weekends", "weekend", want=A_WEEKDAY):
        if word == "weekend":
            reader.skip("day", "days")
        return WEEKEND, word.endswith("s")
    is_span = reader.skip("from")
    first = reader.attempt(_weekday)
    if first is None:
        return None
    last = reader.attempt(_to_weekday)
    return None if is_span and last is None else _span(first, last)


def read_workday(reader: Reader) -> str | None:
    """`weekday`, `workdays`, `business day`, `working days`: Monday to Friday."""
    if word := reader.word("weekdays", "weekday", "workdays", "workday", want=A_WEEKDAY):
        return word
    if reader.is_next(("business", "working", "work", "week")) and reader.after(1).text in ("day", "days"):
        reader.place += 2
        return reader.tokens[reader.place - 1].text
    return None


def _span(first: tuple[int, bool], last: tuple[int, bool] | None) -> tuple[frozenset[int], bool]:
    if last is None:
        return frozenset({first[0]}), first[1]
    count = (last[0] - first[0]) % 7 + 1
    return frozenset((first[0] + step) % 7 for step in range(count)), True  # "monday to friday" is every week


def _to_weekday(reader: Reader) -> tuple[int, bool] | None:
    return _weekday(reader) if reader.word("to", "through", "thru", "-", "–", "..") else None


def _weekday(reader: Reader) -> tuple[int, bool] | None:
    """A day of the week, and whether it was a plural."""
    plurals = {f"{name}s": number for number, name in enumerate(WEEKDAYS)}
    plural = reader.token.text in plurals
    number = reader.one_of(plurals | DAY_NUMBERS, A_WEEKDAY)
    return None if number is None else (number, plural)


def _weekdays_with_number(reader: Reader) -> Days | None:
    """`friday the 13th`: that day of the month, if it is that weekday."""
    weekday = reader.attempt(_weekday)
    if weekday is None or not reader.word("the"):
        return None
    number = reader.kind("ordinal", "a day of the month such as 13th")
    if number is None or not 1 <= int(number.text[:-2]) <= 31:
        return None
    of = reader.attempt(read_of_months) or OfMonths()
    if of.is_quarter:
        return None
    return Days(
        of_month=(number.text[:-2],),
        if_weekdays=frozenset({weekday[0]}),
        months=of.months,
        recurs=of.recurs or weekday[1],
    )


# ── days of the month ───────────────────────────────────────────────────────────────────────────────────────


def _days_of_month(reader: Reader) -> Days | None:
    groups = listed(reader, _some_days_of_month)
    if groups is None:
        return None
    found = [item for group in groups for item in group]
    of = reader.attempt(read_of_months) or OfMonths()
    of_month = tuple(item for item in found if "#" not in item and not _is_last_weekday(item))
    of_week = tuple(item for item in found if item not in of_month)
    return Days(
        of_month=of_month,
        weekdays_of_month=of_week,
        months=of.months,
        recurs=of.recurs,
        of_quarter=of.is_quarter,
    )


def _is_last_weekday(item: str) -> bool:
    return len(item) == 2 and item[0].isdigit() and item[1] == "L"


def _some_days_of_month(reader: Reader) -> list[str] | None:
    reader.skip("on")
    nth = reader.attempt(_nth_weekdays) or reader.attempt(_nth_days)
    if nth is not None:
        return nth
    reader.skip("the")
    one = reader.attempt(_last) or reader.attempt(_nearest) or reader.attempt(_numbered)
    if one is None:
        return None
    last = reader.attempt(_to_numbered) if one.isdigit() else None
    return [one] if last is None else [str(day) for day in range(int(one), last + 1)]


def _to_numbered(reader: Reader) -> int | None:
    """`to the 20th`, after the 15th."""
    if not reader.word("to", "through", "thru", "-", "–"):
        return None
    reader.skip("the")
    last = reader.attempt(_numbered)
    return int(last) if last is not None and last.isdigit() else None


def _last(reader: Reader) -> str | None:
    """`last day`, `second to last day`, `last weekday`, `end of the month`."""
    if reader.is_next(("end",)) and reader.after(1).text == "of":
        reader.place += 1
        return "L"
    if reader.words("month", "end"):
        return "L"
    before = reader.attempt(_to_last)
    if before is None and not reader.word("last", want="'last'"):
        return None
    if reader.word("day"):
        return f"L-{before}" if before else "L"
    if before:
        return None
    return "LW" if read_workday(reader) in ("weekday", "workday", "day") else None


def _to_last(reader: Reader) -> int | None:
    if reader.word("penultimate", want="'second to last'"):
        return 1
    place = reader.attempt(_ordinal)
    reader.skip("to")
    return place - 1 if place and place > 1 and reader.word("last") else None


def _nearest(reader: Reader) -> str | None:
    """`weekday nearest the 15th`, `nearest weekday to the 15th`."""
    if reader.words("weekday", "nearest"):
        reader.skip("to")
    elif not (reader.words("nearest", "weekday") and reader.word("to")):
        return None
    reader.skip("the")
    number = reader.attempt(_ordinal)
    return None if number is None or not 1 <= number <= 31 else f"{number}W"


def _numbered(reader: Reader) -> str | None:
    """`15th`, `day 15`, `first day`, `first weekday`, `first of the month`."""
    if reader.word("day", want="a day of the month such as 15th"):
        token = reader.kind("number", "a day from 1 to 31")
        return str(int(token.text)) if token and 1 <= int(token.text[:4]) <= 31 else None
    if reader.is_next(("start", "beginning")) and reader.after(1).text == "of":
        reader.place += 1
        return "1"
    token, is_spelled = reader.token, reader.token.kind == "word"
    number = reader.attempt(_ordinal)
    if number is None:
        return None
    if not 1 <= number <= 31:
        examples = ("last day of the month at 18:00", "monthly on the 15th at 02:00")
        raise Refusal(reader.text, token.at, f"no month has a day {number}", examples=examples)
    if number == 1 and reader.attempt(read_workday) in ("weekday", "workday", "day"):
        return "1W"  # the weekday nearest the 1st never leaves the month: it is the first one
    is_day = reader.word("day", want="'of the month'") or not is_spelled or reader.is_next(("of",))
    return str(number) if is_day else None


def _nth_weekdays(reader: Reader) -> list[str] | None:
    """`first monday`, `first and third monday`, `2nd and last friday`, `first monday, wednesday`."""
    reader.skip("the")
    places = listed(reader, _place)
    weekdays = None if places is None else listed(reader, _one_weekday)
    if places is None or weekdays is None or not all(place == "L" or 1 <= int(place) <= 5 for place in places):
        return None
    return [f"{day}L" if place == "L" else f"{day}#{place}" for place in places for day in weekdays]


def _nth_days(reader: Reader) -> list[str] | None:
    """`first and last day`, `1st and last weekday`."""
    reader.skip("the")
    places = listed(reader, _place)
    if places is None or len(places) == 1:
        return None
    if reader.word("day", want="'day'"):
        return places if all(place == "L" or 1 <= int(place) <= 31 for place in places) else None
    workdays = {"1": "1W", "L": "LW"}
    is_workday = set(places) <= workdays.keys() and read_workday(reader) in ("weekday", "workday", "day")
    return [workdays[place] for place in places] if is_workday else None


def _one_weekday(reader: Reader) -> int | None:
    return reader.one_of(DAY_NUMBERS, A_WEEKDAY)


def _place(reader: Reader) -> str | None:
    if reader.word("last", want="'last'"):
        return "L"
    number = reader.attempt(_ordinal)
    return None if number is None else str(number)


def _ordinal(reader: Reader) -> int | None:
    named = reader.one_of(ORDINALS, "a day of the month such as 15th")
    if named is not None:
        return named
    token = reader.kind("ordinal", "a day of the month such as 15th")
    return None if token is None else int(token.text[:-2])


# ── dates in a year ────────────────────────────────────────────────────────────────────────────────────────


def _dates(reader: Reader) -> Days | None:
    found = listed(reader, _some_dates)
    return None if found is None else Days(dates=tuple(date for dates in found for date in dates))


def _some_dates(reader: Reader) -> list[tuple[int, int]] | None:
    """`24 december`, `24th of december and june`, `december 24`, and not the year that may follow."""
    reader.skip("on")
    reader.skip("the")
    at = reader.token.at
    dates = reader.attempt(_day_then_months) or reader.attempt(_month_then_day)
    for month, day in dates or ():
        if not 1 <= day <= LONGEST[month - 1]:
            name, last = MONTHS[month - 1], LONGEST[month - 1]
            examples = (f"every year on {last} {name} at 09:00",)
            raise Refusal(reader.text, at, f"{name} has no day {day}", examples=examples)
    return dates


def _day_then_months(reader: Reader) -> list[tuple[int, int]] | None:
    day = reader.attempt(_day_number)
    if day is None:
        return None
    reader.skip("of")
    months = listed(reader, read_month)
    return None if months is None else [(month, day) for month in months]


def _month_then_day(reader: Reader) -> list[tuple[int, int]] | None:
    month = read_month(reader)
    day = None if month is None else _day_number(reader)
    return None if month is None or day is None else [(month, day)]


def _day_number(reader: Reader) -> int | None:
    token = reader.kind("ordinal", "a day of the month") or reader.kind("number", "a day of the month")
    return None if token is None or len(token.text) > 4 else int(token.text.rstrip("sndrth"))
