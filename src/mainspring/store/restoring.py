"""What a database that was restored from a backup needs before workers may work on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.store.connection import Connection

BEFORE_ALL = UUID(int=0)


class Waiting(NamedTuple):
    """How many runs wait, and the highest fence among them."""

    runs: int
    highest_fence: int


class LiftedBatch(NamedTuple):
    """What became of a batch of waiting runs: `low` had a fence below the floor."""

    seen: int
    low: int
    lifted: int
    last: UUID | None

    @property
    def is_whole(self) -> bool:
        """False when a run moved on while it was to be lifted: it is somewhere else, with its old fence."""
        return self.lifted == self.low


async def begin(connection: Connection, *, tenant_id: int, actor: str, reason: str) -> tuple[str, int]:
    """Note that the database was restored; answers with its new id, and the seconds since 1970."""
    row = await load("restoring/begin").fetchrow(connection, tenant=tenant_id, actor=actor, reason=reason)
    assert row is not None
    return row["id"], row["now"]


async def end(
    connection: Connection, *, tenant_id: int, actor: str, installation: str, detail: Mapping[str, object]
) -> None:
    await load("restoring/end").execute(
        connection,
        tenant=tenant_id,
        actor=actor,
        installation=installation,
        detail=msgspec.json.encode(detail).decode(),
    )


async def running(connection: Connection, lanes: int) -> int:
    """How many runs are in leases, of all tenants."""
    return int(await load("restoring/running").fetchval(connection, lanes=list(range(lanes))))


async def waiting(connection: Connection, lanes: int) -> Waiting:
    found = [await load("restoring/waiting").fetchrow(connection, lane=lane) for lane in range(lanes)]
    counted = [Waiting(*row) for row in found if row is not None]
    return Waiting(sum(each.runs for each in counted), max(each.highest_fence for each in counted))


async def lift_fences(connection: Connection, lane: int, after: UUID, floor: int, count: int) -> LiftedBatch:
    """Lift the fences of the next `count` waiting runs of one lane to `floor`."""
    row = await load("restoring/lift_fences").fetchrow(connection, lane=lane, after=after, floor=floor, count=count)
    assert row is not None
    return LiftedBatch(*row)
