"""The schedulers there are: their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.ids import HOMES, home_of, homes_from
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from mainspring.store.connection import Connection, Record


async def beat(connection: Connection, scheduler_id: UUID, *, host: str, pid: int, version: str) -> None:
    lane = connection.reach.first(homes_from(home_of(scheduler_id)))
    await load("schedulers/beat").execute(connection, lane=lane, id=scheduler_id, host=host, pid=pid, version=version)


async def listed(connection: Connection) -> list[Record]:
    lanes = connection.reach.lanes(HOMES)
    statement = load("schedulers/list") if len(lanes) == len(HOMES) else load("schedulers/list_in_reach")
    return await statement.fetch(connection, lanes=lanes)


async def remove(connection: Connection, ended: Mapping[UUID, int | None]) -> None:
    """Remove schedulers that ended; those with a heartbeat given, only if it was their last."""
    homes = connection.reach.lanes(HOMES)
    for scheduler_id, beat in ended.items():
        await load("schedulers/remove").execute(connection, lanes=homes, id=scheduler_id, beat=beat)
    await load("schedulers/remove_before").execute(connection, ids=list(ended), beats=list(ended.values()))
