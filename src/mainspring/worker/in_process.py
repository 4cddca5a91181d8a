"""A worker inside the application's own process. It sends its own heartbeats, so whatever blocks the event loop for as
long as the lease time makes it look dead: then its runs are somebody else's, and it begins anew under another id.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from mainspring.worker.running import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring.worker.heartbeats import HeartbeatLoop, LivingWorker
    from mainspring.worker.running import RunningWorker

log = structlog.get_logger()

AFTER_FAULT_SECONDS = 1.0


class Incarnation:
    """One worker, under one id."""

    def __init__(self, worker: RunningWorker) -> None:
        self._worker = worker
        self.has_to_end = asyncio.Event()
        self.hurry = asyncio.Event()  # its handlers have no time to finish
        self.is_last = False

    @property
    def worker_id(self) -> UUID:
        return self._worker.id

    def heartbeat_arrived(self) -> None:
        self._worker.heartbeat_arrived()

    def drain(self) -> None:
        """Somebody asked it to, or the application ends: no other takes its place."""
        self.is_last = True
        self.has_to_end.set()

    def declared_lost(self) -> None:
        """Even in the middle of a drain somebody else has its runs by now. Who has departed is not lost, only gone."""
        if not self.hurry.is_set() and not self._worker.has_departed:
            log.warning("a worker was declared lost and begins anew", worker=str(self.worker_id))
        self.hurry.set()
        self.has_to_end.set()


class InProcessWorker:
    """Starts a worker, and another one whenever it has to end, until it is stopped."""

    def __init__(
        self,
        *,
        start: Callable[[], Awaitable[RunningWorker]],
        heartbeats_for: Callable[[LivingWorker], HeartbeatLoop],
        grace: float,
    ) -> None:
        self._start = start
        self._heartbeats_for = heartbeats_for
        self._grace = grace
        self._present: Incarnation | None = None
        self._is_stopping = False
        self.has_started = asyncio.Event()
        self.is_starting = True  # which takes as long as the database is away

    async def run(self) -> None:
        """One task from beginning to end: what is opened around handlers is closed by whoever opened it."""
        while not self._is_stopping:
            self.is_starting = True
            worker = await self._started()
            self.is_starting = False
            self._present = Incarnation(worker)
            self.has_started.set()
            ending = await self._work(worker, self._present)
            if self._present.is_last:
                return
            if ending is Ending.FAULT:
                await asyncio.sleep(AFTER_FAULT_SECONDS)

    async def _started(self) -> RunningWorker:
        """Whoever asked for a worker is told why it cannot start; when it begins anew, nobody listens any more."""
        while True:
            try:
                return await self._start()
            except Exception:
                if not self.has_started.is_set():
                    raise
                log.exception("a worker could not begin anew; it is tried again")
                await asyncio.sleep(AFTER_FAULT_SECONDS)

    async def _work(self, worker: RunningWorker, present: Incarnation) -> Ending:
        heartbeats = asyncio.create_task(self._heartbeats_for(present).run())
        try:
            ending = await worker.until_it_has_to_end(present.has_to_end)
            await worker.drain(0.0 if ending.is_urgent else self._grace, present.hurry)
        finally:
            heartbeats.cancel()
            await asyncio.gather(heartbeats, return_exceptions=True)
        return ending

    def stop(self) -> None:
        """Let what is running finish within the grace, and end; at the second call, end at once."""
        if self._present is not None:
            self._present.drain()
            if self._is_stopping:
                self._present.hurry.set()
        self._is_stopping = True
