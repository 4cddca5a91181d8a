"""One day or one moment: `tomorrow`, `2026-12-24`, `24 december 2026`, `in 3 days`, `in 15 minutes`."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.days import LONGEST
from mainspring.schedule.english.reader import needs_now, unclear
from mainspring.schedule.english.vocabulary import DAY_NUMBERS, MONTH_NUMBERS, NUMBERS, UNIT_WORDS, WEEKDAYS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

A_DATE = "a date such as 2026-12-24"
MAX_COUNT = 10_000
LAST_YEAR = 2999


def read_date(reader: Reader, today: date | None) -> date | None:
    """A day that is one day: by its date, or by its distance from today."""
    reader.skip("on")
    return (
        reader.attempt(_written)
        or reader.attempt(_spelled)
        or reader.attempt(lambda reader: _relative(reader, today))
        or reader.attempt(lambda reader: _in_days(reader, today))
        or reader.attempt(lambda reader: _next_weekday(reader, today))
    )


def _written(reader: Reader) -> date | None:
    token = reader.kind("date", A_DATE)
    if token is None:
        return None
    year, month, day = map(int, token.text.split("-"))
    return _existing(reader, token, year, month, day)


def _spelled(reader: Reader) -> date | None:
    """`24 december 2026`, `december 24, 2026`: the year is what makes it one day."""
    reader.skip("the")
    token = reader.token
    month = reader.one_of(MONTH_NUMBERS, A_DATE)
    day = reader.kind("ordinal", A_DATE) or reader.kind("number", A_DATE)
    if day is None:
        return None
    reader.skip("of")
    month = month or reader.one_of(MONTH_NUMBERS, "a month")
    if month is None:
        return None
    reader.skip(",")
    year = reader.kind("number", "a year")
    if year is None or len(year.text) != 4 or len(day.text) > 4:
        return None
    return _existing(reader, token, int(year.text), month, int(day.text.rstrip("sndrth")))


def _existing(reader: Reader, token: Token, year: int, month: int, day: int) -> date:
    try:
        if not 1970 <= year <= LAST_YEAR:
            raise ValueError(f"the year must be from 1970 to {LAST_YEAR}")
        return date(year, month, day)
    except ValueError as error:
        longest = LONGEST[month - 1] if 1 <= month <= 12 else 31
        near = date(min(max(year, 1970), LAST_YEAR), min(max(month, 1), 12), min(max(day, 1), longest, 28))
        raise unclear(
            reader.text, token.at, f"there is no such date ({error})", "Write", (near.isoformat(),)
        ) from error


def _relative(reader: Reader, today: date | None) -> date | None:
    at = reader.token.at
    if reader.word("today"):
        return _counted(reader, at, today, 0)
    if reader.word("tomorrow"):
        return _counted(reader, at, today, 1)
    reader.skip("the")
    return _counted(reader, at, today, 2) if reader.words("day", "after", "tomorrow") else None


def _counted(reader: Reader, at: int, today: date | None, days: int) -> date:
    if today is None:
        raise needs_now(reader.text, at)
    return today + timedelta(days=days)


def _in_days(reader: Reader, today: date | None) -> date | None:
    """`in 3 days`, `in a week`."""
    at = reader.token.at
    count = reader.attempt(_in_count)
    unit = None if count is None else reader.one_of(UNIT_WORDS, "days or weeks")
    if count is None or unit not in ("day", "week"):
        return None
    return _counted(reader, at, today, count * (7 if unit == "week" else 1))


def read_delay(reader: Reader) -> timedelta | None:
    """`in 15 minutes`, `in an hour`: elapsed time from now on."""
    count = reader.attempt(_in_count)
    if count is None:
        return None
    if reader.word("half"):
        reader.skip("an", "a")
        return timedelta(minutes=30) if reader.word("hour") and count == 1 else None
    unit = reader.one_of(UNIT_WORDS, "seconds, minutes or hours")
    return timedelta(**{f"{unit}s": count}) if unit in ("second", "minute", "hour") else None


def _in_count(reader: Reader) -> int | None:
    if not reader.word("in", want="'in' and a span of time"):
        return None
    if reader.is_next(("half",)):
        return 1
    return read_count(reader)


def read_count(reader: Reader) -> int | None:
    named = reader.one_of(NUMBERS | {"a": 1, "an": 1}, "a number")
    if named is not None:
        return named
    token = reader.kind("number", "a number")
    if token is None:
        return None
    if len(token.text) > 9 or not 1 <= int(token.text) <= MAX_COUNT:
        raise unclear(
            reader.text, token.at, "that number is out of range", f"Write a number from 1 to {MAX_COUNT:,}.", ()
        )
    return int(token.text)


def _next_weekday(reader: Reader, today: date | None) -> date | None:
    """`next friday` is this week's to one person and next week's to another."""
    token = reader.token
    if not reader.word("next", "this", "coming", want="a date"):
        return None
    weekday = reader.one_of(DAY_NUMBERS, "a day of the week")
    if weekday is None:
        return None
    today = _counted(reader, token.at, today, 0)
    coming = today + timedelta(days=(weekday - today.isoweekday()) % 7 or 7)
    forms = tuple(f"on {day} at 09:00" for day in (coming, coming + timedelta(days=7)))
    words = f"'{token.text} {WEEKDAYS[weekday]}' may be {coming} or {coming + timedelta(days=7)}"
    raise unclear(reader.text, token.at, words, "Write the date, as in", forms)
