"""A worker inside the application's own process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mainspring.errors import InvalidInput
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.wiring.heartbeats import heartbeat_link
from mainspring.wiring.worker import start_worker
from mainspring.worker.heartbeats import HeartbeatLoop
from mainspring.worker.in_process import InProcessWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring.clock import Clock
    from mainspring.wiring.store import Store
    from mainspring.worker.heartbeats import LivingWorker
    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registry import Registry
    from mainspring.worker.running import RunningWorker
    from mainspring.worker.settings import WorkerSettings


@asynccontextmanager
async def worker_in_process(
    store: Store,
    registry: Registry,
    settings: WorkerSettings,
    *,
    clock: Clock,
    isolation: Callable[[], Isolation] | None = None,
    tenant: str = DEFAULT_TENANT_NAME,
) -> AsyncIterator[None]:
    """Execute runs here for as long as this lasts; what runs at its end has the settings' grace to finish.

    A worker closes its isolation when it ends, so `isolation` makes one for each that begins anew.
    """
    if isolation is None:
        _refuse_isolated(registry)

    def heartbeats_for(worker: LivingWorker) -> HeartbeatLoop:
        link = heartbeat_link(store.database, clock, settings)
        return HeartbeatLoop(link=link, clock=clock, settings=settings, living=lambda: [worker])

    def start() -> Awaitable[RunningWorker]:
        own = None if isolation is None else isolation()
        return start_worker(store, registry, settings, clock=clock, isolation=own, tenant=tenant)

    worker = InProcessWorker(start=start, heartbeats_for=heartbeats_for, grace=settings.grace)
    running = asyncio.create_task(worker.run())
    try:
        await _until_started(worker, running)
        yield
    finally:
        worker.stop()
        if worker.is_starting:
            running.cancel()
        await _until_ended(worker, running)
    if not running.cancelled():
        running.result()


async def _until_started(worker: InProcessWorker, running: asyncio.Task[None]) -> None:
    """Or raise why it cannot start."""
    started = asyncio.create_task(worker.has_started.wait())
    try:
        await asyncio.wait([started, running], return_when=asyncio.FIRST_COMPLETED)
    finally:
        started.cancel()
    if running.done():
        running.result()


async def _until_ended(worker: InProcessWorker, running: asyncio.Task[None]) -> None:
    """Whoever is cancelled while it waits for a drain wants it to be over."""
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:
        worker.stop()
        await asyncio.wait([running])
        raise


def _refuse_isolated(registry: Registry) -> None:
    for handler in registry:
        if handler.definition.isolated:
            raise InvalidInput(
                f"Job {handler.name!r} is isolated, and nobody knows from where its processes can import it.",
                code="isolation-needs-a-path",
                hint='Say where the application is: app.running(path="shop.jobs:app").',
                field="path",
                job=handler.name,
            )
