"""What is left out: `except sundays`, `except in august`, `but not on sundays`.

Days of the week and months can be left out. For whatever else is left out there is `but not` between two schedules,
or a calendar; the refusals say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.schedule.english.days import read_days
from mainspring.schedule.english.holidays import HOLIDAYS
from mainspring.schedule.english.months import read_month_names, read_months
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.times import read_times, read_window

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

OF_THE_WHOLE = {"in", "/", "utc", "from", "until", "starting", "for", "times", "and", "or"}  # a set's parts have none
A_SET = "every day at 09:00 but not monthly on the 1st at 09:00"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Days of the week or months, one of the two."""

    weekdays: frozenset[int] | None = None
    months: frozenset[int] | None = None


def read_exclusion(reader: Reader) -> Exclusion | None:
    said = reader.token
    if not reader.word("except", "excluding", "but", "not", want="'except'"):
        return None
    reader.skip("for")
    reader.skip("not")
    months = reader.attempt(read_months) or reader.attempt(read_month_names)
    if months is not None:
        return Exclusion(months=months)
    reader.skip("on")
    reader.skip("every", "each")
    _refuse_holidays(reader, said)
    days = reader.attempt(read_days)
    if days is not None and days.weekdays:
        return Exclusion(weekdays=days.weekdays)
    first = reader.token
    if days is not None:
        raise _not_by_except(reader, said, A_SET)
    if reader.attempt(read_window):
        raise _not_by_except(reader, said, f"{{}} but not {{}} {reader.text[first.at :]}")
    if reader.attempt(read_times):
        at = "" if first.text == "at" else "at "
        raise _not_by_except(reader, said, f"{{}} but not every day {at}{reader.text[first.at :]}")
    return None


def _not_by_except(reader: Reader, said: Token, offer: str) -> Refusal:
    """`every hour except between 1am and 5am`. The offer is a set, which is no sentence and so cannot be tried here."""
    before = [token.text for token in reader.tokens if token.at < said.at]
    is_plain = reader.is_at_end and before and not set(before) & OF_THE_WHOLE
    written = offer.replace("{}", reader.text[: said.at].rstrip(" ,")) if is_plain else A_SET
    words = f"'{said.text}' takes days of the week and months"
    return Refusal(reader.text, said.at, words, remedy=f"Between two schedules there is 'but not'. Write '{written}'.")


def _refuse_holidays(reader: Reader, said: Token) -> None:
    at = next((step for step in range(3) if reader.after(step).text in HOLIDAYS), None)
    if at is None:
        return
    without = reader.replaced(said, reader.after(at), "").replace("  ", " ").strip()
    remedy = f"Keep them in a calendar and write its name behind the schedule, as in '{without} not=holidays'."
    words = f"which days are {reader.after(at).text} is not known"
    raise Refusal(reader.text, said.at, words, remedy=remedy, examples=(without,))
