"""Forgets progress and checkpoints of runs that ended where nobody knew of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import reports

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

EVERY = 600.0


class Sweeper:
    def __init__(self, *, lanes: int) -> None:
        self._lanes = lanes

    def forget(self) -> None:
        """Nothing is remembered."""

    async def step(self, connection: Connection) -> float:
        for lane in connection.reach.lanes(range(self._lanes)):
            await reports.sweep(connection, lane)
        return EVERY
