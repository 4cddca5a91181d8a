"""What a schedule may be made of: kinds of values, bounds that agree, and how much of each."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.calendar import CalendarUse
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.sets import When
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.schedule.zones import zone_named

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Schedule

MAX_RUNS = 10_000
MAX_CALENDARS = 32
MAX_SPREAD = timedelta(days=1)  # that can be asked for: a herd is flat long before that
LONGEST_SPREAD = timedelta(days=366)  # that a stored schedule may have: once, so much could be asked for


def check_kinds(schedule: Schedule) -> None:
    when, spread = schedule.when, schedule.spread
    if not isinstance(when, When):
        raise broken_rule("when", when, "must be a form of schedule", hint="Schedule.parse(text) reads texts.")
    zone_named(schedule.zone)
    for field, kind in (("gap", GapPolicy), ("repeat", RepeatPolicy)):
        value = getattr(schedule, field)
        if not isinstance(value, kind):
            raise broken_rule(field, value, f"must be one of {', '.join(map(str, kind))}")
    if not all(isinstance(each, CalendarUse) for each in schedule.calendars):
        raise broken_rule("calendars", schedule.calendars, "must be uses of calendars: CalendarUse(calendar=…)")
    if spread is not None and not isinstance(spread, timedelta):
        raise broken_rule("spread", spread, "must be a timedelta")


def check_bounds(schedule: Schedule) -> None:
    starts_at, ends_at, max_runs = schedule.starts_at, schedule.ends_at, schedule.max_runs
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        raise broken_rule(
            "ends_at",
            ends_at.isoformat(),
            f"must be after starts_at, {starts_at.isoformat()}",
            code="contradictory-bounds",
        )
    if max_runs is None:
        return
    if type(max_runs) is not int or not 1 <= max_runs <= MAX_RUNS:
        raise broken_rule("max_runs", max_runs, f"must be a whole number, 1 to {MAX_RUNS:,}")
    if starts_at is None:
        hint = "Give starts_at as well: runs are counted from there."
        raise broken_rule("max_runs", max_runs, "needs starts_at", code="max-runs-needs-start", hint=hint)


def check_spread(spread: timedelta | None) -> None:
    """Refuse a spread that may be stored, but not asked for any more."""
    if spread is not None and spread > MAX_SPREAD:
        hint = "It delays each occurrence by up to so much, never past the next one: minutes or hours flatten a herd."
        raise broken_rule("spread", spread, "must be at most a day, P1D", code="invalid-spread", hint=hint)


def check_sizes(schedule: Schedule) -> None:
    if schedule.spread is not None and not timedelta(0) < schedule.spread <= LONGEST_SPREAD:
        hint = "Leave it out for no spread at all; 10m is one of ten minutes."
        rule = "must be more than nothing and at most a day, P1D"
        raise broken_rule("spread", schedule.spread, rule, code="invalid-spread", hint=hint)
    if len(schedule.calendars) > MAX_CALENDARS:
        rule = f"must be at most {MAX_CALENDARS}"
        raise broken_rule("calendars", f"{len(schedule.calendars)} calendars", rule, code="schedule-too-large")
