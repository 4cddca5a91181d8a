"""Writes down what people see of a worker: what it finished and holds for each line, and what it could not settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.worker.holdings import Holdings
    from mainspring.worker.settling import SettlingTrouble
    from mainspring.worker.tally import Tally


class StatusWriter:
    def __init__(self, *, holdings: Holdings, tally: Tally, trouble: SettlingTrouble) -> None:
        self._holdings = holdings
        self._tally = tally
        self._trouble = trouble

    async def write(self, connection: Connection) -> None:
        """What has changed since the last time; an idle worker writes nothing."""
        await self._tally.tell(connection, self._holdings.by_line())
        await self._trouble.tell(connection)
