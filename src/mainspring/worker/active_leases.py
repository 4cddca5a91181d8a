"""The leases a worker holds, and which of their runs are not settled yet."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from mainspring.store.leases import Settled
    from mainspring.worker.work import Work


class ActiveLeases:
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
