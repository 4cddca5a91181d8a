"""Numbers and spans of time: `15 minutes`, `1.5 hours`, `1 hour 30 minutes`, `1h30m`, `an hour and a half`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.vocabulary import NUMBERS, SHORT_UNITS, TENS, UNIT_WORDS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

MAX_COUNT = 10_000
A_UNIT = "a unit of time such as minutes"
SECONDS = {"second": 1, "minute": 60, "hour": 3600}
SMALLER = {"day": ((24, "hours"),), "week": ((7, "days"), (168, "hours")), "year": ((12, "months"),)}
HALF = Fraction(1, 2)
QUARTERS = {"": Fraction(0), "¼": Fraction(1, 4), "½": HALF, "¾": Fraction(3, 4)}


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
        raise _out_of_range(reader, token)
    return int(token.text)


def _out_of_range(reader: Reader, token: Token) -> Refusal:
    remedy = f"Write a number from 1 to {MAX_COUNT:,}."
    return Refusal(reader.text, token.at, "that number is out of range", remedy=remedy)


def read_unit(reader: Reader) -> str | None:
    """`minutes`, `hrs`; `m` or `h` directly after a figure."""
    before = reader.tokens[reader.place - 1] if reader.place else reader.token
    if before.kind in ("number", "decimal") and reader.token.text in SHORT_UNITS:
        return reader.one_of(SHORT_UNITS, A_UNIT)
    if reader.is_next(("week",)) and reader.after(1).text in ("day", "days"):
        return None  # a weekday
    return reader.one_of(UNIT_WORDS, A_UNIT)


def read_span(reader: Reader) -> int | None:
    """Seconds: hours, minutes and seconds, one after the other, `and a half` of the last of them."""
    first = reader.token
    total = reader.attempt(_piece)
    while total is not None and (more := reader.attempt(_another)) is not None:
        total += more
    if total is None:
        return None
    last = reader.tokens[reader.place - 1]
    if reader.words("and", "a", "half"):
        total += HALF * SECONDS[(UNIT_WORDS | SHORT_UNITS)[last.text]]
    return _whole(reader, first, total)


def _whole(reader: Reader, first: Token, seconds: Fraction) -> int:
    if seconds.denominator == 1:
        return int(seconds)
    below = int(seconds)
    last = reader.tokens[reader.place - 1]
    near = [f"{count} second{'' if count == 1 else 's'}" for count in (below, below + 1) if count]
    words = "that is not a whole number of seconds"
    raise Refusal(reader.text, first.at, words, rewrites=[reader.replaced(first, last, each) for each in near])


def _another(reader: Reader) -> Fraction | None:
    """One more piece; a number has to be said, and it is not that of `15 minutes past the hour`."""
    reader.skip(",")
    reader.skip("and")
    piece = None if reader.is_next(UNIT_WORDS) else _piece(reader)
    return None if reader.is_next(("past", "after")) else piece


def _piece(reader: Reader) -> Fraction | None:
    """`30 minutes`, `1.5 hours`, `2 and a half hours`, `half an hour`, `hour` alone, which is one."""
    first = reader.token
    count = reader.attempt(_amount)
    unit = read_unit(reader)
    if unit in SECONDS:
        return SECONDS[unit] * (count or Fraction(1))
    if unit is not None:
        _refuse_part_of_unit(reader, first, unit, count or Fraction(1))
    return None


def _amount(reader: Reader) -> Fraction | None:
    """A number, which need not be whole."""
    _refuse_decimal_comma(reader)
    if reader.word("half", want="a number"):
        reader.skip("an", "a", "-")
        return HALF
    if (token := reader.kind("decimal", "a number")) is not None:
        return _decimal(reader, token)
    count = reader.attempt(read_count)
    if count is None:
        return None
    return count + (HALF if reader.words("and", "a", "half") else Fraction(0))


def _refuse_decimal_comma(reader: Reader) -> None:
    """`1,5 hours`: a comma separates, or stands between thousands."""
    whole, comma, part = (reader.after(step) for step in range(3))
    is_one = whole.kind == part.kind == "number" and comma.text == "," and (whole.end, comma.end) == (comma.at, part.at)
    if is_one and reader.after(3).text in UNIT_WORDS | SHORT_UNITS:
        point = f"{reader.text[whole.at : whole.end]}.{reader.text[part.at : part.end]}"
        words = "a decimal is written with a point"
        raise Refusal(reader.text, comma.at, words, rewrites=[reader.replaced(whole, part, point)])


def _decimal(reader: Reader, token: Token) -> Fraction:
    """`1.5`, `1½`."""
    if len(token.text) > 12:
        raise _out_of_range(reader, token)
    figures = token.text.rstrip("".join(QUARTERS))
    found = Fraction(figures or 0) + QUARTERS[token.text[len(figures) :]]
    if not 0 < found <= MAX_COUNT:
        raise _out_of_range(reader, token)
    return found


def _refuse_part_of_unit(reader: Reader, first: Token, unit: str, count: Fraction) -> None:
    """`1.5 days`: a day may have 23 or 25 hours, so half of one is no span of its own."""
    count += HALF if reader.words("and", "a", "half") else 0
    if count.denominator == 1:
        return
    last = reader.tokens[reader.place - 1]
    smaller = [(count * number, name) for number, name in SMALLER.get(unit, ())]
    rewrites = [reader.replaced(first, last, f"{total} {name}") for total, name in smaller if total.denominator == 1]
    examples = ("every 36 hours", "every 10 days at 09:00")
    raise Refusal(reader.text, first.at, f"{unit}s are counted whole", rewrites=rewrites[:1], examples=examples)
