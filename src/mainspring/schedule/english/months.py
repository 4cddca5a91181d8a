"""Months: `in june and july`, `in june to august`, `of the month`."""

from __future__ import annotations

from dataclasses import dataclass

from mainspring.schedule.english.reader import Reader, listed
from mainspring.schedule.english.vocabulary import MONTH_NUMBERS

A_MONTH = "a month"
TO = ("to", "through", "-", "–")


def read_month(reader: Reader) -> int | None:
    return reader.one_of(MONTH_NUMBERS, A_MONTH)


def read_months(reader: Reader) -> frozenset[int] | None:
    """`in june`, `of june and july`, `in june to august`, `from june to august`; `of the month` is all of them."""
    if reader.is_next(("from",)) and reader.after(2).text in TO:
        reader.place += 1
        return read_month_names(reader)
    if not reader.word("in", "during", "of", want="'in' and a month"):
        return None
    is_any = reader.attempt(_any_month)
    return read_month_names(reader) if is_any is None else is_any


def _any_month(reader: Reader) -> frozenset[int] | None:
    reader.skip("the", "every", "each")
    return frozenset(range(1, 13)) if reader.word("month") else None


def read_month_names(reader: Reader) -> frozenset[int] | None:
    found = listed(reader, _some_months)
    return None if found is None else frozenset().union(*found)


def _some_months(reader: Reader) -> frozenset[int] | None:
    reader.skip("in")
    first = read_month(reader)
    if first is None:
        return None
    last = reader.attempt(lambda reader: read_month(reader) if reader.word(*TO) else None)
    count = 1 if last is None else (last - first) % 12 + 1
    return frozenset((first - 1 + step) % 12 + 1 for step in range(count))


@dataclass(frozen=True, slots=True)
class OfMonths:
    """Which months a day is in: some, each of them, or those of the quarters."""

    months: frozenset[int] = frozenset()
    recurs: bool = False
    is_quarter: bool = False


def read_of_months(reader: Reader) -> OfMonths | None:
    """`of the month`, `of every month`, `of month`, `of the quarter`, `of january and july`."""
    if not reader.word("of", "in"):
        return None
    said = reader.word("the", "every", "each", "a")
    unit = reader.word("month", "quarter")
    if unit is not None:
        return OfMonths(recurs=True, is_quarter=unit == "quarter")
    months = None if said else read_month_names(reader)
    return None if months is None else OfMonths(months=months)
