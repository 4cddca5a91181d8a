"""`mainspring scheduler`, and `mainspring schedule apply`: what brings schedules to life."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.app.logs import log_from
from mainspring.app.mainspring import Mainspring
from mainspring.app.stored_arguments import unfit_schedules
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.schedule_diff import change_lines
from mainspring.cli.text import safe
from mainspring.cli.workers import LogLevel
from mainspring.control.declared import DeclaredDifference, Difference
from mainspring.schedule.diff import diff
from mainspring.schedule.schedule import Schedule

MONTH = timedelta(days=30)
SHOWN = 5

App = Annotated[str, Parameter(help="module:attribute of your Mainspring; the current folder is searched first.")]


@command("scheduler")
async def run_scheduler(
    *,
    app: Annotated[
        str | None,
        Parameter(help="module:attribute of a Mainspring whose declared schedules take effect at the start."),
    ] = None,
    log_level: LogLevel = None,
    invocation: Invocation,
) -> None:
    """Fire schedules in the foreground.

    Any number of schedulers may run at once, on any number of machines: they share
    the work, and if one ends, the others take its part over within seconds.
    SIGTERM or Ctrl-C stops it.

    Examples:
      mainspring scheduler
      mainspring scheduler --app shop.jobs:app
    """
    if log_level is not None:
        log_from(log_level)
    application = None if app is None else load_app(app)
    if application is not None:
        await apply_declared(invocation, application)
    stopping = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopping.set)
    invocation.say("scheduler; Ctrl-C stops")
    location = invocation.location(application)
    await wiring.schedule_until_stopped(location, invocation.clock, stopping, invocation.say)


async def apply_declared(invocation: Invocation, application: Mainspring) -> None:
    """Let the schedules of the code take effect, and say what changed by that."""
    if not application.declared:
        return
    async with invocation.client(application) as client:
        declared = (await client.services()).declared
        for each in await declared.apply(client.actor, application.declared):
            if each.difference not in (Difference.UNCHANGED, Difference.ELSEWHERE):
                invocation.say(f"schedule {each.name}: {SAID[each.difference]}")
        for line in await _next_due(client, application):
            invocation.say(line)


async def _next_due(client: Mainspring, application: Mainspring) -> list[str]:
    """When the next of the declared schedules are due. Where a cursor stands may be past already."""
    found = [await client.schedules.find(request.name) for request in application.declared]
    first = sorted((each.next_at, each.name) for each in found if each.next_at is not None)[:SHOWN]
    coming = [(name, await client.schedules.preview(name, count=1)) for _, name in first]
    due = sorted((entry.nominal_at, name) for name, preview in coming for entry in preview.entries if entry.fires)
    return [f"next: {name} at {at:%Y-%m-%d %H:%M:%S} UTC" for at, name in due]


SAID = {
    Difference.ADDED: "added",
    Difference.CHANGED: "changed",
    Difference.UNCHANGED: "unchanged",
    Difference.SUPERSEDED: "left alone: a later version of the code has replaced it; apply it by hand to go back",
    Difference.OVERRIDDEN: "left alone: it was changed at run time, and belongs to whoever did that",
    Difference.REMOVED: "no longer declared; delete it with: mainspring schedule apply --prune",
    Difference.ELSEWHERE: "left alone: not declared here, but live workers know its job",
}


@command("apply")
async def apply(
    *,
    app: App,
    dry_run: Annotated[bool, Flag, Parameter(help="Show what would change, and change nothing.")] = False,
    prune: Annotated[bool, Flag, Parameter(help="Delete schedules that are no longer declared.")] = False,
    invocation: Invocation,
) -> None:
    """Let the schedules that an application declares take effect.

    Shows what is added, changed and removed, and which occurrences of the next 30
    days that moves. Schedules made at run time are never touched; those with
    arguments that the code no longer takes are named.

    Examples:
      mainspring schedule apply --app shop.jobs:app --dry-run
      mainspring schedule apply --app shop.jobs:app --prune
    """
    application = load_app(app)
    async with invocation.client(application) as client:
        declared = (await client.services()).declared
        if dry_run:
            differences = await declared.compare(client.actor, application.declared, by_hand=True)
        else:
            differences = await declared.apply(client.actor, application.declared, by_hand=True, prune=prune)
        unfit = await unfit_schedules(client)
    if invocation.wants_json:
        documents = [_as_document(each, invocation.now) for each in differences]
        invocation.print_json({"is_dry_run": dry_run, "schedules": documents, "unfit": unfit})
        return
    for misfit in unfit:
        invocation.say(f"schedule {misfit.name}: its arguments no longer fit {misfit.job}: {misfit.problem}")
    ours = [each for each in differences if each.difference is not Difference.ELSEWHERE]
    elsewhere = [each.name for each in differences if each.difference is Difference.ELSEWHERE]
    if ours:
        invocation.print_lines(list(_lines(ours, invocation, prunes=prune and not dry_run)))
    else:
        invocation.print("The application declares no schedules, and none is left from before.")
    if elsewhere:
        invocation.print(Text(_told_elsewhere(elsewhere), style="dim"))
    if dry_run:
        invocation.print("Nothing was written: this was a dry run.")


def _lines(differences: Sequence[DeclaredDifference], invocation: Invocation, *, prunes: bool) -> Iterator[Text]:
    for each in differences:
        said = "deleted" if prunes and each.difference is Difference.REMOVED else SAID[each.difference]
        yield Text(f"{safe(each.name, 100)}: {said}", style=COLOURS.get(each.difference, ""))
        for line in _details(each, invocation):
            yield Text("  ").append_text(line)


def _told_elsewhere(names: Sequence[str]) -> str:
    some = ", ".join(safe(name, 100) for name in names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    return (
        f"Left alone: {some}. Not declared here, but live workers know the job, of another application or of an older"
        " version of this one; apply again when they have ended."
    )


COLOURS = {
    Difference.ADDED: "green",
    Difference.CHANGED: "yellow",
    Difference.UNCHANGED: "dim",
    Difference.REMOVED: "red",
}


def _details(each: DeclaredDifference, invocation: Invocation) -> Iterator[Text]:
    if each.difference is Difference.ADDED and each.after is not None:
        yield Text(safe(each.after.words))
    if each.difference is not Difference.CHANGED:
        return
    for change in each.changes:
        yield Text(safe(f"{change.what}: {change.before or 'none'} → {change.after or 'none'}"))
    if each.before is not None and each.after is not None and each.before != each.after:
        yield Text(safe(f"was: {each.before.words}"))
        yield Text(safe(f"now: {each.after.words}"))
        yield from _moves(each, each.before, each.after, invocation)


def _moves(each: DeclaredDifference, before: Schedule, after: Schedule, invocation: Invocation) -> Iterator[Text]:
    """How many occurrences are others then, and the first of them."""
    found = diff(before, after, invocation.now, invocation.now + MONTH, job=each.name)
    least = "" if found.compared_until is None else "at least "
    counts = ((found.appeared, "new"), (found.vanished, "gone"), (found.moved, "moved"))
    told = ", ".join(f"{least}{len(instants):,} {word}" for instants, word in counts)
    yield Text(f"occurrences of the next 30 days: {told}, {least}{found.kept:,} as before")
    if found.compared_until is not None:
        yield Text(f"compared until {found.compared_until:%Y-%m-%d %H:%M:%S} UTC only: there are too many of them")
    if found.changes:
        room = None if invocation.room is None else invocation.room - 2
        yield from change_lines(found.changes[:SHOWN], before, after, room)
    if len(found.changes) > SHOWN:
        yield Text(f"… and {len(found.changes) - SHOWN:,} more; all of them with -o json", style="dim")


def _as_document(each: DeclaredDifference, now: datetime) -> dict[str, object]:
    document: dict[str, object] = {"name": each.name, "difference": each.difference.value}
    if each.difference is Difference.CHANGED and each.before is not None and each.after is not None:
        changes = diff(each.before, each.after, now, now + MONTH, job=each.name)
        document["appear"], document["vanish"] = changes.appeared, changes.vanished
        document["move"] = changes.moved
        document["compared_until"] = changes.compared_until
        document["changes"] = each.changes
    return document | {
        "before": None if each.before is None else each.before.text,
        "after": None if each.after is None else each.after.text,
    }
