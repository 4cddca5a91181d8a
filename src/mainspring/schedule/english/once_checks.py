"""Once, or every time: a day without `every` may be either, and what happens once cannot go on for 10 days."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.dates import coming_date
from mainspring.schedule.english.refusals import refused_clause

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, time

    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader


def check_recurrence(reader: Reader, clause: Clause, today: date | None) -> None:
    """Without `every` and without a plural, a day may be one day or every such day."""
    if clause.unit is not None or clause.day is not None:
        return
    days = clause.days
    if days is None:
        missing = ("every day", "today", "tomorrow") if clause.minutes_past is None else ("every hour",)
        rewrites = [reader.inserted(clause.begins, each) for each in missing]
        examples = ("every day at 09:00", "every 15 minutes between 8am and 6pm")
        raise refused_clause(reader, clause, "it does not say on which days", rewrites=rewrites, examples=examples)
    if days.recurs:
        return
    often = "every" if days.weekdays else "every year on" if days.dates or days.months else "monthly on"
    rewrites = [with_every(reader, clause, often), *_once(clause, days, today)]
    raise refused_clause(reader, clause, "that day may be meant once, or every time it comes", rewrites=rewrites)


def check_one_day(reader: Reader, clauses: Sequence[Clause]) -> None:
    """`tomorrow at 9am for 10 days`, `tomorrow at 9am, 10 times`: one day is over after its times.

    A bound is that of the whole, so that one clause that recurs is enough for it.
    """
    bounds = clauses[-1]
    moments = sum(1 if clause.delay is not None else len(clause.times or ()) for clause in clauses)
    is_most = any(token.text == "most" for token in reader.tokens)
    too_often = bounds.runs is not None and bounds.runs > moments and not is_most
    if not (bounds.lasts or too_often) or any(clause.recurs for clause in clauses):
        return
    said = bounds.lasts.said if bounds.lasts else f"{bounds.runs} times"
    rewrites = [_every_day_from(clause, said) for clause in clauses if clause.day is not None]
    reason = "that is one day" if rewrites and len(clauses) == 1 else "nothing here does"
    words = f"'{said}' goes with what recurs, and {reason}"
    raise refused_clause(reader, bounds, words, rewrites=rewrites, examples=(f"every 15 minutes, {said}",))


def _every_day_from(clause: Clause, said: str) -> str:
    return f"every day at {listed_times(clause.times or ())} starting {clause.day}, {said}"


def with_every(reader: Reader, clause: Clause, often: str) -> str:
    """The text with how often before its days."""
    first = clause.days_from or reader.tokens[0]
    if often == "of the month":
        return f"{reader.text.rstrip(' .')} {often}"
    return reader.replaced(
        first, first, often if first.text in ("on", "at") else f"{often} {reader.text[first.at : first.end]}"
    )


def _once(clause: Clause, days: Days, today: date | None) -> list[str]:
    """The next such day by its date, where it is one day."""
    if today is None or not clause.times:
        return []
    if len(days.weekdays) == 1:
        (weekday,) = days.weekdays
        coming = today + timedelta(days=(weekday - today.isoweekday()) % 7 or 7)
    elif len(days.dates) == 1:
        found = coming_date(today, *days.dates[0])
        if found is None:
            return []
        coming = found
    else:
        return []
    return [f"on {coming} at {listed_times(clause.times)}"]


def listed_times(times: Sequence[time]) -> str:
    return " and ".join(at.isoformat("auto" if at.second else "minutes") for at in times)
