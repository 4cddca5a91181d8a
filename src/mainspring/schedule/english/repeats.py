"""How often: `every hour`, `every 15 minutes`, `every other tuesday`, `every 15th of the month`, `twice a day`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mainspring.schedule.english.days import Days, read_days
from mainspring.schedule.english.months import read_month_names
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.spans import A_UNIT, SECONDS, read_count, read_span, read_unit
from mainspring.schedule.english.times import NAMED
from mainspring.schedule.english.vocabulary import (
    ADVERBS,
    AMBIGUOUS,
    DAY_NUMBERS,
    ORDINALS,
    PARTS_OF_DAY,
    UNIT_WORDS,
    WEEKDAYS,
)

if TYPE_CHECKING:
    from datetime import time

    from mainspring.schedule.english.reader import Reader, Token

EVERYWHERE = "'every' and how often"
HOW_MANY = {"once": 1, "twice": 2, "thrice": 3}


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every so many of a unit, and what else was said with it."""

    unit: str
    count: int = 1
    days: Days | None = None
    months: frozenset[int] | None = None
    times: list[time] | None = None
    part_of_day: Token | None = None
    times_per: int | None = None  # `twice a day`: so many have to be named
    said: tuple[Token, Token] | None = None  # its first and last word


def read_repeat(reader: Reader) -> Repeat | None:
    if reader.is_next(("on",)) and reader.after(1).text in ("every", "each", "alternate"):
        reader.place += 1
    first = reader.token
    found = reader.attempt(_adverb) or reader.attempt(_times_per) or reader.attempt(_every)
    return None if found is None else replace(found, said=(first, reader.tokens[reader.place - 1]))


def _adverb(reader: Reader) -> Repeat | None:
    """`hourly`, `nightly`, `half-hourly`."""
    token = reader.token
    if reader.skip("nightly"):
        return Repeat("day", part_of_day=token)
    if reader.is_next(("half",)) and "hourly" in (reader.after(1).text, reader.after(2).text):
        reader.skip("half")
        reader.skip("-")
        return Repeat("minute", 30) if reader.word("hourly") else None
    adverb = reader.one_of(ADVERBS, EVERYWHERE)
    return None if adverb is None else Repeat(*adverb)


def _times_per(reader: Reader) -> Repeat | None:
    """`once a day`, `twice daily`, `3 times per week`, `once every hour`, `5 days a week`."""
    number = reader.attempt(_how_many)
    if number is None:
        return None
    adverb = reader.one_of(ADVERBS, EVERYWHERE)
    if adverb is not None:
        found = Repeat(*adverb)
    elif reader.word("a", "an", "per"):
        unit = reader.word("quarter", want=A_UNIT) or reader.one_of(UNIT_WORDS, A_UNIT)
        is_each_day = (unit, number) == ("week", 7)
        return None if unit is None else Repeat("day") if is_each_day else Repeat(unit, times_per=number)
    elif (every := reader.attempt(_every)) is not None:
        found = every
    else:
        return None
    return found if number == 1 else replace(found, times_per=number)


def _how_many(reader: Reader) -> int | None:
    number = reader.one_of(HOW_MANY, EVERYWHERE)
    if number is not None:
        return number
    number = reader.attempt(read_count)
    is_counted = reader.word("times", "time") or (reader.after(2).text == "week" and reader.word("days"))
    return number if number is not None and is_counted else None


def _every(reader: Reader) -> Repeat | None:
    if reader.is_next(("alternate",)):
        return reader.attempt(_every_unit) or reader.attempt(_every_day)
    if not reader.word("every", "each", want=EVERYWHERE):
        return None
    reader.skip("single")
    _refuse_ambiguous_unit(reader)
    _refuse_every_second(reader)
    is_second = reader.token.text in ORDINALS and reader.after(1).text in DAY_NUMBERS  # every second tuesday of …
    unit = None if is_second else reader.attempt(_named_time) or reader.attempt(_every_unit)
    return unit or reader.attempt(_every_day)


def _refuse_ambiguous_unit(reader: Reader) -> None:
    """`every few minutes`, `every biweekly`."""
    token = reader.token
    if token.text in ("few", "couple", "several"):
        rewrites = [reader.replaced(token, reader.after(1 if reader.after(1).text == "of" else 0), "2")]
        words = f"'{token.text}' is no number"
        raise Refusal(
            reader.text,
            token.at,
            words,
            rewrites=rewrites if token.text == "couple" else (),
            examples=("every 15 minutes",),
        )
    if token.text in AMBIGUOUS:
        words = f"'{token.text}' means {AMBIGUOUS[token.text].meaning}"
        raise Refusal(reader.text, token.at, words, examples=AMBIGUOUS[token.text].examples)


def _named_time(reader: Reader) -> Repeat | None:
    """`every morning`, `every noon`."""
    token = reader.token
    if reader.skip(*PARTS_OF_DAY):
        return Repeat("day", part_of_day=token)
    at = reader.one_of(NAMED, A_UNIT)
    return None if at is None else Repeat("day", times=[at])


def _every_unit(reader: Reader) -> Repeat | None:
    """`every hour`, `every 1.5 hours`, `every other day`, `every half hour`, `every quarter`."""
    if reader.word("quarter", want=A_UNIT):
        return reader.attempt(_quarter_hour) or Repeat("quarter")
    if reader.word("other", "alternate", want="'other'"):
        unit = reader.word("quarter") or reader.one_of(UNIT_WORDS, A_UNIT)
        return None if unit is None else Repeat(unit, 2)
    return reader.attempt(_steps) or reader.attempt(_units)


def _quarter_hour(reader: Reader) -> Repeat | None:
    reader.skip("-", "of")
    reader.skip("an")
    return Repeat("minute", 15) if reader.word("hour") else None


def _steps(reader: Reader) -> Repeat | None:
    seconds = reader.attempt(read_span)
    if seconds is None:
        return None
    unit = next(unit for unit in reversed(SECONDS) if seconds % SECONDS[unit] == 0)
    return Repeat(unit, seconds // SECONDS[unit])


def _units(reader: Reader) -> Repeat | None:
    count = reader.attempt(read_count) or 1
    if reader.word("fortnight", "fortnights", want=A_UNIT):
        return Repeat("week", 2 * count)
    if count > 1 and reader.word("quarters"):
        return Repeat("quarter", count)
    unit = reader.attempt(read_unit)
    return None if unit is None else Repeat(unit, count)


def _every_day(reader: Reader) -> Repeat | None:
    """`every weekday`, `every other tuesday`, `every 15th of the month`, `every january`."""
    count = reader.attempt(_days_apart) or 1
    months = None if reader.after(1).kind in ("number", "ordinal") else reader.attempt(read_month_names)
    if months is not None and count == 1:
        return Repeat("year", months=months)
    days = reader.attempt(read_days)
    if days is None:
        return None
    unit = "week" if days.weekdays else "year" if days.dates or days.months else "month"
    return Repeat("quarter" if days.of_quarter else unit, count, days=days)


def _days_apart(reader: Reader) -> int | None:
    """The count in `every other tuesday` and `every 2 tuesdays`; not the day in `every 24 december`."""
    if reader.word("other", "alternate", want="'other'"):
        return 2
    count = reader.attempt(read_count)
    return count if count is not None and reader.is_next((*DAY_NUMBERS, *(f"{day}s" for day in WEEKDAYS))) else None


def _refuse_every_second(reader: Reader) -> None:
    """`every second tuesday`, `every third day`, `every 2nd hour`: counted from each other, or within something?"""
    token, following, after = reader.token, reader.after(1), reader.after(2)
    number = ORDINALS.get(token.text) or (int(token.text[:-2]) if token.kind == "ordinal" else 0)
    if after.text in ("of", "in") or not number:
        return
    within = f"{token.text} {following.text} of the month"
    if following.text in UNIT_WORDS and following.text != "seconds":
        unit = UNIT_WORDS[following.text]
        rewrites = [reader.replaced(token, following, f"{number} {unit}s")]
        if unit == "day":
            rewrites.append(reader.replaced(reader.tokens[reader.place - 1], following, f"the {within}"))
        words = f"'every {token.text} {unit}' may count {unit}s, or be in {_larger(unit)}"
        raise Refusal(reader.text, token.at, words, rewrites=rewrites, examples=(f"every {number} {unit}s at 09:00",))
    if number > 1 and following.text in DAY_NUMBERS:
        day = WEEKDAYS[DAY_NUMBERS[following.text]]
        words = f"'every {token.text} {day}' may count weeks, or the {day}s of a month"
        rewrites = [reader.replaced(token, following, f"{number} weeks on {day}")]
        rewrites.append(reader.replaced(reader.tokens[reader.place - 1], following, f"the {within}"))
        raise Refusal(reader.text, token.at, words, rewrites=rewrites)


def _larger(unit: str) -> str:
    larger = {"second": "a minute", "minute": "an hour", "hour": "a day", "day": "a month", "week": "a month"}
    return larger.get(unit, "a year")
