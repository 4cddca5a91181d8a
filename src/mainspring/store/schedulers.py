"""The schedulers there are: their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from mainspring.store.connection import Connection, Record


async def beat(connection: Connection, scheduler_id: UUID, *, host: str, pid: int, version: str) -> None:
    await load("schedulers/beat").execute(connection, id=scheduler_id, host=host, pid=pid, version=version)


async def listed(connection: Connection) -> list[Record]:
    return await load("schedulers/list").fetch(connection)


async def remove(connection: Connection, ended: Mapping[UUID, int | None]) -> None:
    """Remove schedulers that ended; those with a heartbeat given, only if it was their last."""
    await load("schedulers/remove").execute(connection, ids=list(ended), beats=list(ended.values()))
