"""What is left out: `except sundays`, `except in august`, `but not on 25 december`, `except on 2026-12-25`.

Days and months can be left out, not parts of a day. For these there is `but not` between two schedules, which the
refusals offer; and for days that only calendars know, a calendar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import YEAR
from mainspring.schedule.english.dates import read_date
from mainspring.schedule.english.days import Days, read_days
from mainspring.schedule.english.holidays import HOLIDAYS
from mainspring.schedule.english.months import read_month_names, read_months
from mainspring.schedule.english.reader import Rewrite, listed
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.times import read_times, read_window

if TYPE_CHECKING:
    from datetime import date

    from mainspring.schedule.english.reader import Reader, Token

OF_THE_WHOLE = {"in", "/", "utc", "from", "until", "starting", "for", "times", "and", "or"}  # a set's parts have none
JOINS = ("and", "or", "&", ",")
A_SET = "every hour but not every day at 03:00"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Days of the week, months, other days that recur, and dates."""

    weekdays: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    days: tuple[Days, ...] = ()
    dates: tuple[date, ...] = ()

    def __or__(self, other: Exclusion) -> Exclusion:
        return Exclusion(
            weekdays=self.weekdays | other.weekdays,
            months=self.months | other.months,
            days=self.days + other.days,
            dates=self.dates + other.dates,
        )


NOTHING = Exclusion()


def read_exclusion(reader: Reader, today: date | None) -> Exclusion | None:
    said = reader.token
    if not reader.word("except", "excluding", "but", "not", want="'except'"):
        return None
    reader.skip("for")
    reader.skip("not")
    found = listed(reader, lambda reader: _left_out(reader, said, today))
    if found is None:
        _refuse_times(reader, said)
    return None if found is None else reduce(or_, found)


def _left_out(reader: Reader, said: Token, today: date | None) -> Exclusion | None:
    """`in august`, `on sundays`, `25 december`, `2026-12-25`; `every` goes with the first: another begins a clause."""
    months = reader.attempt(read_months) or reader.attempt(read_month_names)
    if months is not None:
        return Exclusion(months=months)
    reader.skip("on")
    if reader.tokens[reader.place - 1].text not in JOINS:
        reader.skip("every", "each")
    _refuse_holidays(reader, said)
    return reader.attempt(lambda reader: _date(reader, today)) or reader.attempt(_days)


def _date(reader: Reader, today: date | None) -> Exclusion | None:
    at, day = reader.token.at, read_date(reader, today)
    if day is not None and day.year > YEAR.most:
        words = f"what is left out is before the year {YEAR.most + 1}"
        raise Refusal(reader.text, at, words, remedy="Let the schedule end before that day.")
    return None if day is None else Exclusion(dates=(day,))


def _days(reader: Reader) -> Exclusion | None:
    days = read_days(reader)
    if days is None:
        return None
    return Exclusion(weekdays=days.weekdays) if days.weekdays else Exclusion(days=(days,))


def _refuse_times(reader: Reader, said: Token) -> None:
    """`every hour except between 1am and 5am`, `every hour except midnight`: another schedule can be left out."""
    first, before = reader.token, reader.text[: said.at].rstrip(" ,")
    if reader.attempt(read_window):
        instead = f"{before} but not {before} {reader.text[first.at :]}"
    elif reader.attempt(read_times):
        at = "" if first.text == "at" else "at "
        instead = f"{before} but not every day {at}{reader.text[first.at :]}"
    else:
        return
    is_plain = reader.is_at_end and not {token.text for token in reader.tokens[: said.place]} & OF_THE_WHOLE
    words = f"'{said.text}' takes days and months"
    remedy = f"Between two schedules there is 'but not', as in '{A_SET}'."
    raise Refusal(reader.text, said.at, words, remedy=remedy, sets=[Rewrite(instead)] if is_plain else [])


def _refuse_holidays(reader: Reader, said: Token) -> None:
    following = [reader.after(step) for step in range(3)]  # public holidays
    named = next((token for token in following if token.text in (*HOLIDAYS, *JOINS)), None)
    if named is None or named.text in JOINS:
        return
    before = reader.tokens[reader.place - 1]  # after other days, these days alone are taken away
    without = reader.without(before if before.text in JOINS else said, named)
    remedy = f"Keep them in a calendar and write its name behind the schedule, as in '{without} not=holidays'."
    words = f"which days are {named.text} is not known"
    examples = ("every weekday at 09:00 except on 2026-12-25",)
    raise Refusal(reader.text, said.at, words, remedy=remedy, examples=examples)
