"""Writes down what people see of a worker: what it finished and holds for each line, and what it could not settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.settlement_monitor import SettlementMonitor
    from mainspring.worker.statistics import LineStatistics


class StatusWriter:
    def __init__(self, *, leases: ActiveLeases, statistics: LineStatistics, monitor: SettlementMonitor) -> None:
        self._leases = leases
        self._statistics = statistics
        self._monitor = monitor

    async def write(self, connection: Connection) -> None:
        """What has changed since the last time; an idle worker writes nothing."""
        await self._statistics.tell(connection, self._leases.by_line())
        await self._monitor.tell(connection)
