"""Clearing backlogs under which nobody submits any more, and dropping what callers' transactions added too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.backlog import WhenFull
from mainspring.store.backlog_dropping import drop
from mainspring.store.backlog_gates import ALL, clear, leave, take
from mainspring.store.connection import transaction
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Connection

TIDIED = 20  # gates per transaction


async def lanes_to_tidy(connection: Connection, lanes: int) -> list[int]:
    rows = await load("backlog/lanes_to_tidy").fetch(connection, lanes=connection.reach.lanes(range(lanes)))
    return sorted(row["lane"] for row in rows)


async def tidy(connection: Connection, home: int, lanes: int) -> bool:
    """Clear some backlogs, and drop what callers have added too much; answers whether there may be more to do."""
    rows = await load("backlog/gates_to_tidy").fetch(connection, lane=home, count=TIDIED)
    gates = [row["gate"] for row in rows]
    if gates:
        async with transaction(connection):
            await _tidy(connection, home, gates, lanes)
    return len(gates) >= TIDIED


async def _tidy(connection: Connection, home: int, gates: Sequence[str], lanes: int) -> None:
    standings = await take(connection, dict.fromkeys(gates, 0), lanes)
    # Their cap was removed. While a node is away, its entries could not go, and nobody would find them later.
    gone = [gate for gate in gates if gate not in standings and connection.reach.has_all]
    for lane in range(lanes) if gone else ():
        await load("backlog/remove_entries").execute(connection, lane=lane, gates=gone)
    cleared = await clear(connection, list(standings), lanes, ALL) if standings else {}
    await leave(connection, home, cleared, are_checked=True)
    empty = [gate for gate, standing in standings.items() if standing.counted <= cleared[gate]]
    await load("backlog/remove_gates").execute(connection, lane=home, gates=gone + empty)
    await load("backlog/tidied").execute(connection, lane=home, gates=list(standings))
    for gate, standing in standings.items():
        surplus = standing.counted - cleared[gate] - standing.most
        if surplus > 0 and standing.when_full is not WhenFull.REFUSE:
            left = standing._replace(counted=standing.counted - cleared[gate])
            await drop(connection, left, surplus, (), lanes)
