"""`mainspring top`: queues, rates, lateness, workers and failures, live in the terminal."""

import asyncio
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import to_builtins
from rich.console import Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.queues import table_of
from mainspring.cli.text import as_span, safe
from mainspring.control.overview import COUNTED, Failure, Overview, overview
from mainspring.model.actor import Actor
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.wiring import Store

SHOWN_WORKERS = 12
SHOWN_FAILURES = 8
COLOURS = {"live": "green", "lost": "red", "dead": "red", "scheduled": "yellow"}


@command("top")
async def top(
    *,
    every: Annotated[str, Parameter(help="How often to look.")] = "1s",
    once: Annotated[bool, Flag, Parameter(help="Show one picture and end.")] = False,
    invocation: Invocation,
) -> None:
    """Watch queues, workers and failures, live.

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
        await _watch(store, client.actor, max(0.2, pause.total_seconds()))


def _print_once(invocation: Invocation, seen: Overview) -> None:
    if invocation.wants_json:
        invocation.print_json(to_builtins(seen, enc_hook=str))
    else:
        invocation.print(picture(seen))


async def _watch(store: Store, actor: Actor, pause: float) -> None:
    with Live(Text("looking …"), screen=True, auto_refresh=False) as live:
        while True:
            try:
                async with store.database.acquire() as connection:
                    live.update(picture(await overview(connection, actor, store.lanes)), refresh=True)
            except DATABASE_ERRORS as error:
                live.update(Text(f"The database is away: {safe(error, 200)}", style="red"), refresh=True)
            await asyncio.sleep(pause)


# ── the picture ─────────────────────────────────────────────────────────────────────────────────────────────


def picture(seen: Overview) -> Group:
    parts: list[Any] = [_headline(seen), Text()]
    parts += [_heading("queues"), table_of(seen.queues) if seen.queues else Text("none yet", style="dim"), Text()]
    parts += [_heading("workers"), _workers(seen.workers), Text()]
    parts += [_heading("failures of the last minutes"), _failures(seen.failures)]
    return Group(*parts)


def _headline(seen: Overview) -> Text:
    line = Text(f"{seen.at:%H:%M:%S} UTC   ", style="dim")
    for name in ("ready", "running", "scheduled", "held", "dead"):
        count = seen.counts[name]
        shown = f"{COUNTED:,}+" if count >= COUNTED else f"{count:,}"
        line.append(f"{name} ", style="dim").append(f"{shown}   ", style="bold" if count else "dim")
    late = " / ".join("–" if each is None else as_span(each) for each in (seen.lateness_p50, seen.lateness_p95))
    return line.append("late p50 / p95 ", style="dim").append(late, style="bold")


def _heading(words: str) -> Rule:
    return Rule(Text(words, style="dim"), align="left", style="dim")


def _workers(rows: list[dict[str, Any]]) -> Table | Text:
    if not rows:
        return Text("none; start some: mainspring worker --app module:app", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows[:SHOWN_WORKERS]:
        table.add_row(
            Text(str(row["id"])[:8]),
            Text(row["state"], style=COLOURS.get(row["state"], "dim")),
            Text(safe(f"{row['host']} {row['pid']}", 40)),
            Text(f"{row['slots']} slots"),
            _unsettled(row),
            Text(safe(", ".join(row["queues"]), 40)),
            Text(f"beat {as_span(max(0.0, row['silent_seconds']))} ago", style="dim"),
        )
    if len(rows) > SHOWN_WORKERS:
        table.add_row(Text(f"… {len(rows) - SHOWN_WORKERS} more", style="dim"))
    return table


def _unsettled(row: dict[str, Any]) -> Text:
    """What a crash would repeat; red while it cannot be settled."""
    return Text(f"{row['unsettled']:,} unsettled", style="dim" if row["unsettled_since"] is None else "red")


def _failures(failures: list[Failure]) -> Table | Text:
    if not failures:
        return Text("none", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for each in failures[:SHOWN_FAILURES]:
        table.add_row(
            Text(f"{each.at:%H:%M:%S}", style="dim"),
            Text(safe(each.job, 24)),
            Text(each.outcome, style="red"),
            Text(f"→ {each.state}", style=COLOURS.get(each.state, "")),
            Text(safe(each.error, 100), no_wrap=True, overflow="ellipsis"),
        )
    return table
