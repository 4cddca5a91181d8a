"""What is said when a schedule cannot be found, made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import (
    InvalidInput,
    ScheduleExists,
    ScheduleNotFound,
    ScheduleVersionConflict,
    did_you_mean,
)
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.errors import MainspringError

SHOWN = 5  # names in a message


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


def schedules_exist(names: Sequence[str]) -> ScheduleExists:
    return ScheduleExists(
        f"There are schedules named {_some(names)}; none of the batch was made.",
        hint="Leave those out, or replace them (put_many).",
        field="schedule",
        value=names[0],
        names=list(names[:SHOWN]),
    )


def names_repeated(names: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"Several requests are for {_some(names)}; each schedule of a batch must have a name of its own.",
        code="names-repeated",
        hint="Leave the others out.",
        field="schedule",
        value=names[0],
        rule="must be given once",
    )


def not_a_request(position: int, value: object) -> InvalidInput:
    return InvalidInput(
        f"requests[{position}] is {quoted(value)}; it must be a request of a schedule.",
        code="invalid-requests",
        hint="Make each by job.scheduled(name, when).request(…).",
        field="requests",
        value=quoted(value),
        rule="must be requests of schedules",
        position=position,
    )


def batch_too_large(count: int, most: int) -> InvalidInput:
    return InvalidInput(
        f"{count:,} schedules in one batch; at most {most:,} are allowed.",
        code="batch-too-large",
        hint="Make them in several batches.",
        field="requests",
    )


def refused_in_batch(
    error: MainspringError, request: ScheduleRequest, batch: Sequence[ScheduleRequest]
) -> MainspringError:
    """What is wrong with one of many: which one, and that nothing was done."""
    position = [each.name for each in batch].index(request.name)
    return type(error)(
        f"requests[{position}], {request.name!r}: {error.message} Nothing of the batch was done.",
        code=error.code,
        hint=error.hint,
        **error.fields | {"name": request.name, "position": position},
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN:,} more"


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


def empty_range(since: datetime, before: datetime) -> InvalidInput:
    return InvalidInput(
        f"since is {since.isoformat()}; it must be earlier than before, {before.isoformat()}.",
        code="invalid-since",
        hint="Nothing lies between the two; change one of them.",
        field="since",
        value=since.isoformat(),
        rule="must be earlier than before",
    )


def after_of_due(after: str) -> InvalidInput:
    return InvalidInput(
        f"after is {after!r}, a name; with due_before, schedules are listed by when they are due.",
        code="after-of-due",
        hint="Use page, whose cursor says where the next page begins.",
        field="after",
        value=after,
    )


def not_a_cursor(text: object) -> InvalidInput:
    return InvalidInput(
        f"The cursor {quoted(text)} is not one that such a list returned.",
        code="invalid-cursor",
        hint="Begin again without it.",
        field="cursor",
        value=quoted(text),
    )
