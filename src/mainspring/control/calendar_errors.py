"""What is said when a stored calendar cannot be found, made, changed or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import (
    CalendarExists,
    CalendarInUse,
    CalendarNotFound,
    CalendarVersionConflict,
    InvalidSchedule,
    did_you_mean,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMED = 5  # so many users are named in a message


def no_such_calendar(name: str, known: Iterable[str]) -> CalendarNotFound:
    return CalendarNotFound(
        f"There is no calendar named {name!r}.", hint=did_you_mean(name, known), field="calendar", value=name
    )


def calendar_exists(name: str) -> CalendarExists:
    return CalendarExists(
        f"There is a calendar named {name!r}.",
        hint="Choose another name, or replace it (put; --replace on the command line).",
        field="calendar",
        value=name,
    )


def calendar_version_conflict(name: str, version: int, expected: int) -> CalendarVersionConflict:
    return CalendarVersionConflict(
        f"Calendar {name!r} is at version {version}, not {expected}: someone changed it meanwhile.",
        hint="Look at it again and repeat the change.",
        field="expected_version",
        value=expected,
        version=version,
    )


def calendar_in_use(name: str, users: Sequence[str]) -> CalendarInUse:
    more = " and others" if len(users) > NAMED else ""
    return CalendarInUse(
        f"Calendar {name!r} is used by {', '.join(users[:NAMED])}{more}.",
        hint="Let these schedules do without it, or delete them, first.",
        field="calendar",
        value=name,
        used_by=list(users),
    )


def empty_calendar(name: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"Calendar {name!r} names neither days nor times of day: it would mean all of time.",
        code="invalid-calendar",
        hint="Give dates, ranges, yearly days, weekdays or windows.",
        field="calendar",
        value=name,
        rule="must name days or times of day",
    )
