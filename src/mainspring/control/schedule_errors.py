"""What is said when a schedule cannot be found, made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import InvalidInput, ScheduleExists, ScheduleNotFound, ScheduleVersionConflict, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def no_such_schedule(name: str, known: Iterable[str]) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"There is no schedule named {name!r}.", hint=did_you_mean(name, known), field="schedule", value=name
    )


def no_such_version(name: str, version: int, present: int) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"Schedule {name!r} has no version {version}; it is at version {present}.",
        code="schedule-version-not-found",
        hint="`mainspring schedule versions` lists those there are.",
        field="version",
        value=version,
    )


def schedule_exists(name: str) -> ScheduleExists:
    return ScheduleExists(
        f"There is a schedule named {name!r}.",
        hint="Choose another name, or replace it (put; --replace on the command line).",
        field="schedule",
        value=name,
    )


def version_conflict(name: str, version: int, expected: int) -> ScheduleVersionConflict:
    return ScheduleVersionConflict(
        f"Schedule {name!r} is at version {version}, not {expected}: someone changed it meanwhile.",
        hint="Look at it again and repeat the change.",
        field="expected_version",
        value=expected,
        version=version,
    )


def pause_is_over(until: datetime, now: datetime) -> InvalidInput:
    return InvalidInput(
        f"until is {until.isoformat()}; it must be after the present, {now.isoformat(timespec='seconds')}.",
        code="invalid-until",
        hint="Leave it out to pause until somebody resumes.",
        field="until",
        value=until.isoformat(),
        rule="must be after the present",
    )
