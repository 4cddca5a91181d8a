"""`mainspring schedule list` and `schedule versions`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.command import Invocation, Repeatable, command
from mainspring.cli.parsing import parse_later
from mainspring.cli.schedule_history import overdue_since
from mainspring.cli.schedule_show import STATE_COLOURS
from mainspring.cli.tables import Column, ago, until, whole
from mainspring.cli.text import safe
from mainspring.model.scheduling import ScheduleState, ScheduleSummary, ScheduleVersion

COLUMNS = (
    Column("schedule"),
    Column("state"),
    Column("next"),
    Column("job", is_below=True),
    Column("when", is_below=True),
    Column("version", is_number=True, leave_out=1),
    Column("tags", leave_out=2),
)


@command("list")
async def list_schedules(
    *,
    job: Annotated[str | None, Parameter(help="Of this job.")] = None,
    state: Annotated[
        tuple[Literal["active", "paused", "done"], ...], Repeatable, Parameter(help="In this state; may be repeated.")
    ] = (),
    tag: Annotated[tuple[str, ...], Repeatable, Parameter(help="With this tag; repeated: with all of them.")] = (),
    prefix: Annotated[str, Parameter(help="Whose names begin with this.", show_default=False)] = "",
    after: Annotated[str, Parameter(help="Only names that come after this one.", show_default=False)] = "",
    due_before: Annotated[
        str | None, Parameter(help="Due before then, the earliest first: 2h (from now), or 2026-12-24T18:00Z.")
    ] = None,
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 100,
    invocation: Invocation,
) -> None:
    """List schedules by name, or by when they are due.

    Examples:
      mainspring schedule list
      mainspring schedule list --job report --state paused
      mainspring schedule list --due-before 15m
      mainspring schedule list --prefix customer-42- --limit 1000 -o json
    """
    states, due = [ScheduleState(each) for each in state], parse_later(due_before, "due-before", invocation.now)
    async with invocation.client() as client:
        schedules = await client.schedules.list(
            job=job, states=states, tags=tag or None, prefix=prefix, after=after, due_before=due, limit=limit
        )
    if invocation.wants_json:
        invocation.print_json({"schedules": schedules})
        return
    if not schedules:
        invocation.print("No schedules match." if job or state or tag or prefix or after or due else "No schedules.")
        return
    now = invocation.now
    invocation.print_lines(whole(COLUMNS, [_row(each, now) for each in schedules], invocation.room))
    if len(schedules) == limit and due is None:
        invocation.say(f"there may be more: the same with --after {safe(schedules[-1].name)}")


def _row(schedule: ScheduleSummary, now: datetime) -> list[Text]:
    return [
        Text(safe(schedule.name)),
        Text(schedule.state.value, style=STATE_COLOURS[schedule.state]),
        _next(schedule, now),
        Text(safe(schedule.job)),
        Text(safe(schedule.when, 120)),
        Text(str(schedule.version)),
        Text(safe(", ".join(schedule.tags), 60)),
    ]


def _next(schedule: ScheduleSummary, now: datetime) -> Text:
    overdue = overdue_since(schedule, now)
    if overdue is not None:
        return Text(ago(overdue, now).replace("ago", "late"), style="red")
    if schedule.paused_until is not None:
        return Text(f"resumes {until(schedule.paused_until, now)}")
    return Text("–" if schedule.next_due_at is None else until(schedule.next_due_at, now))


VERSIONS = (
    Column("version", is_number=True),
    Column("since"),
    Column("by", leave_out=3),
    Column("changed", leave_out=2),
    Column("when", is_below=True),
    Column("job", leave_out=1),
)


@command("versions")
async def versions(
    name: Annotated[str, Parameter(help="The schedule's name.")],
    /,
    *,
    invocation: Invocation,
) -> None:
    """Show what a schedule is and was, newest first.

    `changed` is what differs from the version before. Also shown is what was there
    under this name before, if that was deleted.

    Examples:
      mainspring schedule versions nightly
      mainspring schedule versions nightly -o json
    """
    async with invocation.client() as client:
        found = await client.schedules.versions(name)
    if invocation.wants_json:
        invocation.print_json({"versions": found})
    else:
        invocation.print_lines(whole(VERSIONS, _version_rows(found, invocation.now), invocation.room))


def _version_rows(found: Sequence[ScheduleVersion], now: datetime) -> list[list[Text]]:
    befores = [*found[1:], None]
    return [
        [
            Text(str(each.version)),
            Text(ago(each.changed_at, now)),
            Text(safe(each.changed_by, 60)),
            _changed(each, before),
            Text(safe(each.when, 120)),
            Text(safe(each.job)),
        ]
        for each, before in zip(found, befores, strict=True)
    ]


COMPARED = {
    "when": ("when",),
    "job": ("job",),
    "arguments": ("payload",),
    "options": ("options",),
    "tags": ("tags",),
    "catch-up": ("catch_up", "catch_up_window"),
    "overlap": ("overlap",),
    "pause after failures": ("pause_after_failures",),
}


def _changed(version: ScheduleVersion, before: ScheduleVersion | None) -> Text:
    if before is None or before.is_deleted:
        words = "new"
    else:
        words = ", ".join(
            word
            for word, fields in COMPARED.items()
            if any(getattr(version, field) != getattr(before, field) for field in fields)
        )
    return Text(f"{words}; then deleted" if version.is_deleted else words, style="red" if version.is_deleted else "")
