"""`mainspring worker list`: the workers there are, and those that ended lately."""

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import InSession, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.text import as_span, safe
from mainspring.store import workers
from mainspring.store.connection import Record

COLOURS = {"live": "green", "lost": "red"}


@command("list")
async def list_workers(
    *,
    ended_within: Annotated[str, Parameter(help="Show ended workers too, up to so long after their end.")] = "1h",
    session: InSession,
) -> None:
    """List workers: the living, and those that ended lately.

    Examples:
      mainspring worker list
      mainspring worker list --ended-within 1d -o json
    """
    span = parse_span(ended_within, "ended-within")
    assert span is not None
    async with session.client() as client, (await client.services()).store.database.acquire() as connection:
        rows = await workers.list_workers(connection, span.total_seconds())
    if session.wants_json:
        session.print_json({"workers": [dict(row) for row in rows]})
    elif rows:
        session.print(_table(rows))
    else:
        session.print("No workers. Start some: mainspring worker --app module:app")


NAMES = ("worker", "state", "host", "pid", "queues", "labels")
NUMBERS = ("pid", "slots", "unsettled")
HEADINGS = (*NAMES, "slots", "unsettled", "last beat", "started", "version")


def _table(rows: list[Record]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in HEADINGS:
        justify: Literal["left", "right"] = "right" if heading in NUMBERS else "left"
        table.add_column(
            heading, justify=justify, overflow="fold", no_wrap=heading not in ("worker", "queues", "labels")
        )
    for row in rows:
        age = (row["beat_at"] - row["started_at"]).total_seconds() + row["silent_seconds"]
        table.add_row(
            str(row["id"]),
            Text(row["state"], style=COLOURS.get(row["state"], "dim")),
            Text(safe(row["host"], 30)),
            str(row["pid"]),
            Text(safe(", ".join(row["queues"]), 60)),
            Text(safe(", ".join(row["labels"]), 60)),
            str(row["slots"]),
            Text(f"{row['unsettled']:,}", style="" if row["unsettled_since"] is None else "red"),
            _ago(row["silent_seconds"]),
            _ago(age),
            Text(safe(row["version"])),
        )
    return table


def _ago(seconds: float) -> str:
    """The first unit only: 14 min ago."""
    number, unit = as_span(max(0.0, seconds)).split()[:2]
    return f"{number} {unit} ago"
