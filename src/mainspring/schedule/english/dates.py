"""One day or one moment: `tomorrow`, `2026-12-24`, `24 december 2026`, `in 3 days`, `in 15 minutes`."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.days import LONGEST
from mainspring.schedule.english.refusals import Refusal, needs_now
from mainspring.schedule.english.spans import read_count, read_span
from mainspring.schedule.english.vocabulary import DAY_NUMBERS, MONTH_NUMBERS, PARTS_OF_DAY, UNIT_WORDS
from mainspring.schedule.timeline import LATEST
from mainspring.schedule.walls import months_after

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

A_DATE = "a date such as 2026-12-24"
LAST_YEAR = LATEST.year - 1  # nothing fires later
DAYS_AND_MORE = {word: unit for word, unit in UNIT_WORDS.items() if unit in ("day", "week", "month", "year")}


def read_date(reader: Reader, today: date | None) -> date | None:
    """A day that is one day: by its date, or by its distance from today."""
    reader.skip("on")
    return (
        reader.attempt(_written)
        or reader.attempt(_slashed)
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


def _slashed(reader: Reader) -> date | None:
    """`24/12/2026`: which is the month depends on the country."""
    tokens = [reader.after(step) for step in range(5)]
    if [token.text for token in tokens[1:4:2]] not in (["/", "/"], [".", "."]):
        return None
    if any(token.kind != "number" for token in tokens[::2]) or len(tokens[4].text) != 4:
        return None
    one, two, year = (token.text for token in tokens[::2])
    dates = [f"{year}-{month:0>2}-{day:0>2}" for day, month in ((one, two), (two, one)) if int(month[:3]) <= 12]
    rewrites = [reader.replaced(tokens[0], tokens[4], each) for each in dict.fromkeys(dates)]
    words = "which of the two is the month depends on the country"
    raise Refusal(reader.text, tokens[0].at, words, rewrites=rewrites)


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
    if not 1970 <= year <= LAST_YEAR:
        raise year_out_of_range(reader.text, token.at, f"{year:04} is not a year of schedules")
    try:
        return date(year, month, day)
    except ValueError as error:
        last = reader.tokens[reader.place - 1]
        rewrites = [reader.replaced(token, last, each.isoformat()) for each in _near(year, month, day)]
        raise Refusal(reader.text, token.at, f"there is no such date ({error})", rewrites=rewrites) from error


def _near(year: int, month: int, day: int) -> list[date]:
    """The date that was meant, perhaps: month and day the other way round, or the last day of the month."""
    if month > 12:
        return [date(year, day, month)] if 1 <= day <= 12 and month <= LONGEST[day - 1] and day != 2 else []
    return [date(year, month, min(LONGEST[month - 1], 28 if month == 2 else 31))] if month and day else []


def _relative(reader: Reader, today: date | None) -> date | None:
    at = reader.token.at
    if reader.word("today") or reader.word("tonight"):
        return _counted(reader, at, today, 0)
    if reader.is_next(("this",)) and reader.after(1).text in PARTS_OF_DAY:
        reader.place += 2
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
    """`in 3 days`, `a week from now`, `in 2 months`: on the same day of the month, or on the last one."""
    at, is_in = reader.token.at, reader.word("in", want="'in' and a span of time")
    count = reader.attempt(read_count)
    unit = None if count is None else reader.one_of(DAYS_AND_MORE, "days, weeks or months")
    if count is None or unit is None or not (is_in or _from_now(reader)):
        return None
    if unit in ("day", "week"):
        return _counted(reader, at, today, count * (7 if unit == "week" else 1))
    day, months = _counted(reader, at, today, 0), count * (12 if unit == "year" else 1)
    if exceeds_last_year(day, months):
        raise year_out_of_range(reader.text, at, f"that day is after the year {LAST_YEAR}")
    return months_after(day, months)


def year_out_of_range(text: str, at: int, problem: str) -> Refusal:
    remedy = f"Schedules end with the year {LAST_YEAR}: name a day from 1970-01-01 to {LAST_YEAR}-12-31."
    return Refusal(text, at, problem, remedy=remedy, is_beyond_years=True)


def exceeds_last_year(day: date, months: int) -> bool:
    """Whether so many months later it is a year after the last, or even beyond those of `date`."""
    return day.year + (day.month - 1 + months) // 12 > LAST_YEAR


def read_delay(reader: Reader) -> timedelta | None:
    """`in 15 minutes`, `an hour from now`, `in 1 hour and 30 minutes`: elapsed time from now on."""
    is_in = reader.word("in", want="'in' and a span of time")
    seconds = reader.attempt(read_span)
    return timedelta(seconds=seconds) if seconds is not None and (is_in or _from_now(reader)) else None


def _from_now(reader: Reader) -> bool:
    return reader.words("from", "now") or reader.words("from", "today")


def _next_weekday(reader: Reader, today: date | None) -> date | None:
    """`next friday` is this week's to one person and next week's to another."""
    token = reader.token
    if not reader.word("next", "this", "coming", want="a date"):
        return None
    weekday = reader.one_of(DAY_NUMBERS, "a day of the week")
    if weekday is None:
        return None
    raise which_of_two(reader, token, weekday, today)


def which_of_two(reader: Reader, first: Token, weekday: int, today: date | None) -> Refusal:
    """`next friday`, `until friday`: the coming one, or that of the week after."""
    today = _counted(reader, first.at, today, 0)
    coming = today + timedelta(days=(weekday - today.isoweekday()) % 7 or 7)
    dates = (coming, coming + timedelta(days=7))
    before, last = reader.tokens[max(0, first.place - 1)], reader.tokens[reader.place - 1]
    words = f"'{reader.text[first.at : last.end].lower()}' may be {dates[0]} or {dates[1]}"
    on = "" if before.text in ("until", "till", "til", "through", "ending", "before") else "on "
    rewrites = [reader.replaced(before if before.text == "on" else first, last, f"{on}{day}") for day in dates]
    examples = [f"on {day} at 09:00" for day in dates]
    return Refusal(reader.text, first.at, words, rewrites=rewrites, examples=examples)


def coming_date(today: date | None, month: int, day: int) -> date | None:
    """The first such day from today on."""
    if today is None:
        return None
    for year in range(today.year, today.year + 9):
        try:
            found = date(year, month, day)
        except ValueError:  # 29 February
            continue
        if found >= today:
            return found
    return None
