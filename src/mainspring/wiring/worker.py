"""A worker, with its keeper."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from mainspring.clock import Clock, SystemClock
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.keeper import Keeper
from mainspring.keeper.partitioner import Partitioner
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.pruner import Pruner
from mainspring.keeper.releaser import Releaser
from mainspring.keeper.rescuer import Rescuer
from mainspring.keeper.sampler import Sampler
from mainspring.keeper.sweeper import Sweeper
from mainspring.store.link import Link
from mainspring.worker.executor import tell_nobody
from mainspring.worker.process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.wiring.store import Store
    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registry import Registry
    from mainspring.worker.settings import WorkerSettings

VERSION = version("mainspring")


def worker_process(
    store: Store,
    registry: Registry,
    settings: WorkerSettings,
    *,
    clock: Clock | None = None,
    worker_id: UUID | None = None,
    isolation: Isolation | None = None,
    announce: Callable[[float], None] = tell_nobody,
) -> WorkerProcess:
    """A worker, with a keeper beside it if its settings say so. Without `isolation` no run has its own process.

    `announce` is told, on the monotonic clock, by when the handlers of the worker have to be over.
    """
    clock = clock or SystemClock()
    promoter = Promoter(lanes=store.lanes, clock=clock)
    keeper = Keeper(
        link=Link(store.database, clock, "keeper"),
        clock=clock,
        duties=[
            Partitioner(),
            promoter,
            Releaser(lanes=store.lanes, clock=clock),
            Rescuer(lanes=store.lanes, clock=clock),
            Expirer(lanes=store.lanes),
            Sampler(),
            Sweeper(lanes=store.lanes),
            Pruner(lanes=store.lanes),
        ],
    )
    return WorkerProcess(
        database=store.database,
        registry=registry,
        settings=settings,
        clock=clock,
        lanes=store.lanes,
        version=VERSION,
        worker_id=worker_id,
        background=keeper.run if settings.keeper else None,
        heard_of_later=lambda: keeper.wake(promoter),
        isolation=isolation,
        announce=announce,
    )
