"""Times of day: `at 09:00`, `at 9am and 5:30 pm`, `between 8am and 6pm`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import TYPE_CHECKING

from mainspring.schedule.english.clocks import DAY_SECONDS, time_at
from mainspring.schedule.english.reader import Reader, listed
from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.vocabulary import MONTH_NUMBERS, NUMBERS, PARTS_OF_DAY, TENS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Token

A_TIME = "a time such as 09:00, 9am or noon"
NAMED = {"noon": time(12), "midday": time(12), "midnight": time(0)}
AFTER = {"past": 1, "after": 1}
BEFORE = {"to": -1, "before": -1}
MINUTES = ("minutes", "minute", "min")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A part of the day. Its end belongs to it, unless `before` was said; without an end, it is the whole day."""

    begin: time
    end: time | None
    has_end: bool = True


def read_times(reader: Reader, half: str | None = None) -> list[time] | None:
    """`at` and one or more times; without `at` if it can be nothing else, as in `every monday 09:00`.

    Where the morning was named before, `half` is am: `every morning at 8`.
    """
    if reader.word("at", "@", want="'at' and a time"):
        return listed(reader, lambda reader: _another_time(reader, half))
    return listed(reader, _plain_time)


def _another_time(reader: Reader, half: str | None) -> time | None:
    """`5pm`, `at 5pm`."""
    reader.skip("at", "@")
    return read_time(reader, half, with_bare_to=True)


def _plain_time(reader: Reader) -> time | None:
    following = reader.after(1).text
    is_time = reader.token.kind == "time" or reader.is_next(NAMED)
    is_hour = reader.token.kind == "number" and (following in ("am", "pm") or following in NAMED)
    return read_time(reader) if is_time or is_hour else None


def read_time(reader: Reader, half: str | None = None, *, with_bare_to: bool = False) -> time | None:
    """One time. `10 to 5 pm` is one `with_bare_to` only: elsewhere it may be two, as in `from 9 to 5 pm`."""
    named = reader.one_of(NAMED, A_TIME) or reader.attempt(lambda reader: _spoken(reader, half, with_bare_to))
    if named is not None:
        return named
    if token := reader.kind("time", A_TIME):
        return _written(reader, token)
    if token := reader.kind("decimal", A_TIME):
        raise _without_colon(reader, token)
    if token := reader.kind("number", A_TIME):
        return _hour(reader, token, int(token.text[:4]), half)
    if reader.token.text in NUMBERS and reader.after(1).text not in ("times",):
        return _hour(reader, reader.token, reader.one_of(NUMBERS, A_TIME) or 0, half)
    return None


def _spoken(reader: Reader, half: str | None, with_bare_to: bool) -> time | None:
    """`half past nine am`, `a quarter to 9 am`, `10 past 8 pm`."""
    first = reader.token
    minutes = _spoken_minutes(reader)
    is_bare = reader.tokens[reader.place - 1].text not in ("half", "quarter", *MINUTES)
    signs = AFTER if is_bare and not with_bare_to else AFTER | BEFORE
    sign = None if minutes is None else reader.one_of(signs, A_TIME)
    hour = None if sign is None else _spoken_hour(reader)
    if minutes is None or sign is None or hour is None or not 1 <= hour <= 12:
        return None
    found = _half(reader) or (half if hour < 12 else None)
    halves = ("am", "pm") if found is None else (found,)
    times = [time_at(((hour % 12 + 12 * (each == "pm")) * 3600 + sign * minutes * 60) % DAY_SECONDS) for each in halves]
    if len(times) == 1:
        return times[0]
    last = reader.tokens[reader.place - 1]
    words = f"'{reader.text[first.at : last.end]}' may be a time in the morning or in the afternoon"
    rewrites = [reader.replaced(first, last, f"{at:%H:%M}") for at in times]
    raise Refusal(reader.text, first.at, words, rewrites=rewrites)


def _spoken_minutes(reader: Reader) -> int | None:
    reader.skip("a")
    named = reader.one_of({"half": 30, "quarter": 15, **NUMBERS, **TENS}, A_TIME)
    minutes = reader.attempt(read_minute) if named is None else named
    reader.skip(*MINUTES)
    return minutes


def _spoken_hour(reader: Reader) -> int | None:
    named = reader.one_of(NUMBERS, A_TIME)
    token = reader.kind("number", A_TIME) if named is None else None
    return int(token.text[:4]) if token is not None else named


def _written(reader: Reader, token: Token) -> time:
    hour, minute, second = (*map(int, token.text.split(":")), 0)[:3]
    half = _half(reader)
    if half is not None:
        hour = _of_half(reader, token, hour, minute, half)
    if hour > 23 or minute > 59 or second > 59:
        ends = ("00:00", "23:59") if (hour, minute, second) == (24, 0, 0) else ()
        raise Refusal(
            reader.text,
            token.at,
            f"{token.text} is not a time of day",
            remedy="Times go from 00:00 to 23:59.",
            rewrites=[reader.replaced(token, token, each) for each in ends],
        )
    return _confirmed(reader, time(hour, minute, second))


def _confirmed(reader: Reader, at: time) -> time:
    """`12:00 noon`, `00:00 midnight`: the name has to agree."""
    name = reader.token.text
    if name not in NAMED or at.hour % 12 or at.minute or at.second:
        return at
    reader.skip(name)
    return NAMED[name]


def _half(reader: Reader) -> str | None:
    """`am`, `pm`, `in the morning`, `in the evening`."""
    half = reader.word("am", "pm", want="am or pm, or minutes, as in 9:00")
    if half is None and (reader.token.text, reader.after(1).text) == ("in", "the"):
        part = PARTS_OF_DAY.get(reader.after(2).text)
        if part is not None and part.half is not None:
            reader.place += 3
            return part.half
    return half


def _hour(reader: Reader, token: Token, hour: int, given: str | None) -> time | None:
    half = _half(reader) or (given if 1 <= hour < 12 else None)  # twelve in the morning is anybody's guess
    if half is not None:
        return time(_of_half(reader, token, hour, 0, half))
    if hour == 12 and reader.is_next(NAMED):
        return reader.one_of(NAMED, A_TIME)
    following = ("st", "nd", "rd", "th", "minute", "minutes", "min", "past", "times", "of")
    if reader.is_next((*following, *MONTH_NUMBERS)) or (hour > 24 and len(token.text) != 4):
        return None
    raise _bare_hour(reader, token, hour)


def _without_colon(reader: Reader, token: Token) -> Refusal:
    """`9.30`: a time where a colon is missing, or a number."""
    rewrites = [reader.replaced(token, token, token.text.replace(".", ":"))]
    words = "a time has a colon between hours and minutes"
    return Refusal(reader.text, token.at, words, rewrites=rewrites, examples=("every day at 09:00",))


def _bare_hour(reader: Reader, token: Token, hour: int) -> Refusal:
    if len(token.text) == 4 and token.kind == "number":
        written, problem = [f"{token.text[:2]}:{token.text[2:]}"], "a time has a colon between hours and minutes"
    elif 0 < hour < 12:
        written = [f"{hour:02}:00", f"{hour + 12}:00"]
        problem = f"{hour} may be a time in the morning or in the afternoon"
    else:
        written, problem = [f"{hour:02}:00"], f"{hour} may be an hour or a minute"
    last = reader.token if reader.is_next(("h",)) else token
    minutes = reader.after(1) if last is not token and reader.after(1).at == last.end else token
    if minutes is not token and minutes.kind == "number" and len(minutes.text) == 2:  # 17h30
        written, problem, last = [f"{hour:02}:{minutes.text}"], "a time has a colon between hours and minutes", minutes
    rewrites = [reader.replaced(token, last, each) for each in (*written, f":{hour:02}")]
    return Refusal(reader.text, token.at, problem, rewrites=rewrites, examples=("every day at 09:00",))


def _of_half(reader: Reader, token: Token, hour: int, minute: int, half: str) -> int:
    """The hour of 24, of an hour of 12 with am or pm: 12am is midnight, 12pm is noon."""
    if 1 <= hour <= 12:
        return hour % 12 + (12 if half == "pm" else 0)
    agrees = 12 < hour < 24 if half == "pm" else hour == 0
    last = reader.tokens[reader.place - 1]
    raise Refusal(
        reader.text,
        token.at,
        f"{hour} {half} is not a time",
        remedy="With am and pm, hours go from 1 to 12.",
        rewrites=[reader.replaced(token, last, f"{hour:02}:{minute:02}")] if agrees else (),
    )


def read_window(reader: Reader) -> TimeWindow | None:
    """`between 8am and 6pm`, `from 8am to 6pm`: both ends included; `from 8am to before 6pm`: without the end.

    `from 02:00`, `starting at 02:00` or `starting 2am` alone is the whole day, counted from there.
    """
    between = reader.word("between", want="'between' and two times")
    is_start = not between and reader.skip("starting")
    is_plain = is_start and not reader.skip("at")  # what follows may be a date
    is_open = not between and not is_start and not reader.word("from", want="'from' and two times")
    begin = reader.attempt(_plain_time if is_open or is_plain else read_time)
    if begin is None:
        return None
    if not _joins(reader, between=bool(between)):
        if reader.is_next(("on", "onwards")) and reader.after(1).kind in ("end", "mark"):
            reader.place += 1
        return None if between or is_open else TimeWindow(begin, None)
    is_before = reader.word("before") is not None
    end = reader.attempt(lambda reader: read_time(reader, with_bare_to=True))
    return None if end is None else TimeWindow(begin, end, not is_before)


def _joins(reader: Reader, *, between: bool) -> bool:
    token = reader.token
    if reader.word("until", "till", "til", want="'and'" if between else "'to'"):
        if reader.is_next(("before",)):
            return True
        join = "and" if between else "to"
        raise Refusal(
            reader.text,
            token.at,
            f"'{token.text}' may or may not include the last moment",
            remedy=f"With '{join}' it is included, with '{join} before' it is not.",
            rewrites=[reader.replaced(token, token, each) for each in (join, f"{join} before")],
        )
    joins = ("and",) if between else ("to", "through", "-", "–", "..")
    return reader.word(*joins, want="'and'" if between else "'to'") is not None


def read_minute(reader: Reader) -> int | None:
    if reader.token.kind == "number" and int(reader.token.text[:4]) > 59:
        reader.want("a minute from 0 to 59")
        return None
    token = reader.kind("number", "a minute from 0 to 59")
    return None if token is None else int(token.text)
