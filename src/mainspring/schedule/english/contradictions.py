"""Parts of one clause that say two things, of which the schedule could keep only one: they are refused together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.refusals import refused_clause

if TYPE_CHECKING:
    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader

YEARLY = ("every year on 24 december at 09:00",)


def check_contradictions(reader: Reader, clause: Clause) -> None:
    if clause.days is not None:
        _check_quarter(reader, clause, clause.days)
        _check_months(reader, clause, clause.days)
    _check_exception(reader, clause)
    if not clause.is_within_days:
        _check_time_counted_from(reader, clause)


def check_one_moment(reader: Reader, clause: Clause) -> None:
    """`tomorrow at 9am except in june`, `tomorrow at 9am every day`."""
    if clause.recurs:
        return
    examples = ("every day at 09:00 starting 2027-01-01", "on 2027-01-01 at 09:00")
    if clause.repeat is not None:
        raise refused_clause(reader, clause, "it says both one day and how often", examples=examples)
    if clause.months or clause.has_exception or clause.counted_from:
        words = "months, exceptions and 'counted from' go with what recurs, and that is one day"
        raise refused_clause(reader, clause, words, examples=examples)


def _check_quarter(reader: Reader, clause: Clause, days: Days) -> None:
    is_monthly = clause.unit == "month" and days.of_quarter
    if is_monthly or (clause.is_quarterly and (days.dates or days.months or clause.months)):
        words = "a quarter and a month contradict each other"
        raise refused_clause(reader, clause, words, examples=("every quarter on the 1st at 09:00",))


def _check_months(reader: Reader, clause: Clause, days: Days) -> None:
    named = days.months | {month for month, _ in days.dates}
    if clause.unit == "month" and named:
        said = clause.repeat.said if clause.repeat is not None else None
        rewrites = [] if said is None or clause.count > 1 else [reader.replaced(*said, "every year")]
        words = "'every month' and a day of the year contradict each other"
        raise refused_clause(reader, clause, words, rewrites=rewrites, examples=YEARLY)
    if clause.months is not None and not named <= clause.months:
        words = "it names months twice, and they are not the same"
        raise refused_clause(reader, clause, words, examples=YEARLY)


def _check_exception(reader: Reader, clause: Clause) -> None:
    if clause.without.weekdays and clause.has_dates:
        examples = ("every day except sunday at 09:00", "weekday nearest the 15th of the month at 09:00")
        words = "'except' and a day of the week goes with days of the week"
        raise refused_clause(reader, clause, words, examples=examples)


def _check_time_counted_from(reader: Reader, clause: Clause) -> None:
    """`every other day at 09:00 counted from 2027-01-01 03:00`: days are counted, and their time was said."""
    at = None if clause.counted_from is None else clause.counted_from[1]
    if clause.times and at is not None and at not in clause.times:
        words = f"{at:%H:%M}, which it is counted from, is none of its times"
        remedy = "Leave out that time: days are counted, and their time is said."
        examples = ("every other day at 09:00 counted from 2027-01-01",)
        raise refused_clause(reader, clause, words, remedy=remedy, examples=examples)
