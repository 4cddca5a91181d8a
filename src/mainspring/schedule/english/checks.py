"""What a clause must say before it can mean one thing only. Whatever is missing is asked for, never assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.reader import unclear

if TYPE_CHECKING:
    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Reader

NEEDS_DAYS = {
    "week": ("on which day of the week", "weekly on monday at 09:00"),
    "month": ("on which day of the month", "monthly on the 1st at 09:00"),
    "quarter": ("on which day of the quarter's first month", "quarterly on the 1st at 06:00"),
    "year": ("on which day of the year", "every year on 24 december at 18:00"),
}


def check(reader: Reader, clause: Clause) -> None:
    """Refuse a clause that leaves something open."""
    if clause.delay is not None:
        _refuse_with_delay(reader, clause)
        return
    if clause.is_within_days:
        _check_step(reader, clause)
        return
    _check_recurrence(reader, clause)
    _check_days(reader, clause)
    _check_times(reader, clause)


def _refuse_with_delay(reader: Reader, clause: Clause) -> None:
    if clause.times or clause.window or clause.months:
        raise _at_end(reader, "a span of minutes or hours from now is a moment already", ("in 15 minutes",))


def _check_step(reader: Reader, clause: Clause) -> None:
    if clause.times is not None:
        words = "it says both how often and at which times"
        raise _at(reader, clause, words, ("every 15 minutes between 8am and 6pm", "every day at 09:00"))
    if clause.minutes_past is not None and clause.unit != "hour":
        raise _at(reader, clause, "minutes past the hour go with hours", ("every hour at 15 minutes past the hour",))
    if clause.day is not None:
        raise _at(reader, clause, "how often goes with days that recur", ("every 15 minutes on weekdays",))
    if clause.days is not None and not clause.days.weekdays:
        _check_window_days(reader, clause)


def _check_window_days(reader: Reader, clause: Clause) -> None:
    days = clause.days
    if days is not None and not (days.recurs or days.months or days.dates):
        raise _ambiguous_day(reader, clause, "every hour on the 15th of the month")


def _check_recurrence(reader: Reader, clause: Clause) -> None:
    """Without `every` and without a plural, a day may be one day or every such day."""
    if clause.unit is not None or clause.day is not None:
        return
    days = clause.days
    if days is None:
        forms = ("every day at 09:00", "today at 09:00", "tomorrow at 09:00")
        raise _at(reader, clause, "it does not say on which days", forms)
    if days.recurs:
        return
    said = reader.text[clause.begins :].strip().removeprefix("on ")[:80]
    often = "every" if days.weekdays else "every year on" if days.dates or days.months else "monthly on"
    raise _ambiguous_day(reader, clause, f"{often} {said}")


def _ambiguous_day(reader: Reader, clause: Clause, recurring: str) -> InvalidSchedule:
    words = "that day may be meant once, or every time it comes"
    return _at(reader, clause, words, (recurring, "on 2026-12-24 at 18:00"))


def _check_days(reader: Reader, clause: Clause) -> None:
    days, unit = clause.days, clause.unit
    _check_weekends(reader, clause)
    if days is not None and not clause.months:
        _check_length(reader, clause, days)
    has_dates = days is not None and bool(days.of_month or days.weekdays_of_month or days.dates)
    if unit == "week" and not (days and days.weekdays):
        raise _needs_days(reader, "week")
    if unit in ("month", "quarter", "year") and not has_dates:
        raise _needs_days(reader, unit)
    if unit == "day" and has_dates:
        raise _at(reader, clause, "'every day' and a day of the month contradict each other", (NEEDS_DAYS["month"][1],))
    if unit == "year" and days is not None and not days.dates and not (days.months or clause.months):
        raise _needs_days(reader, "year")
    if clause.except_weekdays is not None and has_dates:
        forms = ("every day except sunday at 09:00", "weekday nearest the 15th of the month at 09:00")
        raise _at(reader, clause, "'except' and a day of the week goes with days of the week", forms)


def _check_weekends(reader: Reader, clause: Clause) -> None:
    """`every weekend` may be once or twice; `every other weekday` may skip days or weeks."""
    weekdays = clause.days.weekdays if clause.days is not None else frozenset()
    if any(token.text == "weekend" for token in reader.tokens) and not any(t.text == "day" for t in reader.tokens):
        forms = ("every saturday and sunday at 10:00", "every saturday at 10:00")
        raise _at(reader, clause, "a weekend has two days", forms)
    if clause.unit == "week" and clause.count > 1 and len(weekdays) > 1 and _is_said_at_once(reader):
        forms = (f"every {clause.count} weeks on monday and thursday at 09:00", "every other day at 09:00")
        raise _at(reader, clause, "it may skip every other day, or every other week", forms)


def _is_said_at_once(reader: Reader) -> bool:
    """Whether weeks were not named: `every other weekday`."""
    return not any(token.text in ("week", "weeks", "fortnightly") for token in reader.tokens)


def _check_length(reader: Reader, clause: Clause, days: Days) -> None:
    """The 29th to the 31st are not in every month."""
    late = [item for item in days.of_month if item.rstrip("W").isdigit() and int(item.rstrip("W")) > 28]
    if late and not days.months and clause.unit != "quarter":
        day = late[0].rstrip("W")
        forms = ("last day of the month at 09:00", f"0 9 {day} * *")
        raise _at(reader, clause, f"not every month has a day {day}", forms)


def _needs_days(reader: Reader, unit: str) -> InvalidSchedule:
    which, form = NEEDS_DAYS[unit]
    return _at_end(reader, f"it does not say {which}", (form,))


def _check_times(reader: Reader, clause: Clause) -> None:
    if clause.minutes_past is not None:
        raise _at_end(reader, "minutes past the hour go with hours", ("every hour at 15 minutes past the hour",))
    if clause.window is not None:
        form = "every hour from 9am to 5pm on weekdays"
        raise _at_end(reader, "it does not say how often between those times", (form,))
    if not clause.times:
        raise _at_end(reader, "it does not say at what time", _with_time(reader.text[clause.begins : reader.token.at]))
    _check_midnight(reader, clause)


def _with_time(text: str) -> tuple[str, ...]:
    said = text.strip().rstrip(".,;")
    return (f"{said} at 09:00", f"{said} at 00:00") if len(said) <= 80 else ("every day at 09:00",)


def _check_midnight(reader: Reader, clause: Clause) -> None:
    """Midnight of every day is clear; that of one day may be its beginning or its end."""
    named = [token for token in reader.tokens if token.text == "midnight"]
    every_day = clause.unit == "day" and clause.count == 1 and clause.days is None
    if named and not (every_day and clause.except_weekdays is None):
        forms = (reader.text.lower().replace("midnight", "00:00"), reader.text.lower().replace("midnight", "23:59"))
        words = "midnight may be the beginning or the end of that day"
        raise unclear(reader.text, named[0].at, words, "Write", forms if len(reader.text) <= 80 else ())


def _at(reader: Reader, clause: Clause, problem: str, forms: tuple[str, ...]) -> InvalidSchedule:
    return unclear(reader.text, clause.begins, problem, "Write, for example,", forms)


def _at_end(reader: Reader, problem: str, forms: tuple[str, ...]) -> InvalidSchedule:
    return unclear(reader.text, reader.token.at, problem, "Write, for example,", forms)
