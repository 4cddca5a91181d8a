"""A worker inside the test's own process, with a keeper only if asked for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mainspring import wiring
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.worker.running import RunningWorker


@asynccontextmanager
async def working(app: Mainspring, *, grace: float = 0.0, **settings: Any) -> AsyncIterator[RunningWorker]:
    """Nobody beats for it, so its lease time is long."""
    chosen: dict[str, Any] = {
        "queues": tuple(app.registry.queues),
        "lease_time": 600.0,
        "poll_interval": 0.05,
        "keeper": False,
    }
    store = (await app.services()).store
    worker = await wiring.start_worker(
        store, app.registry, WorkerSettings(**chosen | settings), clock=app.clock, tenant=app.tenant
    )
    try:
        yield worker
        if failure := worker.failure():
            raise failure
    finally:
        await worker.drain(grace=grace)
