"""A schedule as one English sentence, with its zone, exceptions and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.calendar import BlackoutPolicy, CalendarUse, Use
from mainspring.schedule.cron import Cron
from mainspring.schedule.instants import Instants
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.sets import Except, Union
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.schedule.words.crons import cron_words, is_of_whole_days, joined, whole_day_words
from mainspring.schedule.words.phrases import counted, listed, moment, span
from mainspring.schedule.words.rules import instants_words, interval_words, rule_words
from mainspring.schedule.zones import wall_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mainspring.schedule.schedule import Schedule
    from mainspring.schedule.sets import When

MAX_PARTS = 8  # so many parts of a union are told; of the others, how many there are
MAX_LENGTH = 1_500

GAPS = {
    GapPolicy.RUN_AFTER: "times that the clock skips run right after the gap",
    GapPolicy.SHIFT: "times that the clock skips are shifted by the gap",
    GapPolicy.SKIP: "times that the clock skips do not run",
}
REPEATS = {
    RepeatPolicy.FIRST: "times that the clock repeats run the first time only",
    RepeatPolicy.SECOND: "times that the clock repeats run the second time only",
    RepeatPolicy.BOTH: "times that the clock repeats run both times",
}


def in_words(schedule: Schedule) -> str:
    """The sentence. It ends with a full stop, and never is longer than `MAX_LENGTH`."""
    said = when_words(schedule.when, schedule)
    clauses = [f"{said}, {_zone(schedule)}", *_exceptions(schedule), *_bounds(schedule), *_policies(schedule)]
    sentence = "; ".join([", ".join(clauses[:1]), *clauses[1:]])
    sentence = sentence[0].upper() + sentence[1:]
    return f"{sentence}." if len(sentence) < MAX_LENGTH else f"{sentence[: MAX_LENGTH - 1]}…"


def when_words(when: When, schedule: Schedule) -> str:
    """One form in words, without zone, exceptions and bounds."""
    match when:
        case Cron():
            return cron_words([when])
        case Interval():
            return interval_words(when, zone_named(schedule.zone), schedule.starts_at)
        case Instants():
            return instants_words(when, zone_named(schedule.zone))
        case Rule():
            own = when.zone not in (None, schedule.zone) and when is not schedule.when
            return rule_words(when, zone_named(schedule.zone)) + (f" ({_named(when.zone)})" if own else "")
        case Union():
            return _union_words(when, schedule)
        case Except(base, minus):
            return f"{when_words(base, schedule)}, but not {_left_out(minus, schedule)}"


def _left_out(minus: When, schedule: Schedule) -> str:
    """Whole days by their names alone: whatever is due on them is left out."""
    parts = minus.parts if isinstance(minus, Union) else (minus,)
    days = [whole_day_words(part) for part in parts if isinstance(part, Cron) and is_of_whole_days(part)]
    return listed(days) if len(days) == len(parts) else when_words(minus, schedule)


def _union_words(union: Union, schedule: Schedule) -> str:
    """The parts; cron expressions that differ in their times only are told as one."""
    crons = joined([part for part in union.parts if isinstance(part, Cron)])
    others = [part for part in union.parts if not isinstance(part, Cron)]
    said = [*(cron_words(group) for group in crons), *(when_words(part, schedule) for part in others)]
    if len(said) > MAX_PARTS:
        said = [*said[: MAX_PARTS - 1], f"{len(said) - MAX_PARTS + 1} more"]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, and {said[-1]}"


def _zone(schedule: Schedule) -> str:
    """Where its clock times are read. A rule that is all there is may have a zone of its own."""
    own = schedule.when.zone if isinstance(schedule.when, Rule) else None
    if own in (None, schedule.zone) or not (schedule.calendars or schedule.starts_at or schedule.ends_at):
        return _named(own or schedule.zone)
    return f"{_named(own)}; bounds and calendars in {_named(schedule.zone)}"


def _named(zone: str | None) -> str:
    return "UTC" if zone == "UTC" else f"{zone} time"


def _exceptions(schedule: Schedule) -> Iterator[str]:
    for use, words in ((Use.INCLUDE, "only within {}"), (Use.EXCLUDE, "never within {}")):
        names = [each.calendar.name for each in schedule.calendars if each.use is use]
        if names:
            yield words.format(f"the calendar{'' if len(names) == 1 else 's'} {listed(names)}")
    for each in schedule.calendars:
        if each.use is Use.BLACKOUT:
            yield _blackout(each)


def _blackout(use: CalendarUse) -> str:
    inside = f"whatever falls into the blackout {use.calendar.name}"
    return f"{inside} is dropped" if use.then is BlackoutPolicy.DROP else f"{inside} is moved to its end"


def _bounds(schedule: Schedule) -> Iterator[str]:
    if schedule.starts_at is not None:
        yield f"from {_local(schedule, schedule.starts_at)} on"
    if schedule.ends_at is not None:
        yield f"until before {_local(schedule, schedule.ends_at)}"
    if schedule.max_runs is not None:
        yield "once only" if schedule.max_runs == 1 else f"at most {counted(schedule.max_runs, 'time')}"


def _local(schedule: Schedule, instant: datetime) -> str:
    return moment(wall_of(zone_named(schedule.zone), instant))


def _policies(schedule: Schedule) -> Iterator[str]:
    if schedule.spread:
        yield f"each delayed by up to {span(schedule.spread)}, by the schedule's name"
    if schedule.gap in GAPS:
        yield GAPS[schedule.gap]
    if schedule.repeat in REPEATS:
        yield REPEATS[schedule.repeat]
