"""Sends heartbeats for workers, over a connection of their own: they wait for nothing and nobody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from mainspring.store import workers
from mainspring.store.connection import patience
from mainspring.store.failures import DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.link import Link
    from mainspring.worker.settings import WorkerSettings

log = structlog.get_logger()

LOOK_SECONDS = 0.05


class LivingWorker(Protocol):
    """A worker that is ready and not frozen, and what it has to know."""

    @property
    def worker_id(self) -> UUID: ...

    def heartbeat_arrived(self) -> None: ...

    def drain(self) -> None:
        """Someone asked it to."""

    def declared_lost(self) -> None:
        """Its runs are somebody else's by now."""


class HeartbeatLoop:
    """`living` are the workers for which to send them now."""

    def __init__(
        self, *, link: Link, clock: Clock, settings: WorkerSettings, living: Callable[[], Sequence[LivingWorker]]
    ) -> None:
        self._link = link
        self._clock = clock
        self._settings = settings
        self._living = living

    async def run(self) -> None:
        try:
            await self._send_on()
        finally:
            await self._link.close()

    async def _send_on(self) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self._send(self._living())
            except Exception as error:  # whatever it is: without heartbeats all these workers are declared lost
                is_fault = not isinstance(error, DATABASE_ERRORS)
                log.warning("a heartbeat did not reach the database", cause=str(error), exc_info=is_fault)
                await self._link.mend(error)
            else:
                await self._until_next(began)

    async def _until_next(self, began: float) -> None:
        """Sleep, unless a worker became ready: it is not kept waiting."""
        known = {worker.worker_id for worker in self._living()}
        while self._clock.monotonic() < began + self._settings.heartbeat_every:
            await asyncio.sleep(LOOK_SECONDS)
            if {worker.worker_id for worker in self._living()} - known:
                return

    async def _send(self, living: Sequence[LivingWorker]) -> None:
        if not living:
            return
        connection = await self._link.get()
        with patience(connection, self._settings.lease_time / 2):
            alive = await workers.send_heartbeats(connection, [worker.worker_id for worker in living])
        for worker in living:
            if worker.worker_id not in alive:
                worker.declared_lost()
                continue
            worker.heartbeat_arrived()
            if alive[worker.worker_id]:
                worker.drain()
