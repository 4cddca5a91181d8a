"""`mainspring schedule pause`, `resume`, `trigger`, `rollback` and `delete`: acts on one schedule."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.bulk import confirm
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_later
from mainspring.cli.schedule_show import COMING, coming_lines, facts, fires_again
from mainspring.cli.schedules import as_local
from mainspring.cli.tables import until as how_long
from mainspring.cli.text import safe
from mainspring.model.scheduling import ScheduleState, ScheduleSummary
from mainspring.schedule.preview import Preview
from mainspring.schedule.zones import zone_named

Name = Annotated[str, Parameter(help="The schedule's name.")]
ExpectedVersion = Annotated[int | None, Parameter(help="Only if this is its version.")]


@command("pause")
async def pause(
    name: Name,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept with the schedule and in the audit.")] = "",
    until: Annotated[
        str | None, Parameter(help="Go on by itself: 2h (from now), or 2026-12-24T18:00Z. Else until it is resumed.")
    ] = None,
    invocation: Invocation,
) -> None:
    """Let nothing of a schedule fire.

    What it would have fired meanwhile is skipped, and its history says so. Runs that
    it has made go on.

    Examples:
      mainspring schedule pause nightly --reason "the warehouse moves"
      mainspring schedule pause nightly --until 2h
    """
    until_at = parse_later(until, "until", invocation.now)
    async with invocation.client() as client:
        schedule = await client.schedules.pause(name, reason=reason, until=until_at)
    if invocation.wants_json:
        invocation.print_json(schedule)
    elif schedule.paused_until is None:
        invocation.print("paused")
    else:
        invocation.print(f"paused until {_local(schedule, schedule.paused_until)}")


@command("resume")
async def resume(name: Name, /, *, invocation: Invocation) -> None:
    """Let a paused schedule go on, from its next instant.

    Example:
      mainspring schedule resume nightly
    """
    async with invocation.client() as client:
        was_paused = (await client.schedules.find(name)).state is ScheduleState.PAUSED
        schedule = await client.schedules.resume(name)
    if invocation.wants_json:
        invocation.print_json(schedule)
    else:
        invocation.print(f"{'resumed' if was_paused else 'it was not paused'}; {_next(schedule, invocation.now)}")


def _next(schedule: ScheduleSummary, now: datetime) -> str:
    if schedule.next_at is None:
        return "it is over"
    return f"next: {_local(schedule, schedule.next_at)}, {how_long(schedule.next_at, now)}"


def _local(schedule: ScheduleSummary, at: datetime) -> str:
    return as_local(at.astimezone(zone_named(schedule.zone)))


@command("trigger")
async def trigger(name: Name, /, *, invocation: Invocation) -> None:
    """Submit one run of a schedule now; print its id.

    It is a run besides those at the schedule's instants, which stay as they are. A
    paused schedule can be triggered, too.

    Example:
      mainspring run show $(mainspring schedule trigger nightly)
    """
    async with invocation.client() as client:
        run_id = await client.schedules.trigger(name)
    if invocation.wants_json:
        invocation.print_json({"id": run_id})
    else:
        invocation.print(str(run_id))


@command("rollback")
async def rollback(
    name: Name,
    /,
    *,
    to: Annotated[int, Parameter(help="The version whose content it gets.")],
    expected_version: ExpectedVersion = None,
    invocation: Invocation,
) -> None:
    """Make a schedule again what it was at an older version.

    That is a new version: nothing is lost, and it can be rolled back as well.

    Example:
      mainspring schedule rollback nightly --to 3
    """
    async with invocation.client() as client:
        schedule = await client.schedules.rollback(name, to=to, expected_version=expected_version)
        coming = await client.schedules.preview(name, count=COMING)
    print_changed(invocation, schedule, coming)


def print_changed(invocation: Invocation, schedule: ScheduleSummary, coming: Preview) -> None:
    """What a schedule has become, and the next instants."""
    if invocation.wants_json:
        invocation.print_json(schedule)
        return
    lines = [
        ("schedule", f"{schedule.name} (version {schedule.version})"),
        ("job", schedule.job),
        ("when", schedule.when),
        ("in words", schedule.words),
    ]
    invocation.print(facts([*lines, *(coming_lines(coming, invocation.now) if fires_again(schedule) else ())]))


@command("delete")
async def delete(
    name: Name,
    /,
    *,
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False,
    expected_version: ExpectedVersion = None,
    invocation: Invocation,
) -> None:
    """Remove a schedule.

    Runs that it has made stay, and go on.

    Examples:
      mainspring schedule delete nightly
      mainspring schedule delete nightly --yes --expected-version 3
    """
    async with invocation.client() as client:
        if not yes:
            schedule = await client.schedules.find(name)
            confirm(invocation, f"Delete schedule {safe(name)} ({safe(schedule.when, 200)})?", hint="Say --yes.")
        await client.schedules.delete(name, expected_version=expected_version)
    if invocation.wants_json:
        invocation.print_json({"name": name, "deleted": True})
    else:
        invocation.print("deleted")
