"""Ends runs that were not started in time, and forgets idempotency and unique keys that have served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import runs

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

BATCH = 1_000
EVERY = 5.0  # nobody waits for it: no worker starts what has expired


class Expirer:
    def __init__(self, *, lanes: int) -> None:
        self._lanes = lanes

    def forget(self) -> None:
        """Nothing is remembered."""

    async def step(self, connection: Connection) -> float:
        most = 0
        for row in await runs.lanes_to_tidy(connection, self._lanes):
            if row["has_expired"]:
                most = max(most, await runs.expire(connection, row["lane"], BATCH))
            if row["has_keys"]:
                most = max(most, await runs.forget_keys(connection, row["lane"], BATCH))
            if row["has_unique_keys"]:
                most = max(most, await runs.forget_unique_keys(connection, row["lane"], BATCH))
        return 0.0 if most >= BATCH else EVERY
