"""Once, or every time: a day without `every` may be either, and what happens once cannot go on for 10 days."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.dates import coming_date
from mainspring.schedule.english.refusals import Refusal, refused_clause

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader, Rewrite


def check_recurrence(reader: Reader, clause: Clause, today: date | None) -> None:
    """Without `every` and without a plural, a day may be one day or every such day."""
    if clause.unit is not None or clause.day is not None:
        return
    days = clause.days
    if days is None:
        rewrites = _with_days(reader, clause)
        examples = ("every day at 09:00", "every 15 minutes between 8am and 6pm")
        raise refused_clause(reader, clause, "it does not say on which days", rewrites=rewrites, examples=examples)
    if days.recurs:
        return
    often = "every" if days.weekdays else "every year on" if days.dates or days.months else "monthly on"
    every = [] if clause.once is not None else [with_every(reader, clause, often)]
    rewrites = [*every, *_once(reader, clause, days, today)]
    raise refused_clause(reader, clause, "that day may be meant once, or every time it comes", rewrites=rewrites)


def check_once(reader: Reader, clause: Clause) -> None:
    """`every day at 9am once`: it may be meant to happen once at all, or once a day."""
    once, days = clause.once, clause.days
    if once is None or (clause.repeat is None and not (days is not None and days.recurs)):
        return
    rewrites = [reader.replaced(once, once, "once only"), reader.without(once, once)]
    words = "'once' and what recurs contradict each other"
    raise Refusal(reader.text, once.at, words, rewrites=rewrites, examples=("tomorrow at 09:00",))


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
    rewrites = [
        reader.replaced(*clause.said["day"], f"every day starting {clause.day}")
        for clause in clauses
        if clause.day is not None
    ]
    reason = "that is one day" if rewrites and len(clauses) == 1 else "nothing here does"
    words = f"'{said}' goes with what recurs, and {reason}"
    raise refused_clause(reader, bounds, words, rewrites=rewrites, examples=(f"every 15 minutes, {said}",))


def _with_days(reader: Reader, clause: Clause) -> list[Rewrite]:
    """`at 9am` may be meant every day or once; `once at 9am` is not every day."""
    if clause.once is not None:
        return [reader.replaced(clause.once, clause.once, each) for each in ("today", "tomorrow")]
    missing = ("every day", "today", "tomorrow") if clause.minutes_past is None else ("every hour",)
    return [reader.inserted(clause.begins, each) for each in missing]


def with_every(reader: Reader, clause: Clause, often: str) -> Rewrite:
    """The text with how often before its days."""
    first = clause.said["days"][0]
    return reader.replaced(
        first, first, often if first.text in ("on", "at") else f"{often} {reader.text[first.at : first.end]}"
    )


def _once(reader: Reader, clause: Clause, days: Days, today: date | None) -> list[Rewrite]:
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
    return [reader.replaced(*clause.said["days"], f"on {coming}")]
