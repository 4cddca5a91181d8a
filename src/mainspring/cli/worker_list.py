"""`mainspring worker list`: the workers there are, and those that ended lately."""

from typing import Annotated

from asyncpg import Record
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.parsing import parse_span
from mainspring.cli.session import InSession
from mainspring.cli.text import as_instant, as_span, safe
from mainspring.store import workers

COLOURS = {"live": "green", "lost": "red"}


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


def _table(rows: list[Record]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("worker", "state", "host", "pid", "queues", "slots", "last beat", "started", "version"):
        table.add_column(heading, justify="right" if heading in ("pid", "slots") else "left", overflow="fold")
    for row in rows:
        table.add_row(
            str(row["id"]),
            Text(row["state"], style=COLOURS.get(row["state"], "dim")),
            Text(safe(row["host"], 40)),
            str(row["pid"]),
            Text(safe(", ".join(row["queues"]), 60)),
            str(row["slots"]),
            f"{as_span(max(0.0, row['silent_seconds']))} ago",
            as_instant(row["started_at"]),
            Text(safe(row["version"])),
        )
    return table
