"""One clause: its parts in any order, each at most once. `every weekday at 09:00 in june`, `at 9am on mondays`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.schedule.english.dates import read_count, read_date, read_delay
from mainspring.schedule.english.days import Days, read_days, read_month_names, read_months
from mainspring.schedule.english.reader import unclear
from mainspring.schedule.english.times import TimeWindow, read_minutes_past, read_time, read_times, read_window
from mainspring.schedule.english.vocabulary import ADVERBS, AMBIGUOUS, DAY_NUMBERS, ORDINALS, UNIT_WORDS, WEEKDAYS

if TYPE_CHECKING:
    from datetime import date, time, timedelta

    from mainspring.schedule.english.reader import Reader

EVERYWHERE = "'every' and how often"


@dataclass(slots=True)
class Clause:
    """What was read so far. `begins` is where in the text."""

    begins: int
    unit: str | None = None  # every … this
    count: int = 1  # every so many of them
    days: Days | None = None
    day: date | None = None
    delay: timedelta | None = None
    times: list[time] | None = None
    minutes_past: list[int] | None = None
    window: TimeWindow | None = None
    months: frozenset[int] | None = None
    except_weekdays: frozenset[int] | None = None
    except_months: frozenset[int] | None = None
    starts: tuple[date, time | None] | None = None

    @property
    def is_within_days(self) -> bool:
        return self.unit in ("second", "minute", "hour")


def read_parts(reader: Reader, clause: Clause, today: date | None) -> None:
    """Read as many parts as there are."""
    if reader.skip("once"):
        reader.skip(",")
    while _read_part(reader, clause, today):
        if _goes_on(reader, clause):
            reader.skip(",")


def _goes_on(reader: Reader, clause: Clause) -> bool:
    """Whether a comma here only separates parts."""
    following = reader.tokens[min(reader.place + 1, len(reader.tokens) - 1)]
    if following.text == "every":
        return clause.is_within_days and clause.days is None
    return reader.is_next((",",)) and following.text in (
        "at",
        "on",
        "in",
        "from",
        "between",
        "except",
        "starting",
        "counted",
    )


def _read_part(reader: Reader, clause: Clause, today: date | None) -> bool:
    refuse_ambiguous(reader)
    if reader.is_at_end:
        return False
    place = reader.place
    for read in (_read_repeat, _read_time_part, _read_exception, _read_start, _read_day_part):
        if read(reader, clause, today):
            return True
        reader.place = place
    return False


def refuse_ambiguous(reader: Reader) -> None:
    token = reader.token
    if token.kind == "word" and token.text in AMBIGUOUS:
        meaning, forms = AMBIGUOUS[token.text]
        raise unclear(reader.text, token.at, f"'{token.text}' means {meaning}", "Write, for example,", forms)


# ── how often ───────────────────────────────────────────────────────────────────────────────────────────────


def _read_repeat(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.unit is not None:
        return False
    adverb = reader.one_of(ADVERBS, EVERYWHERE)
    if adverb is not None:
        clause.unit, clause.count = adverb
        return True
    if not reader.word("every", "each", want=EVERYWHERE):
        return False
    refuse_ambiguous(reader)
    return _read_unit(reader, clause) or _read_every_day(reader, clause)


def _read_unit(reader: Reader, clause: Clause) -> bool:
    """`every hour`, `every 15 minutes`, `every other day`, `every half hour`, `every quarter`."""
    place = reader.place
    _refuse_every_second(reader)
    if reader.word("half", want="a unit of time such as minutes"):
        reader.skip("an", "a")
        if reader.word("hour", "hours"):
            clause.unit, clause.count = "minute", 30
            return True
    if reader.word("quarter", want="a unit of time such as minutes"):
        clause.unit = "quarter"
        return True
    count = 2 if reader.word("other", want="'other'") else reader.attempt(read_count) or 1
    unit = reader.one_of(UNIT_WORDS, "a unit of time such as minutes")
    if unit is None:
        reader.place = place
        return False
    clause.unit, clause.count = unit, count
    return True


def _read_every_day(reader: Reader, clause: Clause) -> bool:
    """`every weekday`, `every other tuesday`, `every 15th of the month`, `every january`."""
    count = reader.attempt(_read_days_apart) or 1
    months = None if _is_date_next(reader) else reader.attempt(read_month_names)
    if months is not None and count == 1:
        clause.unit, clause.months = "year", months
        return True
    days = reader.attempt(read_days)
    if days is None:
        return False
    clause.days, clause.count = days, count
    clause.unit = "week" if days.weekdays else "year" if days.dates or days.months else "month"
    return True


def _read_days_apart(reader: Reader) -> int | None:
    """The count in `every other tuesday` and `every 2 tuesdays`; not the day in `every 24 december`."""
    if reader.word("other", want="'other'"):
        return 2
    count = reader.attempt(read_count)
    return count if count is not None and reader.is_next((*DAY_NUMBERS, *(f"{day}s" for day in WEEKDAYS))) else None


def _is_date_next(reader: Reader) -> bool:
    return reader.tokens[min(reader.place + 1, len(reader.tokens) - 1)].kind in ("number", "ordinal")


def _refuse_every_second(reader: Reader) -> None:
    """`every second tuesday`, `every third day`: counted from each other, or within a month?"""
    token, following, after = (reader.tokens[min(reader.place + step, len(reader.tokens) - 1)] for step in range(3))
    number = ORDINALS.get(token.text) or (int(token.text[:-2]) if token.kind == "ordinal" else 0)
    if after.text in ("of", "in") or not number:
        return
    if following.text == "day":
        forms = (f"every {number} days at 09:00", f"the {token.text} day of the month at 09:00")
        raise unclear(
            reader.text, token.at, f"'every {token.text} day' may count days, or be in a month", "Write", forms
        )
    if number > 1 and following.text in DAY_NUMBERS:
        day = WEEKDAYS[DAY_NUMBERS[following.text]]
        words = f"'every {token.text} {day}' may count weeks, or the {day}s of a month"
        forms = (f"every {number} weeks on {day} at 09:00", f"the {token.text} {day} of the month at 09:00")
        raise unclear(reader.text, token.at, words, "Write", forms)


# ── at what time ────────────────────────────────────────────────────────────────────────────────────────────


def _read_time_part(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.times is None and clause.minutes_past is None:
        clause.minutes_past = reader.attempt(read_minutes_past)
        if clause.minutes_past is None:
            clause.times = reader.attempt(read_times)
        if clause.times is not None or clause.minutes_past is not None:
            return True
    if clause.window is None:
        clause.window = reader.attempt(read_window)
        return clause.window is not None
    return False


# ── on which days ───────────────────────────────────────────────────────────────────────────────────────────


def _read_day_part(reader: Reader, clause: Clause, today: date | None) -> bool:
    if clause.days is None and clause.day is None and clause.delay is None:
        return _read_moment(reader, clause, today) or _read_plain_days(reader, clause) or _read_months(reader, clause)
    return _read_months(reader, clause)


def _read_moment(reader: Reader, clause: Clause, today: date | None) -> bool:
    if clause.unit is not None:
        return False
    clause.day = reader.attempt(lambda reader: read_date(reader, today))
    if clause.day is not None:
        if clause.times is None and (bare := reader.attempt(read_time)):  # 2026-12-24 18:00
            clause.times = [bare]
        return True
    clause.delay = reader.attempt(read_delay)
    return clause.delay is not None


def _read_plain_days(reader: Reader, clause: Clause) -> bool:
    if clause.is_within_days:
        reader.skip("every", "each")
    clause.days = reader.attempt(read_days)
    return clause.days is not None


def _read_months(reader: Reader, clause: Clause) -> bool:
    if clause.months is not None:
        return False
    clause.months = reader.attempt(read_months)
    return clause.months is not None


def _read_exception(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`except on sundays`, `except in august`."""
    if not reader.word("except", "excluding", want="'except'"):
        return False
    months = reader.attempt(read_months) or reader.attempt(read_month_names)
    if months is not None and clause.except_months is None:
        clause.except_months = months
        return True
    reader.skip("on")
    reader.skip("every", "each")
    days = reader.attempt(read_days)
    if days is None or not days.weekdays or clause.except_weekdays is not None:
        return False
    clause.except_weekdays = days.weekdays
    return True


def _read_start(reader: Reader, clause: Clause, today: date | None) -> bool:
    """`starting 2026-12-01`, `starting tomorrow at 08:00`."""
    if clause.starts is not None:
        return False
    if not reader.words("counted", "from") and not reader.word("starting", "beginning", want="'starting'"):
        return False
    reader.skip("on", "from")
    day = reader.attempt(lambda reader: read_date(reader, today))
    if day is None:
        return False
    times = reader.attempt(read_times) if clause.times is not None or clause.is_within_days else None
    at = reader.attempt(read_time) if times is None else times[0]
    clause.starts = (day, at)
    return True
