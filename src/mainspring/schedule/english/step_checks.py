"""What a clause of so many seconds, minutes or hours must say, and what it must not say twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.clocks import DAY_SECONDS, second_of, time_at
from mainspring.schedule.english.refusals import Refusal, refused_clause

if TYPE_CHECKING:
    from datetime import time

    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.reader import Reader
    from mainspring.schedule.english.times import TimeWindow


def check_step(reader: Reader, clause: Clause) -> None:
    if clause.times is not None or clause.part_of_day is not None:
        words = "it says both how often and at which times"
        raise refused_clause(
            reader, clause, words, examples=("every 15 minutes between 8am and 6pm", "every day at 09:00")
        )
    wanted = (clause.repeat.times_per or 1) if clause.repeat is not None else 1
    if wanted > 1 and (clause.unit != "hour" or len(clause.minutes_past or ()) != wanted):
        words = "it does not say at which minutes"
        said = clause.repeat.said if clause.repeat is not None else None
        even = said is not None and clause.unit == "hour" and 60 % wanted == 0
        rewrites = [reader.replaced(*said, f"every {60 // wanted} minutes")] if said is not None and even else []
        raise refused_clause(
            reader, clause, words, rewrites=rewrites, examples=("every 15 minutes", "hourly at :15 and :45")
        )
    if clause.minutes_past is not None and clause.unit != "hour":
        examples = ("every hour at 15 minutes past the hour",)
        raise refused_clause(reader, clause, "minutes past the hour go with hours", examples=examples)
    if clause.day is not None:
        raise refused_clause(
            reader, clause, "how often goes with days that recur", examples=("every 15 minutes on weekdays",)
        )
    days = clause.days
    if days is not None and not days.weekdays and not (days.recurs or days.months or days.dates):
        rewrites = [reader.inserted(clause.said["days"][1].end, "of the month")]
        words = "that day may be meant once, or every time it comes"
        examples = ("every hour on the 15th of the month",)
        raise refused_clause(reader, clause, words, rewrites=rewrites, examples=examples)


# ── where steps begin ───────────────────────────────────────────────────────────────────────────────────────


def check_first_step(reader: Reader, clause: Clause, step: int) -> None:
    """An offset, a window, minutes of the hour and a time to count from: all that say where steps begin agree."""
    if clause.offset is not None:
        _check_offset(reader, clause, clause.offset, step)
    if clause.window is not None:
        _check_minutes_past(reader, clause, clause.window.begin, step)
        _check_window(reader, clause, clause.window, step)
    elif clause.first_step is not None:
        _check_minutes_past(reader, clause, clause.first_step, step)


def _check_offset(reader: Reader, clause: Clause, offset: int, step: int) -> None:
    if clause.minutes_past is not None:
        words = "an offset and minutes past the hour both say with which minute steps begin"
        remedy = "Add the minutes to the offset."
        examples = ("every 6 hours offset by 2 hours and 15 minutes", "every 6 hours at :15")
        raise refused_clause(reader, clause, words, remedy=remedy, examples=examples)
    if offset >= step or clause.window is not None:
        words = "an offset is shorter than the step, and goes without other times"
        raise refused_clause(reader, clause, words, examples=("every 5 minutes offset by 2 minutes",))
    if clause.first_step is not None and second_of(clause.first_step) % step != offset:
        raise _two_beginnings(reader, clause, "the offset")


def _check_window(reader: Reader, clause: Clause, window: TimeWindow, step: int) -> None:
    """Every window begins with a step. What is counted on from day to day would not, if the day has no whole steps."""
    at, is_same_every_day = clause.first_step, DAY_SECONDS % step == 0
    if clause.counted_from is not None and not is_same_every_day:
        raise _two_beginnings(reader, clause, "the window")
    if at is None or at == window.begin:
        return
    apart = _step_of(clause, at) - _step_of(clause, window.begin)
    if not is_same_every_day or apart % step:
        raise _two_beginnings(reader, clause, "the window")


def _step_of(clause: Clause, at: time) -> int:
    """The second of the day that is counted: with minutes of the hour, hours are."""
    second = second_of(at)
    return second if clause.minutes_past is None else second - second % 3600


def _check_minutes_past(reader: Reader, clause: Clause, begin: time, step: int) -> None:
    """`every 6 hours at :15 from 02:30`: the first may be at 03:15 or at 08:15."""
    is_early = any(60 * minute < second_of(begin) % 3600 for minute in clause.minutes_past or ())
    is_cut = step > 3600 or (clause.window is not None and clause.window.end is None)
    if is_early and is_cut:
        words = f"those minutes of the hour are over at {begin:%H:%M}, and it is not clear in which hour steps begin"
        remedy = "Let them begin with a full hour."
        examples = ("every 6 hours at :15 counted from 2027-01-01 02:00", "every 6 hours at :15 from 02:00")
        raise refused_clause(reader, clause, words, remedy=remedy, examples=examples)


def _two_beginnings(reader: Reader, clause: Clause, other: str) -> Refusal:
    """`starting` may have been meant as a bound only, which `from` is."""
    said = "what it is counted from" if clause.counted_from is not None else "the time at which it starts"
    words = f"{other} and {said} do not agree on where steps begin"
    tokens = zip(reader.tokens, reader.tokens[1:], strict=False)
    starting = [first for first, second in tokens if first.text in ("starting", "beginning") and second.text != "at"]
    rewrites = [] if clause.counted_from else [reader.replaced(token, token, "from") for token in starting[:1]]
    return refused_clause(reader, clause, words, remedy="Say it once.", rewrites=rewrites)


def check_whole_day(reader: Reader, clause: Clause, begin: time, step: int) -> None:
    """`every 6 hours from 02:00` goes on the next day at 02:00 if the step divides the day and begins early enough."""
    if DAY_SECONDS % step == 0 and second_of(begin) < step:
        return
    words = f"it does not say up to when after {begin:%H:%M}, and the day does not begin with a step"
    window = clause.said["window"]
    rewrites = [reader.inserted(window[1].end, "to 23:59")]
    if DAY_SECONDS % step == 0:  # the same steps on and on
        rewrites.append(reader.replaced(*window, f"from {time_at(second_of(begin) % step).isoformat('minutes')}"))
    raise Refusal(reader.text, clause.begins, words, rewrites=rewrites)


def same_ends(reader: Reader, clause: Clause, at: time) -> Refusal:
    words = f"from {at:%H:%M} to {at:%H:%M} may be one moment or a whole day"
    often, window = clause.said["repeat"], clause.said["window"]
    moment = reader.edited((*often, "every day"), (*window, f"at {at:%H:%M}"))
    return Refusal(reader.text, clause.begins, words, rewrites=(reader.without(*window), moment))
