"""`mainspring top`: queues, rates, lateness, workers, schedulers and failures, live in the terminal."""

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.queues import lines_of as queue_lines
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_span, safe
from mainspring.cli.workers import lines_of as worker_lines
from mainspring.control.overview import COUNTED, Failure, Overview, overview
from mainspring.control.schedulers import FiringStatus
from mainspring.model.actor import Actor
from mainspring.model.worker import WorkerSummary
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.wiring import Store

SHOWN_WORKERS = 12
SHOWN_SCHEDULERS = 8
SHOWN_FAILURES = 8
COLOURS = {"dead": "red", "lost": "red", "scheduled": "yellow"}
SCHEDULERS = (
    Column("host", least=10),
    Column("pid"),
    Column("lanes", is_number=True),
    Column("heartbeat", leave_out=1),
    Column("version", leave_out=2),
)
FAILURES = (
    Column("at"),
    Column("job", least=16),
    Column("outcome"),
    Column("state"),
    Column("error", least=20),
)


@command("top")
async def top(
    *,
    every: Annotated[str, Parameter(help="How often to look.")] = "1s",
    once: Annotated[bool, Flag, Parameter(help="Show one picture and end.")] = False,
    invocation: Invocation,
) -> None:
    """Watch queues, workers, schedulers and failures, live.

    Ctrl-C ends it. Without a terminal, or with --once, one picture is printed.

    Examples:
      mainspring top
      mainspring top --once -o json
    """
    pause = parse_span(every, "every")
    assert pause is not None
    async with invocation.client() as client:
        store = (await client.services()).store
        async with store.database.acquire() as connection:
            if invocation.wants_json or once or not sys.stdout.isatty():
                _print_once(invocation, await overview(connection, client.actor, store.lanes))
                return
        await _watch(invocation, store, client.actor, max(0.2, pause.total_seconds()))


def _print_once(invocation: Invocation, seen: Overview) -> None:
    if invocation.wants_json:
        invocation.print_json(to_builtins(seen, enc_hook=str))
    else:
        invocation.print(picture(seen, invocation.room))


async def _watch(invocation: Invocation, store: Store, actor: Actor, pause: float) -> None:
    with Live(Text("looking …"), screen=True, auto_refresh=False) as live:
        while True:
            try:
                async with store.database.acquire() as connection:
                    seen = await overview(connection, actor, store.lanes)
                live.update(picture(seen, invocation.room), refresh=True)
            except DATABASE_ERRORS as error:
                live.update(Text(f"The database is away: {safe(error, 200)}", style="red"), refresh=True)
            await asyncio.sleep(pause)


# ── the picture ─────────────────────────────────────────────────────────────────────────────────────────────


def picture(seen: Overview, room: int | None) -> Group:
    queues = queue_lines(seen.queues, room) if seen.queues else [Text("none yet", style="dim")]
    parts: list[RenderableType] = [*_headlines(seen, room), Text()]
    parts += [_heading("queues"), *queues, Text()]
    parts += [_heading("workers"), *_workers(seen.workers, room), Text()]
    parts += [_heading("schedulers"), *_schedulers(seen.firing, room), Text()]
    parts += [_heading("failures of the last minutes"), *_failures(seen.failures, room)]
    return Group(*parts)


def _headlines(seen: Overview, room: int | None) -> list[Text]:
    """How much there is, and how late it is; on two lines where one has no room for both."""
    counts = Text(f"{seen.at:%H:%M:%S} UTC", style="dim")
    for name in ("ready", "running", "scheduled", "held", "dead"):
        count = seen.counts[name]
        shown = f"{COUNTED:,}+" if count >= COUNTED else f"{count:,}"
        counts.append(f"   {name} ", style="dim").append(shown, style="bold" if count else "dim")
    times = " / ".join("–" if each is None else as_span(each) for each in (seen.lateness_p50, seen.lateness_p95))
    late = Text("late p50 / p95 ", style="dim").append(times, style="bold")
    both = Text("   ").join((counts, late))
    return [both] if room is None or both.cell_len <= room else [counts, late]


def _heading(words: str) -> Rule:
    return Rule(Text(words, style="dim"), align="left", style="dim")


def _workers(workers: list[WorkerSummary], room: int | None) -> list[Text]:
    if not workers:
        return [Text("none; start some: mainspring worker --app module:app", style="dim")]
    lines = worker_lines(workers[:SHOWN_WORKERS], room)
    if len(workers) > SHOWN_WORKERS:
        lines.append(Text(f"… {len(workers) - SHOWN_WORKERS} more", style="dim"))
    return lines


def _schedulers(firing: FiringStatus, room: int | None) -> list[Text]:
    late = Text(f"instants are overdue by up to {as_span(firing.overdue_seconds)}", style="red")
    overdue = [late] if firing.overdue_lanes else []
    if not firing.schedulers:
        remedy = "; schedules do not fire: mainspring scheduler --app module:app" if firing.has_schedules else ""
        return [Text(f"none{remedy}", style="red" if remedy else "dim"), *overdue]
    rows = [
        (
            Text(safe(each.host, 60)),
            Text(str(each.pid)),
            Text(str(each.lanes)),
            Text(f"{as_span(each.silent_seconds)} ago"),
            Text(safe(each.version)),
        )
        for each in firing.schedulers[:SHOWN_SCHEDULERS]
    ]
    more = len(firing.schedulers) - SHOWN_SCHEDULERS
    lines = fitted(SCHEDULERS, rows, room)
    return [*lines, *([Text(f"… {more} more", style="dim")] if more > 0 else []), *overdue]


def _failures(failures: list[Failure], room: int | None) -> list[Text]:
    if not failures:
        return [Text("none", style="dim")]
    rows = [
        (
            Text(f"{each.at:%H:%M:%S}", style="dim"),
            Text(safe(each.job)),
            Text(each.outcome, style="red"),
            Text(each.state, style=COLOURS.get(each.state, "")),
            Text(safe(each.error, 100)),
        )
        for each in failures[:SHOWN_FAILURES]
    ]
    return fitted(FAILURES, rows, room)
