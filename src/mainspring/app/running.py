"""A worker and a scheduler inside the application's own process."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring import wiring
from mainspring.errors import InvalidInput, did_you_mean
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from mainspring.app.mainspring import Mainspring

OF_SUPERVISORS = {"processes", "autoscale"}  # there is one process: the application's
NAMES = [field.name for field in fields(WorkerSettings) if field.name not in OF_SUPERVISORS]


@asynccontextmanager
async def running(
    app: Mainspring, path: str | None, settings: Mapping[str, Any], *, scheduler: bool
) -> AsyncIterator[Mainspring]:
    chosen = settings_of(app, settings)
    _refuse_without_jobs(app)
    isolation = None if path is None else partial(wiring.isolation, path, app.location)
    store = (await app.services()).store
    async with AsyncExitStack() as ending:
        if scheduler:
            await app.schedules.apply()
            await ending.enter_async_context(wiring.scheduler_in_process(store, app.clock))
        # The last to begin is the first to end: whoever cancels the end means the drain.
        await ending.enter_async_context(
            wiring.worker_in_process(
                store, app.registry, chosen, clock=app.clock, isolation=isolation, tenant=app.tenant
            )
        )
        yield app


@contextmanager
def running_sync(
    app: Mainspring, path: str | None, settings: Mapping[str, Any], *, scheduler: bool
) -> Iterator[Mainspring]:
    worker = running(app, path, settings, scheduler=scheduler)
    app.blocking(_entered(worker))
    try:
        yield app
    finally:
        app.blocking(_left(worker))


async def _entered(worker: AbstractAsyncContextManager[Mainspring]) -> None:
    await worker.__aenter__()


async def _left(worker: AbstractAsyncContextManager[Mainspring]) -> None:
    await worker.__aexit__(None, None, None)


def _refuse_without_jobs(app: Mainspring) -> None:
    if not app.registry.names:
        raise InvalidInput(
            "This application has no jobs, so its worker would have nothing to do.",
            code="no-jobs",
            hint="Define some with @app.job; if they are in other modules, import those before.",
            field="app",
        )


def settings_of(app: Mainspring, given: Mapping[str, Any]) -> WorkerSettings:
    for name in given:
        if name not in NAMES:
            raise InvalidInput(
                f"A worker inside an application has no setting {name!r}.",
                code="unknown-setting",
                hint=did_you_mean(name, NAMES),
                field=name,
            )
    queues = {"queues": tuple(app.registry.queues)} if app.registry.queues else {}
    named = {name: tuple(given[name]) for name in ("queues", "labels") if name in given}
    return WorkerSettings(**queues | dict(given) | named)
