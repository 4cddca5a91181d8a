"""Makes the partitions of history a few days ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import history

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

EVERY = 3_600.0


class Partitioner:
    def forget(self) -> None:
        """Nothing is remembered."""

    async def step(self, connection: Connection) -> float:
        await history.add_partitions(connection)
        return EVERY
