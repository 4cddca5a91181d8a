"""Minutes of the hour: `at 15 minutes past the hour`, `at :15 and :45`, `at quarter to`, `on the half hour`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.reader import listed
from mainspring.schedule.english.times import A_TIME, MINUTES, read_minute
from mainspring.schedule.english.vocabulary import NUMBERS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader


def read_minutes_past(reader: Reader) -> list[int] | None:
    """`at 15 minutes past the hour`, `at :15 and :45`, `at half past`, `on the hour`, `on the half hour`."""
    if reader.words("on", "the", "hour"):
        return [0]
    if reader.words("on", "the", "half", "hour"):
        return [30]
    if not _leads_to_minutes(reader):
        return None
    colons = listed(reader, _colon_minute)
    if colons is not None:
        return colons
    if reader.word("minute"):
        found = listed(reader, read_minute)
        if reader.is_next(("past",)) and reader.after(1).text in ("every", "each"):
            reader.place += 1
        return found
    return _past(reader)


def _leads_to_minutes(reader: Reader) -> bool:
    """`at`, or `on` before a colon; `15 minutes past` and `10 before` need neither."""
    if reader.word("at", want="'at' and a time"):
        return True
    following = reader.after(1).text
    if following == ":":
        return reader.skip("on")
    return following in ("minute", "minutes", "past", "before", "to")


def _past(reader: Reader) -> list[int] | None:
    reader.skip("a")
    numbers = [30] if reader.skip("half") else [15] if reader.skip("quarter") else listed(reader, read_minute)
    if numbers is None:
        return None
    reader.skip(*MINUTES)
    if reader.is_next(("to", "before")):
        return _before(reader, numbers)
    if not reader.word("past", "after", want="'minutes past the hour'"):
        return None
    if reader.is_next(("every", "each")) and reader.after(1).text == "hour":
        return numbers  # which is how often
    reader.skip("the")
    if reader.skip("hour"):
        return numbers
    return (
        numbers if reader.is_at_end or (reader.token.kind in ("word", "mark") and not reader.is_next(NUMBERS)) else None
    )


def read_seconds_past(reader: Reader) -> int | None:
    """`beginning at 7 minutes and 30 seconds past the hour`: in seconds."""
    if not reader.word("beginning", "starting", want="'starting'") or not reader.word("at"):
        return None
    minutes = reader.attempt(lambda reader: _counted(reader, "minutes", "minute"))
    if minutes is not None:
        reader.skip("and")
    seconds = reader.attempt(lambda reader: _counted(reader, "seconds", "second"))
    if (minutes is None and seconds is None) or not reader.words("past", "the", "hour"):
        return None
    return 60 * (minutes or 0) + (seconds or 0)


def _counted(reader: Reader, *units: str) -> int | None:
    number = read_minute(reader)
    return number if number is not None and reader.word(*units) else None


def _before(reader: Reader, numbers: list[int]) -> list[int] | None:
    """`at quarter to`, `10 minutes before the hour`."""
    minutes = [(60 - number) % 60 for number in numbers]
    reader.place += 1
    if reader.is_at_end or (reader.is_next(("every", "each")) and reader.after(1).text == "hour"):
        return minutes
    return minutes if reader.words("the", "hour") else None


def _colon_minute(reader: Reader) -> int | None:
    return read_minute(reader) if reader.word(":", want=A_TIME) else None
