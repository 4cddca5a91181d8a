"""The parts of a clause, in any order, each at most once. `every weekday at 09:00 in june`, `at 9am on mondays`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mainspring.schedule.english.bounds import read_end, read_length, read_runs, read_start, read_stretch
from mainspring.schedule.english.clause import Clause
from mainspring.schedule.english.dates import read_date, read_delay
from mainspring.schedule.english.days import Days, read_days
from mainspring.schedule.english.exclusions import read_exclusion
from mainspring.schedule.english.minutes import read_minutes_past, read_seconds_past
from mainspring.schedule.english.months import read_months
from mainspring.schedule.english.repeats import Repeat, read_repeat
from mainspring.schedule.english.spans import read_span
from mainspring.schedule.english.times import read_time, read_times, read_window
from mainspring.schedule.english.vague import refuse_vague
from mainspring.schedule.english.vocabulary import PARTS_OF_DAY

if TYPE_CHECKING:
    from datetime import date

    from mainspring.schedule.english.reader import Reader, Token

# What a part may begin with after a comma; a bound comes after a semicolon as well.
PARTS = (
    "at",
    "on",
    "in",
    "from",
    "between",
    "except",
    "but",
    "where",
    "starting",
    "beginning",
    "counted",
    "monday",
    "mon",
)
BOUNDS = ("from", "until", "for", "at", "once", "starting", "before")
ALL_DAY = (
    ("24", "/", "7"),
    ("around", "the", "clock"),
    ("round", "the", "clock"),
    ("day", "and", "night"),
    ("all", "day", "long"),
    ("all", "day"),
    *(("of", each, unit) for each in ("the", "every", "each") for unit in ("day", "hour")),
)


def read_parts(reader: Reader, clause: Clause, today: date | None) -> None:
    """Read as many parts as there are."""
    skip_separator(reader, clause)
    while _read_part(reader, clause, today):
        skip_separator(reader, clause)


def skip_separator(reader: Reader, clause: Clause) -> None:
    """Leave out a comma that only separates parts, or a semicolon before a bound."""
    if _goes_on(reader, clause):
        reader.skip(",", ";")


def _goes_on(reader: Reader, clause: Clause) -> bool:
    following, after = reader.after(1), reader.after(2)
    if reader.is_next((";",)):
        return following.text in BOUNDS and not (following.text == "at" and after.text != "most")
    if not reader.is_next((",",)):
        return False
    if following.text == "every":
        return (clause.is_within_days and clause.days is None) or clause == Clause(
            begins=clause.begins, times=clause.times
        )
    if following.kind == "time" or after.text in ("am", "pm", "times"):
        return clause.times is None or after.text == "times"
    is_day = clause.days is None and clause.day is None and _is_days_next(reader, 1)
    is_filler = clause.is_within_days and following.text in ("24", "around", "round", "all", "day")
    return following.text in PARTS or following.text in BOUNDS or is_day or is_filler


def _is_days_next(reader: Reader, steps: int) -> bool:
    place = reader.place
    reader.place += steps
    days = reader.attempt(read_days)
    reader.place = place
    return days is not None


def _read_part(reader: Reader, clause: Clause, today: date | None) -> bool:
    refuse_vague(reader)
    if reader.is_at_end:
        return False
    first = reader.token
    for part, read in READERS.items():
        if read(reader, clause, today):
            clause.said.setdefault(part, (first, reader.tokens[reader.place - 1]))
            return True
        reader.place = first.place
    return False


def _read_repeat(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.repeat is not None:
        return False
    found = reader.attempt(read_repeat)
    if found is None:
        return False
    if (found.days and clause.days) or (found.months and clause.months) or (found.times and clause.times):
        return False
    clause.repeat, clause.part_of_day = found, found.part_of_day or clause.part_of_day
    clause.days = found.days or clause.days
    clause.months = found.months or clause.months
    clause.times = found.times or clause.times
    return True


# ── at what time ────────────────────────────────────────────────────────────────────────────────────────────


def _read_window(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.window is not None:
        return False
    clause.window = reader.attempt(read_window)
    return clause.window is not None


def _read_times(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.times is None and clause.minutes_past is None:
        clause.minutes_past = reader.attempt(read_minutes_past)
        if clause.minutes_past is None:
            half = clause.part.half if clause.part is not None else None
            clause.times = reader.attempt(lambda reader: read_times(reader, half))
        return clause.times is not None or clause.minutes_past is not None
    return False


def _read_part_of_day(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`morning` after a day, `in the evening`, `mornings`."""
    if clause.part_of_day is not None:
        return False
    if reader.words("in", "the") or reader.words("at"):
        pass
    token = reader.token
    if token.text.removesuffix("s") not in PARTS_OF_DAY:
        return False
    reader.place += 1
    clause.part_of_day = token
    if token.text.endswith("s") and clause.days is not None:
        clause.days = replace(clause.days, recurs=True)
    elif token.text.endswith("s") and clause.repeat is None and clause.day is None:
        clause.repeat = Repeat("day")
    return True


# ── on which days ───────────────────────────────────────────────────────────────────────────────────────────


def _read_moment(reader: Reader, clause: Clause, today: date | None) -> bool:
    if clause.unit is not None or _has_days(clause):
        return False
    clause.part_of_day = clause.part_of_day or _part_of_today(reader)
    first = reader.token
    clause.day = reader.attempt(lambda reader: read_date(reader, today))
    if clause.day is not None:
        clause.said["day"] = (
            first,
            reader.tokens[reader.place - 1],
        )  # without its time
        if clause.times is None and (bare := reader.attempt(read_time)):  # 2026-12-24 18:00
            clause.times = [bare]
        return True
    clause.delay = reader.attempt(read_delay)
    return clause.delay is not None


def _has_days(clause: Clause) -> bool:
    return clause.days is not None or clause.day is not None or clause.delay is not None


def _part_of_today(reader: Reader) -> Token | None:
    """The part of the day in `tonight` and `this evening`, whose day is read as today's."""
    if reader.is_next(("tonight",)):
        return reader.token
    is_part = reader.is_next(("this",)) and reader.after(1).text in PARTS_OF_DAY
    return reader.after(1) if is_part else None


def _read_days(reader: Reader, clause: Clause, _: date | None) -> bool:
    if _has_days(clause):
        return False
    if clause.is_within_days:
        if reader.words("every", "day"):
            some = reader.attempt(read_days) if reader.is_next(("from",)) else None  # every day from monday to friday
            clause.days = some or Days(weekdays=frozenset(range(7)), recurs=True)
            return True
        if not reader.words("every", "year"):
            reader.skip("every", "each")
    clause.days = reader.attempt(read_days)
    return clause.days is not None


def _read_months(reader: Reader, clause: Clause, _: date | None) -> bool:
    if clause.months is not None:
        return False
    clause.months = reader.attempt(read_months)
    return clause.months is not None


def _read_once(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`once, on 2026-12-24`, `2 times, on 2026-12-24 …`: it adds nothing to days that are named one by one."""
    token = reader.token
    if reader.skip("once"):
        clause.once = token
        return reader.skip(",") or True
    return reader.place == 0 and reader.attempt(read_runs) is not None and reader.skip(",") and _is_date_next(reader)


def _read_offset(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`offset by 2 minutes`, `beginning at 2 minutes past the hour`: where the first step of the hour or the day is."""
    if not clause.is_within_days or clause.offset is not None:
        return False
    clause.offset = reader.attempt(read_seconds_past)
    if clause.offset is not None:
        return True
    reader.skip("with")
    reader.skip("an")
    if not reader.skip("offset"):
        return False
    reader.skip("by", "of")
    clause.offset = reader.attempt(read_span)
    return clause.offset is not None


def _read_all_day(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`every 5 minutes, 24/7`, `every hour of the day`: it adds nothing to steps."""
    return clause.is_within_days and clause.window is None and any(reader.words(*words) for words in ALL_DAY)


def _read_where(reader: Reader, clause: Clause, _: date | None) -> bool:
    """`monthly on the 31st, where there is one, at 9am`."""
    if clause.where_there_is_one or not reader.words("where", "there", "is", "one"):
        return False
    clause.where_there_is_one = True
    return True


def _is_date_next(reader: Reader) -> bool:
    place = reader.place
    day = reader.attempt(lambda reader: read_date(reader, None) if reader.skip("on") else None)
    reader.place = place
    return day is not None


def _read_exclusion(reader: Reader, clause: Clause, today: date | None) -> bool:
    found = reader.attempt(lambda reader: read_exclusion(reader, today))
    if found is None:
        return False
    clause.without |= found
    return True


# ── from when to when, and how often at all ─────────────────────────────────────────────────────────────────


def _read_bound(reader: Reader, clause: Clause, today: date | None) -> bool:
    return (
        _read_stretch(reader, clause, today)
        or _read_start(reader, clause, today)
        or _read_end(reader, clause, today)
        or _read_runs(reader, clause)
        or _read_length(reader, clause)
    )


def _read_stretch(reader: Reader, clause: Clause, today: date | None) -> bool:
    found = reader.attempt(lambda reader: read_stretch(reader, today))
    if found is None or clause.starts is not None or clause.ends is not None:
        return False
    clause.starts, clause.ends = found
    return True


def _read_start(reader: Reader, clause: Clause, today: date | None) -> bool:
    with_time = clause.times is not None or clause.is_within_days
    found = reader.attempt(lambda reader: read_start(reader, today, with_time=with_time))
    if found is None:
        return False
    if found.is_counted and clause.counted_from is None:
        clause.counted_from = found.at
        return True
    if found.is_counted or clause.starts is not None:
        return False
    clause.starts, clause.steps_from = found.at, None if found.is_bound else found.at
    return True


def _read_end(reader: Reader, clause: Clause, today: date | None) -> bool:
    if clause.ends is not None:
        return False
    clause.ends = reader.attempt(lambda reader: read_end(reader, today))
    return clause.ends is not None


def _read_runs(reader: Reader, clause: Clause) -> bool:
    if clause.runs is not None or reader.place == 0:
        return False
    clause.runs = reader.attempt(read_runs)
    return clause.runs is not None


def _read_length(reader: Reader, clause: Clause) -> bool:
    if clause.lasts is not None:
        return False
    clause.lasts = reader.attempt(read_length)
    return clause.lasts is not None


READERS = {  # the first that reads something is right
    "repeat": _read_repeat,
    "bound": _read_bound,  # before times: `from 1 january 2027`
    "window": _read_window,
    "times": _read_times,
    "exclusion": _read_exclusion,
    "day": _read_moment,
    "days": _read_days,
    "months": _read_months,
    "part of the day": _read_part_of_day,
    "once": _read_once,
    "offset": _read_offset,
    "all day": _read_all_day,
    "where": _read_where,
}
