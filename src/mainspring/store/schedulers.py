"""The schedulers there are: their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.ids import HOMES, home_of
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from mainspring.store.connection import Connection, Record


async def beat(connection: Connection, scheduler_id: UUID, *, host: str, pid: int, version: str) -> None:
    await load("schedulers/beat").execute(
        connection, lane=home_of(scheduler_id), id=scheduler_id, host=host, pid=pid, version=version
    )


async def listed(connection: Connection) -> list[Record]:
    return await load("schedulers/list").fetch(connection, lanes=HOMES)


async def remove(connection: Connection, ended: Mapping[UUID, int | None]) -> None:
    """Remove schedulers that ended; those with a heartbeat given, only if it was their last."""
    for scheduler_id, beat in ended.items():
        await load("schedulers/remove").execute(connection, lanes=HOMES, id=scheduler_id, beat=beat)
    await load("schedulers/remove_before").execute(connection, ids=list(ended), beats=list(ended.values()))
