"""Compares the leases in a worker's name with those it holds: finds cancellations, and leases nobody remembers.

A lease that nobody here knows came from a claim whose answer was lost: its runs go back in line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from mainspring.store import leases
from mainspring.store.leases import Lease
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.executor import Executor
    from mainspring.worker.identity import WorkerIdentity

log = structlog.get_logger()


class LeaseReconciler:
    def __init__(self, *, worker: WorkerIdentity, leases: ActiveLeases, claimer: Claimer, executor: Executor) -> None:
        self._worker = worker
        self._leases = leases
        self._claimer = claimer
        self._executor = executor

    async def reconcile(self, connection: Connection) -> None:
        """Act on cancellations, and give back leases in our name that we do not hold."""
        for row in await leases.of_worker(connection, self._worker.lanes, self._worker.id):
            lease_id = row["id"]
            if lease_id in self._leases:
                for work in self._leases.asked_to_cancel(lease_id, row["cancelled"] or ""):
                    self._executor.cancel(work)
            elif lease_id not in self._claimer.under_way:
                await self._give_back(connection, Lease(row["lane"], lease_id, row["size"]))

    async def _give_back(self, connection: Connection, lease: Lease) -> None:
        rows = await leases.find(connection, lease.lane, lease.id, self._worker.id)
        if lease.id in self._leases or not rows:
            return
        now = self._executor.now()
        works = [Work(row, lease, at, 0, self._worker.id, now, None) for at, row in enumerate(rows)]
        settled = await leases.settle(connection, self._worker.id, [work.given_back(now) for work in works])
        log.warning("a lease whose claim went unanswered was given back", runs=settled.accepted)
