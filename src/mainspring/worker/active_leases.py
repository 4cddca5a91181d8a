"""The leases a worker holds, and how they are compared with those in its name in the database."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from mainspring.store import leases
from mainspring.store.leases import Lease
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from mainspring.store.connection import Connection
    from mainspring.store.leases import Settled
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.executor import Executor
    from mainspring.worker.registration import WorkerIdentity

log = structlog.get_logger()


class ActiveLeases:
    """The leases a worker holds, and which of their runs are not settled yet."""

    def __init__(self) -> None:
        self._works: dict[UUID, list[Work]] = {}
        self._unsettled: dict[UUID, int] = {}

    def add(self, lease_id: UUID, works: list[Work]) -> None:
        self._works[lease_id] = works
        self._unsettled[lease_id] = len(works)

    def settled(self, batch: Iterable[Settled]) -> None:
        """The database has answered for these."""
        unsettled = self._unsettled
        for each in batch:
            lease_id = each.lease.id
            unsettled[lease_id] -= 1
            if not unsettled[lease_id]:
                del unsettled[lease_id], self._works[lease_id]

    def completed(self, lease_id: UUID) -> None:
        """The database has removed it: all its runs succeeded."""
        del self._unsettled[lease_id], self._works[lease_id]

    def work_of(self, settled: Settled) -> Work:
        """The run that this is about, until `settled` is told of it."""
        return self._works[settled.lease.id][settled.position]

    def asked_to_cancel(self, lease_id: UUID, mask: str) -> Iterator[Work]:
        works = self._works.get(lease_id, ())
        return (work for work, bit in zip(works, mask, strict=False) if bit == "1")

    def by_line(self) -> Counter[int]:
        """How many runs are not settled yet, by line."""
        return Counter(work.line for works in self._works.values() for work in works if not work.is_settled)

    def __contains__(self, lease_id: UUID) -> bool:
        return lease_id in self._works

    def __len__(self) -> int:
        return len(self._works)


class LeaseReconciler:
    """Finds cancellations, and leases nobody remembers.

    A lease that nobody here knows came from a claim whose answer was lost: its runs go back in line.
    """

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
