"""Clearing backlogs under which nobody submits any more, and dropping what callers' transactions added too much.

Whoever submits waits while a gate is locked. So it is looked through in pieces, each in a transaction of its own: a
count that is too high for a moment does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.backlog import WhenFull
from mainspring.store.backlog_dropping import drop
from mainspring.store.backlog_gates import FIRST, clear, leave, take
from mainspring.store.connection import transaction
from mainspring.store.statements import load

if TYPE_CHECKING:
    from mainspring.store.backlog_gates import EntryPlace, Standing
    from mainspring.store.connection import Connection

TIDIED = 20  # gates at a time
PIECE = 5_000  # entries of one lane
MOST_DROPPED = 1_000


async def tidy(connection: Connection, home: int, lanes: int) -> bool:
    """Clear some backlogs, and drop what callers have added too much; answers whether there may be more to do."""
    rows = await load("backlog/gates_to_tidy").fetch(connection, lane=home, count=TIDIED)
    for row in rows:
        if await _begin(connection, home, row["gate"], lanes):
            await _clear(connection, home, row["gate"], lanes)
            await _end(connection, home, row["gate"], lanes)
    return len(rows) >= TIDIED


async def _begin(connection: Connection, home: int, gate: str, lanes: int) -> bool:
    """Count what callers have added; answers whether it is our turn to look through its entries."""
    async with transaction(connection):
        standing = await _locked(connection, gate, lanes)
        if standing is None:
            await _remove(connection, home, gate, lanes)
            return False
        await _drop_surplus(connection, standing, lanes)
        return await load("backlog/tidied").fetchrow(connection, lane=home, gate=gate) is not None


async def _clear(connection: Connection, home: int, gate: str, lanes: int) -> None:
    for lane in connection.reach.lanes(range(lanes)):
        after: EntryPlace | None = FIRST
        while after is not None:
            async with transaction(connection):
                if await _locked(connection, gate, lanes) is None:
                    return
                found = await clear(connection, lane, gate, after, PIECE)
                await leave(connection, home, {gate: found.gone}, are_checked=False)
            after = found.last


async def _end(connection: Connection, home: int, gate: str, lanes: int) -> None:
    async with transaction(connection):
        standing = await _locked(connection, gate, lanes)
        if standing is None:
            return
        await leave(connection, home, {gate: 0}, are_checked=True)
        if standing.counted <= 0:
            await load("backlog/remove_gates").execute(connection, lane=home, gates=[gate])
        await _drop_surplus(connection, standing, lanes)


async def _locked(connection: Connection, gate: str, lanes: int) -> Standing | None:
    return (await take(connection, {gate: 0}, lanes)).get(gate)


async def _remove(connection: Connection, home: int, gate: str, lanes: int) -> None:
    """Its cap is gone. While a node is away, its entries could not go, and nobody would find them later."""
    if connection.reach.has_all:
        for lane in range(lanes):
            await load("backlog/remove_entries").execute(connection, lane=lane, gates=[gate])
        await load("backlog/remove_gates").execute(connection, lane=home, gates=[gate])


async def _drop_surplus(connection: Connection, standing: Standing, lanes: int) -> None:
    surplus = min(MOST_DROPPED, standing.counted - standing.most)
    if surplus > 0 and standing.when_full is not WhenFull.REFUSE:
        await drop(connection, standing, surplus, (), lanes)
