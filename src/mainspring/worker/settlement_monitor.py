"""Watches whether results can be settled: if not, the worker says so, and gives up its place if that lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import workers

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.connection import Connection
    from mainspring.worker.flusher import Flusher


class SettlementMonitor:
    """Watches a flusher and tells the database, in the worker's row."""

    def __init__(self, *, worker_id: UUID, flusher: Flusher, give_up_after: float) -> None:
        self._worker_id = worker_id
        self._flusher = flusher
        self._give_up_after = give_up_after
        self._told: tuple[int, bool] = (0, False)

    async def tell(self, connection: Connection) -> None:
        """Say what changed since the last time; an idle worker says nothing."""
        present = (self._flusher.unsettled, self._flusher.is_failing)
        if present != self._told:
            failing = self._flusher.failing_seconds if self._flusher.is_failing else None
            await workers.tell_unsettled(connection, self._worker_id, self._flusher.unsettled, failing)
            self._told = present

    def should_give_up(self, synced_at: float) -> bool:
        """Whether nothing could be settled for long while the database answered everything else.

        When it answers nothing at all it is away, and waiting is right: whoever took over could not settle either.
        """
        failing_since = self._flusher.failing_since
        if failing_since is None or self._flusher.failing_seconds < self._give_up_after:
            return False
        return synced_at > failing_since + self._give_up_after / 2
