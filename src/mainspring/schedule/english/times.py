"""Times of day: `at 09:00`, `at 9am and 5:30 pm`, `between 8am and 6pm`, `at 15 minutes past the hour`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import TYPE_CHECKING

from mainspring.schedule.english.reader import Reader, listed, unclear

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Token

A_TIME = "a time such as 09:00, 9am or noon"
NAMED = {"noon": time(12), "midday": time(12), "midnight": time(0)}


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A part of the day. Its end belongs to it, unless `before` was said."""

    begin: time
    end: time
    has_end: bool = True


def read_times(reader: Reader) -> list[time] | None:
    """`at` and one or more times."""
    if not reader.word("at", "@", want="'at' and a time"):
        return None
    return listed(reader, read_time)


def read_time(reader: Reader) -> time | None:
    named = reader.one_of(NAMED, A_TIME)
    if named is not None:
        return named
    if token := reader.kind("time", A_TIME):
        return _written(reader, token)
    if token := reader.kind("number", A_TIME):
        return _hour(reader, token)
    return None


def _written(reader: Reader, token: Token) -> time:
    hour, minute, second = (*map(int, token.text.split(":")), 0)[:3]
    half = reader.word("am", "pm")
    if half is not None:
        hour = _of_half(reader, token, hour, half)
    if hour > 23 or minute > 59 or second > 59:
        raise unclear(
            reader.text,
            token.at,
            f"{token.text} is not a time of day",
            "Times go from 00:00 to 23:59.",
            ("00:00", "23:59"),
        )
    return time(hour, minute, second)


def _hour(reader: Reader, token: Token) -> time | None:
    half = reader.word("am", "pm", want="am or pm, or minutes, as in 9:00")
    if half is not None:
        return time(_of_half(reader, token, int(token.text[:4]), half))
    if reader.is_next(("st", "nd", "rd", "th", "minute", "minutes", "min", "past")) or int(token.text[:4]) > 24:
        return None
    hour = int(token.text)
    forms = (f"{hour:02}:00", f"{hour + 12}:00") if 0 < hour < 12 else (f"{hour % 24:02}:00",)
    raise unclear(reader.text, token.at, f"{hour} may be a time in the morning or in the afternoon", "Write", forms)


def _of_half(reader: Reader, token: Token, hour: int, half: str) -> int:
    """The hour of 24, of an hour of 12 with am or pm: 12am is midnight, 12pm is noon."""
    if not 1 <= hour <= 12:
        raise unclear(
            reader.text,
            token.at,
            f"{hour} {half} is not a time",
            "With am and pm, hours go from 1 to 12. Write",
            (f"{min(hour, 23):02}:00",),
        )
    return hour % 12 + (12 if half == "pm" else 0)


def read_window(reader: Reader) -> TimeWindow | None:
    """`between 8am and 6pm`, `from 8am to 6pm`: both ends included; `from 8am to before 6pm`: without the end."""
    between = reader.word("between", want="'between' and two times")
    if not between and not reader.word("from", want="'from' and two times"):
        return None
    begin = reader.attempt(read_time)
    if begin is None:
        return None
    if not _joins(reader, between=bool(between)):
        return None
    is_before = reader.word("before") is not None
    end = reader.attempt(read_time)
    return None if end is None else TimeWindow(begin, end, not is_before)


def _joins(reader: Reader, *, between: bool) -> bool:
    token = reader.token
    if reader.word("until", "till", "til", want="'and'" if between else "'to'"):
        if reader.is_next(("before",)):
            return True
        raise unclear(
            reader.text,
            token.at,
            f"'{token.text}' may or may not include the last moment",
            "Write 'to' if it is included, 'to before' if it is not, as in",
            ("every 15 minutes from 8am to 6pm", "every 15 minutes from 8am to before 6pm"),
        )
    joins = ("and",) if between else ("to", "through", "-", "–")
    return reader.word(*joins, want="'and'" if between else "'to'") is not None


def read_minutes_past(reader: Reader) -> list[int] | None:
    """`at 15 minutes past the hour`, `at :15 and :45`, `on the hour`."""
    if reader.words("on", "the", "hour"):
        return [0]
    if not reader.word("at", want="'at' and a time"):
        return None
    colons = listed(reader, _colon_minute)
    if colons is not None:
        return colons
    numbers = listed(reader, _minute)
    if numbers is None:
        return None
    reader.skip("minutes", "minute", "min")
    if not reader.word("past", "after", want="'minutes past the hour'"):
        return None
    reader.skip("the", "every", "each")
    return numbers if reader.word("hour") else None


def _colon_minute(reader: Reader) -> int | None:
    return _minute(reader) if reader.word(":", want=A_TIME) else None


def _minute(reader: Reader) -> int | None:
    if reader.token.kind == "number" and int(reader.token.text[:4]) > 59:
        reader.want("a minute from 0 to 59")
        return None
    token = reader.kind("number", "a minute from 0 to 59")
    return None if token is None else int(token.text)
