"""From when to when, and how often at all: `starting 2026-12-01`, `until 1 march`, `for 10 days`, `10 times`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.dates import coming_date, read_date, which_of_two
from mainspring.schedule.english.days import LONGEST, read_days
from mainspring.schedule.english.refusals import Refusal, needs_now
from mainspring.schedule.english.spans import A_UNIT, read_count, read_span, read_unit
from mainspring.schedule.english.times import read_time, read_times
from mainspring.schedule.english.vocabulary import MONTHS
from mainspring.schedule.interval import Span

if TYPE_CHECKING:
    from datetime import date, time

    from mainspring.schedule.english.reader import Reader

Start = tuple["date", "time | None"]
UNTIL = ("until", "till", "til", "through", "ending", "before")


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where it starts; or, for `counted from`, only what it is counted from.

    `from …` is a bound and no more, as in the words for a schedule. With `starting …` steps begin there as well.
    """

    at: Start
    is_counted: bool
    is_bound: bool


@dataclass(frozen=True, slots=True)
class End:
    """The first day, or the first moment of a day, that does not belong to it any more."""

    day: date
    at: time | None = None


@dataclass(frozen=True, slots=True)
class Length:
    """How long it goes on, counted from where it starts; and the words that say so."""

    span: Span
    said: str


def read_start(reader: Reader, today: date | None, *, with_time: bool) -> Beginning | None:
    """`starting 2026-12-01`, `starting tomorrow at 08:00`, `from 1 january 2027 on`, `counted from …`."""
    first = reader.token
    is_counted = reader.words("counted", "from")
    if not is_counted and not reader.word("starting", "beginning", "from", "since", want="'starting'"):
        return None
    reader.skip("on", "from")
    day = reader.attempt(lambda reader: read_date(reader, today))
    if day is None:
        return None
    times = reader.attempt(read_times) if with_time else None
    at = reader.attempt(read_time) if times is None else times[0]
    is_bound = reader.skip("on", "onwards", "onward") or first.text in ("from", "since")
    return Beginning((day, at), is_counted, is_bound)


def read_stretch(reader: Reader, today: date | None) -> tuple[Start, End] | None:
    """`from 2026-12-01 to 2026-12-24`: both days included."""
    between = reader.word("between", want="'between' and two times")
    if not between and not reader.word("from", want="'from' and two times"):
        return None
    joins = ("and",) if between else ("to", "until", "till", "through", "-", "–")
    _refuse_days_of_year(reader, joins, today)
    first = reader.attempt(lambda reader: read_date(reader, today))
    if first is None or not reader.word(*joins):
        return None
    last = reader.attempt(lambda reader: read_date(reader, today))
    return None if last is None else ((first, None), End(last + timedelta(days=1)))


def _refuse_days_of_year(reader: Reader, joins: tuple[str, ...], today: date | None) -> None:
    """`from june 1 to august 31` may be this year or every year."""
    place, said = reader.place, reader.tokens[reader.place - 1]
    days = _days_of_year(reader, joins)
    end, following = reader.tokens[reader.place - 1], reader.token
    reader.place = place
    if len(days) != 2 or following.kind == "number":  # a year
        return
    first, last = days
    written = [f"in {MONTHS[first[0] - 1]} to {MONTHS[last[0] - 1]}"] if _are_whole_months(first, last) else []
    begins = coming_date(today, *first)
    ends = coming_date(begins, *last)
    if begins is not None and ends is not None:
        written.append(f"from {begins} to {ends}")
    words = "days without a year may be those of one year, or of every year"
    remedy = "Of every year, whole months can be named; other days can be kept in a calendar: only=NAME."
    rewrites = [reader.replaced(said, end, each) for each in written]
    raise Refusal(reader.text, said.at, words, remedy=remedy, rewrites=rewrites)


def _days_of_year(reader: Reader, joins: tuple[str, ...]) -> list[tuple[int, int]]:
    """`1 june and 31 august` are read as a list, `1 june` and `to 31 august` one by one."""
    first = reader.attempt(read_days)
    last = reader.attempt(read_days) if first is not None and reader.skip(*joins) else None
    return [date for days in (first, last) if days is not None for date in days.dates]


def _are_whole_months(first: tuple[int, int], last: tuple[int, int]) -> bool:
    return first[1] == 1 and last[1] == LONGEST[last[0] - 1] and first[0] != last[0]


def read_end(reader: Reader, today: date | None) -> End | None:
    """`until 2027-03-01` with that day, as calendars have it; `before 2027-03-01` without it."""
    said = reader.token
    if not reader.word(*UNTIL, want="'until' and a date"):
        return None
    is_before = reader.word("before") is not None or said.text == "before"
    day = reader.attempt(lambda reader: read_date(reader, today)) or reader.attempt(
        lambda reader: _day_to_come(reader, today)
    )
    if day is None:
        return None
    times = reader.attempt(read_times)
    if times is None:
        return End(day if is_before else day + timedelta(days=1))
    if is_before:
        return End(day, times[0])
    raise Refusal(
        reader.text,
        said.at,
        f"'{said.text}' may or may not include the last moment",
        remedy="'until' and a day includes the day.",
        rewrites=[reader.replaced(said, said, "until before")],
    )


def _day_to_come(reader: Reader, today: date | None) -> date | None:
    """`1 march`: the next one."""
    at = reader.token.at
    first = reader.token
    days = read_days(reader)
    if days is not None and len(days.weekdays) == 1 and not days.recurs:
        raise which_of_two(reader, first, next(iter(days.weekdays)), today)
    if days is None or len(days.dates) != 1:
        return None
    if today is None:
        raise needs_now(reader.text, at)
    return coming_date(today, *days.dates[0])


def read_length(reader: Reader) -> Length | None:
    """`for 10 days`, `over the next 2 weeks`, `for an hour and a half`."""
    first = reader.token
    is_for = reader.word("for", want="'for' and a span of time") is not None
    if not is_for and not reader.skip("over", "during"):
        return None
    is_next = reader.skip("the") and reader.skip("next")
    if not is_for and not is_next:
        return None
    seconds = reader.attempt(read_span)
    span = reader.attempt(_days_or_months) if seconds is None else Span(elapsed=timedelta(seconds=seconds))
    if span is None:
        return None
    return Length(span, reader.text[first.at : reader.tokens[reader.place - 1].end])


def _days_or_months(reader: Reader) -> Span | None:
    count = reader.attempt(read_count)
    if count is None:
        return None
    if reader.word("fortnight", "fortnights", want=A_UNIT):
        return Span(days=14 * count)
    match reader.attempt(read_unit):
        case "day":
            return Span(days=count)
        case "week":
            return Span(days=7 * count)
        case "month":
            return Span(months=count)
        case "year":
            return Span(months=12 * count)
        case _:
            return None


def read_runs(reader: Reader) -> int | None:
    """`10 times`, `at most 10 times`, `once only`; not the `3 times` of `3 times a day`."""
    if reader.words("once", "only") or reader.words("only", "once"):
        return 1
    if not reader.words("at", "most"):
        reader.skip("for", "only")
    count = reader.attempt(read_count)
    if count is None or not reader.word("times", "time", "runs", "occurrences"):
        return None
    return None if reader.is_next(("a", "an", "per", "every", "each", "daily")) else count
