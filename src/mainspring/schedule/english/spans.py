"""Numbers and spans of time: `15 minutes`, `thirty minutes`, `1 hour 30 minutes`, `1h30m`, `an hour and a half`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.vocabulary import NUMBERS, SHORT_UNITS, TENS, UNIT_WORDS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader

MAX_COUNT = 10_000
A_UNIT = "a unit of time such as minutes"
SECONDS = {"second": 1, "minute": 60, "hour": 3600}


def read_count(reader: Reader) -> int | None:
    """`15`, `fifteen`, `forty-five`, `a`."""
    tens = reader.one_of(TENS, "a number")
    if tens is not None:
        reader.skip("-")
        return tens + (reader.one_of({name: NUMBERS[name] for name in list(NUMBERS)[:9]}, A_UNIT) or 0)
    named = reader.one_of(NUMBERS | {"a": 1, "an": 1}, "a number")
    if named is not None:
        return named
    token = reader.kind("number", "a number")
    if token is None:
        return None
    if len(token.text) > 9 or not 1 <= int(token.text) <= MAX_COUNT:
        remedy = f"Write a number from 1 to {MAX_COUNT:,}."
        raise Refusal(reader.text, token.at, "that number is out of range", remedy=remedy)
    return int(token.text)


def read_unit(reader: Reader) -> str | None:
    """`minutes`, `hrs`; `m` or `h` directly after a figure."""
    before = reader.tokens[reader.place - 1] if reader.place else reader.token
    if before.kind == "number" and reader.token.text in SHORT_UNITS:
        return reader.one_of(SHORT_UNITS, A_UNIT)
    return reader.one_of(UNIT_WORDS, A_UNIT)


def read_span(reader: Reader) -> int | None:
    """Seconds: hours, minutes and seconds, one after the other."""
    total = reader.attempt(_piece)
    while total is not None and (more := reader.attempt(_another)) is not None:
        total += more
    if total is not None and reader.words("and", "a", "half"):
        unit = UNIT_WORDS.get(reader.tokens[reader.place - 4].text, "second")
        total += SECONDS.get(unit, 0) // 2
    return total


def _another(reader: Reader) -> int | None:
    """One more piece; a number has to be said, and it is not that of `15 minutes past the hour`."""
    reader.skip(",")
    reader.skip("and")
    piece = None if reader.is_next(UNIT_WORDS) else _piece(reader)
    return None if reader.is_next(("past", "after")) else piece


def _piece(reader: Reader) -> int | None:
    """`30 minutes`, `2 and a half hours`, `hour` alone, which is one."""
    count = reader.attempt(read_count)
    is_half = count is not None and reader.words("and", "a", "half")
    unit = read_unit(reader)
    if unit not in SECONDS:
        return None
    return SECONDS[unit] * (count or 1) + (SECONDS[unit] // 2 if is_half else 0)
