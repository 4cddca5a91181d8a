"""What a clause must say before it can mean one thing only. Whatever is missing is asked for, never assumed."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING

from mainspring.schedule.english.contradictions import check_contradictions, check_one_moment
from mainspring.schedule.english.days import LONGEST
from mainspring.schedule.english.once_checks import check_once, check_recurrence
from mainspring.schedule.english.refusals import Refusal, refused_clause
from mainspring.schedule.english.step_checks import check_step
from mainspring.schedule.english.vocabulary import MONTHS, PARTS_OF_DAY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader, Rewrite

NEEDS_DAYS = {
    "week": ("on which day of the week", "on monday"),
    "month": ("on which day of the month", "on the 1st"),
    "quarter": ("on which day of the quarter", "on the 1st"),
    "year": ("on which day of the year", "on 24 december"),
}
SEVERAL = {  # for so many times a week, month or year
    ("week", 2): "on monday and thursday",
    ("week", 3): "on monday, wednesday and friday",
    ("month", 2): "on the 1st and 15th",
    ("year", 2): "on 1 january and 1 july",
}
USUAL = {1: ("09:00", "00:00"), 2: ("09:00 and 17:00",), 3: ("08:00, 12:00 and 18:00",)}  # for so many times a day


def check(reader: Reader, clause: Clause, today: date | None) -> None:
    """Refuse a clause that leaves something open."""
    if clause.ends is not None and clause.lasts is not None:
        words = f"it says twice when it ends, once as '{clause.lasts.said}'"
        raise refused_clause(reader, clause, words, examples=("every hour for 10 days", "every hour until 2027-03-01"))
    check_one_moment(reader, clause)
    check_once(reader, clause)
    if clause.delay is not None:
        _refuse_with_delay(reader, clause)
        return
    if clause.is_within_days:
        check_step(reader, clause)
        if clause.days is not None:
            _check_length(reader, clause, clause.days)
        check_contradictions(reader, clause)
        return
    check_recurrence(reader, clause, today)
    _check_days(reader, clause)
    _check_times(reader, clause)


def _refuse_with_delay(reader: Reader, clause: Clause) -> None:
    if clause.times or clause.window or clause.minutes_past or clause.part_of_day:
        raise _at_end(reader, "a span of minutes or hours from now is a moment already", examples=("in 15 minutes",))


# ── on which days ───────────────────────────────────────────────────────────────────────────────────────────


def _check_days(reader: Reader, clause: Clause) -> None:
    days, unit = clause.days, clause.unit
    _check_weekends(reader, clause)
    if days is not None:
        _check_length(reader, clause, days)
    check_contradictions(reader, clause)
    if unit == "week" and not (days and days.weekdays):
        raise _needs_days(reader, clause, "week")
    if unit in ("month", "quarter", "year") and not clause.has_dates:
        raise _needs_days(reader, clause, unit)
    if unit == "day" and clause.has_dates:
        words = "'every day' and a day of the month contradict each other"
        raise refused_clause(reader, clause, words, rewrites=_without_every(reader, clause), examples=_example("month"))
    if unit == "year" and days is not None and not days.dates and not (days.months or clause.months):
        raise _needs_days(reader, clause, "year")


def _check_weekends(reader: Reader, clause: Clause) -> None:
    """`every weekend` may be once or twice; `every other weekday` may skip days or weeks."""
    weekdays = clause.days.weekdays if clause.days is not None else frozenset()
    weekend = next((token for token in reader.tokens if token.text == "weekend"), None)
    if weekend is not None and not any(token.text in ("day", "days") for token in reader.tokens):
        rewrites = [reader.replaced(weekend, weekend, each) for each in ("saturday and sunday", "saturday", "sunday")]
        raise refused_clause(reader, clause, "a weekend has two days", rewrites=rewrites)
    if clause.unit == "week" and clause.count > 1 and len(weekdays) > 1 and not _names_weeks(reader):
        other = next((token for token in reader.tokens if token.text in ("other", "alternate")), None)
        rewrites = [] if other is None else [reader.replaced(other, other, "2 weeks on")]
        examples = ("every 2 weeks on monday and thursday at 09:00", "every other day at 09:00")
        words = "it may skip every other day, or every other week"
        raise refused_clause(reader, clause, words, rewrites=rewrites, examples=examples)


def _names_weeks(reader: Reader) -> bool:
    return any(token.text in ("week", "weeks", "fortnight", "fortnightly") for token in reader.tokens)


def _check_length(reader: Reader, clause: Clause, days: Days) -> None:
    """The 29th to the 31st are not in every month; the first months of quarters have 30 days at least."""
    named = days.months or clause.months
    shortest = min(LONGEST[month - 1] for month in named) if named else 30 if clause.is_quarterly else 28
    numbers = [int(item.rstrip("W")) for item in days.of_month if item.rstrip("W").isdigit()]
    late = [number for number in numbers if number > shortest]
    if not late or clause.where_there_is_one:
        return
    anyway = _where_there_is_one(reader, clause)
    if named or clause.is_within_days:
        words = f"not every {'such ' if named else ''}month has a day {late[0]}"
        examples = ("every hour on the last day of the month", "every year on the last day of june at 09:00")
        raise refused_clause(reader, clause, words, rewrites=anyway, examples=examples, beside=True)
    said, is_alone = clause.span_of("repeat", "days"), len(days.of_month) == 1 and not days.weekdays_of_month
    instead = _instead_of_late(clause, late[0]) if said is not None and is_alone else []
    rewrites = [*(reader.replaced(*said, each) for each in instead if said is not None), *anyway]
    which = "quarter's first month" if clause.is_quarterly else "month"
    words = f"not every {which} has a day {late[0]}"
    raise refused_clause(reader, clause, words, rewrites=rewrites, examples=("last day of the month at 18:00",))


def _where_there_is_one(reader: Reader, clause: Clause) -> list[Rewrite]:
    """The same days, said to be missing in some months."""
    last = clause.said["days" if "days" in clause.said else "repeat"][1]
    comma = "" if reader.tokens[last.place + 1].text in (",", "") else ","
    return [reader.replaced(last, last, f"{reader.text[last.at : last.end]}, where there is one{comma}")]


def _instead_of_late(clause: Clause, day: int) -> list[str]:
    """The last day, or the months that have such a day."""
    if clause.is_quarterly:
        return ["last day of the quarter"] if clause.count == 1 else []
    if clause.count > 1:
        return [f"every {clause.count} months on the last day"]
    having = [MONTHS[month] for month in range(12) if LONGEST[month] >= day and (month != 1 or day == 29)]
    return ["last day of the month", f"every {day}{'st' if day == 31 else 'th'} of {_and(having)}"]


def _and(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _without_every(reader: Reader, clause: Clause) -> list[Rewrite]:
    said = clause.repeat.said if clause.repeat is not None else None
    return [] if said is None else [reader.replaced(*said, "monthly"), reader.replaced(*said, "every")]


def _needs_days(reader: Reader, clause: Clause, unit: str) -> Refusal:
    which, days = NEEDS_DAYS[unit]
    said = clause.repeat.said if clause.repeat is not None else None
    days = "on 1 january" if unit == "year" and clause.count == 1 and clause.months is None else days
    often = clause.repeat.times_per or 1 if clause.repeat is not None else 1
    with_months = SEVERAL.get((unit, often), "on the 1st" if clause.months else days)
    rewrites = [] if said is None else [reader.inserted(said[1].end, with_months)]
    return _at_end(reader, f"it does not say {which}", rewrites=rewrites, examples=_example(unit))


def _example(unit: str) -> tuple[str, ...]:
    return (f"every {unit} {NEEDS_DAYS[unit][1]} at 09:00",)


# ── at what time ────────────────────────────────────────────────────────────────────────────────────────────


def _check_times(reader: Reader, clause: Clause) -> None:
    if clause.minutes_past is not None:
        examples = ("every hour at 15 minutes past the hour",)
        raise _at_end(reader, "minutes past the hour go with hours", examples=examples)
    if clause.window is not None:
        example = "every hour from 9am to 5pm on weekdays"
        raise _at_end(reader, "it does not say how often between those times", examples=(example,))
    if not clause.times:
        part = clause.part
        wanted = (clause.repeat.times_per or 1) if clause.repeat is not None and clause.unit == "day" else 1
        usual = USUAL.get(wanted) or _even_times(wanted) if part is None else (part.usual,)
        rewrites = [reader.inserted(_end_of_days(reader, clause), f"at {each}") for each in usual]
        if wanted > 1 and 24 % wanted == 0 and clause.repeat is not None and clause.repeat.said is not None:
            rewrites.append(reader.replaced(*clause.repeat.said, f"every {24 // wanted} hours"))
        raise _at_end(reader, "it does not say at what time", rewrites=rewrites, examples=("every day at 09:00",))
    _check_part_of_day(reader, clause)
    _check_how_many(reader, clause)
    _check_midnight(reader, clause)


def _even_times(count: int) -> tuple[str, ...]:
    """So many times a day at equal distances, where these are whole hours."""
    hours = range(0, 24, 24 // count) if 24 % count == 0 else ()
    return (_and([f"{hour:02}:00" for hour in hours]),) if hours else ()


def _end_of_days(reader: Reader, clause: Clause) -> int:
    """Where a time can be said: after the days, and before zones and bounds, which may have times of their own."""
    ends = [clause.said[part][1].end for part in ("repeat", "days", "day", "part of the day") if part in clause.said]
    return max(ends, default=reader.tokens[reader.place - 1].end)


def _check_part_of_day(reader: Reader, clause: Clause) -> None:
    """`every morning at 6pm` contradicts itself; `friday night at 2am` may be on Saturday."""
    token = clause.part_of_day
    if token is None:
        return
    name = clause.part_name
    outside = [at for at in clause.times or () if not PARTS_OF_DAY[name].holds(at)]
    if outside:
        words = f"{outside[0]:%H:%M} is not in the {name}" if name != "night" else f"{outside[0]:%H:%M} is not at night"
        raise Refusal(reader.text, token.at, words, examples=(f"every day at {PARTS_OF_DAY[name].usual}",))
    is_one_day = clause.days is not None or clause.day is not None
    if name == "night" and is_one_day and any(at <= time(6) for at in clause.times or ()):
        words = "the hours after midnight may belong to either day"
        raise Refusal(
            reader.text, token.at, words, remedy="Name the day without 'night'.", examples=("every saturday at 02:00",)
        )


def _check_how_many(reader: Reader, clause: Clause) -> None:
    """`twice a day` names two times, `twice a week` two days."""
    wanted = clause.repeat.times_per if clause.repeat is not None else None
    if wanted is None:
        return
    days = clause.days
    of_month = len(days.of_month) + len(days.weekdays_of_month) if days else 0
    named = {
        "day": len(clause.times or ()),
        "week": len(days.weekdays) if days else 0,
        "month": of_month,
        "quarter": of_month,
        "year": len(days.dates) if days else 0,
    }.get(clause.unit or "", wanted)
    if named != wanted:
        often = {1: "once", 2: "twice"}.get(wanted, f"{wanted} times")
        words = f"it says {often} a {clause.unit}, and {named} {'is' if named == 1 else 'are'} named"
        examples = ("twice a day at 09:00 and 17:00", "twice a week on monday and thursday at 09:00")
        raise refused_clause(reader, clause, words, examples=examples)


def _check_midnight(reader: Reader, clause: Clause) -> None:
    """Midnight of every day is clear; that of one day may be its beginning or its end."""
    named = next((token for token in reader.tokens if token.text == "midnight"), None)
    every_day = clause.unit == "day" and clause.count == 1 and clause.days is None
    if named is None or (every_day and not clause.without.weekdays) or time(0) not in (clause.times or ()):
        return
    before = reader.tokens[max(0, reader.tokens.index(named) - 1)]
    first = before if before.text in ("12", "12:00", "00:00") else named
    rewrites = [reader.replaced(first, named, each) for each in ("00:00", "23:59")]
    words = "midnight may be the beginning or the end of that day"
    raise Refusal(reader.text, named.at, words, rewrites=rewrites)


def _at_end(reader: Reader, problem: str, *, rewrites: Sequence[Rewrite] = (), examples: Sequence[str] = ()) -> Refusal:
    return Refusal(reader.text, reader.token.at, problem, rewrites=rewrites, examples=examples)
