"""Counts what a worker finished for each line and how long it took, and tells the database now and then."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mainspring.store import queues
from mainspring.store.columns import AttemptRecord

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from mainspring.store.connection import Connection
    from mainspring.store.leases import Settled

_LINE, _STARTED, _FINISHED = (AttemptRecord._fields.index(name) for name in ("line_id", "started_at", "finished_at"))


class LineStatistics:
    def __init__(self, worker_id: UUID) -> None:
        self._worker_id = worker_id
        self._finished: defaultdict[int, int] = defaultdict(int)
        self._busy_micros: defaultdict[int, int] = defaultdict(int)
        self._told: dict[int, tuple[int, float, int]] = {}

    def add(self, batch: Iterable[Settled]) -> None:
        """These were settled; those of them that had started count."""
        finished, busy = self._finished, self._busy_micros
        for each in batch:
            record = each.record
            started = record[_STARTED]
            if started is not None:
                line = record[_LINE]
                finished[line] += 1
                busy[line] += record[_FINISHED][0] - started[0]

    async def tell(self, connection: Connection, holding: Counter[int]) -> None:
        """Say what changed since the last time; an idle worker says nothing."""
        present = {
            line: (self._finished[line], self._busy_micros[line] / 1_000_000, holding[line])
            for line in {*self._finished, *holding, *self._told}
        }
        news = {line: what for line, what in present.items() if self._told.get(line) != what}
        if news:
            await queues.tell(connection, self._worker_id, news)
            self._told = present
