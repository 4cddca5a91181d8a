"""Removes what is long over and small: ended workers, stale completions, ended operations.

History and audit are not its business, nor what has not ended. Any number of pruners may work at once: each deletes a
bounded batch and comes again at once if there may be more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.store import leases, operations, workers

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

WORKERS_KEPT = timedelta(days=7)  # since they ended
STALE_KEPT = timedelta(days=30)
OPERATIONS_KEPT = timedelta(days=90)  # since they ended
BATCH = 1_000
EVERY = 3_600.0


class Pruner:
    def __init__(self, *, lanes: int) -> None:
        self._lanes = lanes

    def forget(self) -> None:
        """Nothing is remembered."""

    async def step(self, connection: Connection) -> float:
        most = max(
            await workers.prune(connection, self._lanes, WORKERS_KEPT, BATCH),
            await operations.prune(connection, OPERATIONS_KEPT, BATCH),
        )
        for lane in connection.reach.lanes(range(self._lanes)):
            most = max(most, await leases.prune_stale(connection, lane, STALE_KEPT, BATCH))
        return 0.0 if most >= BATCH else EVERY
