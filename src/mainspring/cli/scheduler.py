"""`mainspring scheduler`, and `mainspring schedule apply`: what brings schedules to life."""

import asyncio
import signal
from collections.abc import Sequence
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
from mainspring.cli.text import safe
from mainspring.cli.workers import LogLevel
from mainspring.control.declared import DeclaredDifference, Difference
from mainspring.schedule.diff import diff

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
            if each.difference is not Difference.UNCHANGED:
                invocation.say(f"schedule {each.name}: {SAID[each.difference]}")
        for line in await _next_due(client, application):
            invocation.say(line)


async def _next_due(client: Mainspring, application: Mainspring) -> list[str]:
    """When the next of the declared schedules are due."""
    found = [await client.schedules.find(request.name) for request in application.declared]
    due = sorted((each.next_at, each.name) for each in found if each.next_at is not None)
    return [f"next: {name} at {at:%Y-%m-%d %H:%M:%S} UTC" for at, name in due[:SHOWN]]


SAID = {
    Difference.ADDED: "added",
    Difference.CHANGED: "changed",
    Difference.UNCHANGED: "unchanged",
    Difference.SUPERSEDED: "left alone: a later version of the code has replaced it; apply it by hand to go back",
    Difference.OVERRIDDEN: "left alone: it was changed at run time, and belongs to whoever did that",
    Difference.REMOVED: "no longer declared; delete it with: mainspring schedule apply --prune",
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
        invocation.print_json({"schedules": documents, "unfit": unfit})
        return
    for misfit in unfit:
        invocation.say(f"schedule {misfit.name}: its arguments no longer fit {misfit.job}: {misfit.problem}")
    if differences:
        invocation.print_lines(_lines(differences, invocation.now, prunes=prune))
    else:
        invocation.print("The application declares no schedules, and none is left from before.")


def _lines(differences: Sequence[DeclaredDifference], now: datetime, *, prunes: bool) -> list[Text]:
    lines = []
    for each in differences:
        said = "deleted" if prunes and each.difference is Difference.REMOVED else SAID[each.difference]
        lines.append(Text(f"{safe(each.name, 100)}: {said}", style=COLOURS.get(each.difference, "")))
        lines += [Text(f"  {line}") for line in _details(each, now)]
    return lines


COLOURS = {
    Difference.ADDED: "green",
    Difference.CHANGED: "yellow",
    Difference.UNCHANGED: "dim",
    Difference.REMOVED: "red",
}


def _details(each: DeclaredDifference, now: datetime) -> list[str]:
    if each.difference is Difference.ADDED and each.after is not None:
        return [each.after.words]
    if each.difference is not Difference.CHANGED or each.before is None or each.after is None:
        return []
    changes = diff(each.before, each.after, now, now + MONTH, job=each.name)
    told = [f"was: {each.before.words}", f"now: {each.after.words}"] if each.before != each.after else []
    return [
        *told,
        f"occurrences of the next 30 days: {len(changes.appeared):,} new, {len(changes.vanished):,} gone,"
        f" {len(changes.moved):,} moved, {changes.kept:,} as before",
    ]


def _as_document(each: DeclaredDifference, now: datetime) -> dict[str, object]:
    document: dict[str, object] = {"name": each.name, "difference": each.difference.value}
    if each.difference is Difference.CHANGED and each.before is not None and each.after is not None:
        changes = diff(each.before, each.after, now, now + MONTH, job=each.name)
        document["appear"], document["vanish"] = changes.appeared, changes.vanished
        document["move"] = changes.moved
    return document | {
        "before": None if each.before is None else each.before.text,
        "after": None if each.after is None else each.after.text,
    }
