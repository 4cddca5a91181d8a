"""A caller who is cancelled while an act is on its way to COMMIT does not take it back half-way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import RunFilter

from .test_queues import registered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

# What is done to a run or a worker, by the words of the audit.
ACTS: dict[str, Callable[[Mainspring, UUID, UUID], Awaitable[Any]]] = {
    "run.change": lambda app, run, _: app.runs.change(run, priority=1),
    "run.cancel": lambda app, run, _: app.runs.cancel(run),
    "operation.start": lambda app, _, __: app.operations.start("cancel", RunFilter()),
    "queue.pause": lambda app, _, __: app.queues.pause("default"),
    "worker.drain": lambda app, _, worker: app.workers.drain(worker),
}
WAITERS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'relation'"


@pytest.mark.parametrize("action", ACTS)
async def test_an_act_is_finished_though_its_caller_is_cancelled(
    app: Mainspring, connection: Connection, database: Database, action: str
) -> None:
    @app.job
    async def sell() -> None: ...

    run, worker = await sell.submit(), await registered(connection, slots=1)
    locker = await database.connect("locker")
    async with locker.transaction():
        await locker.execute("lock table audit in exclusive mode")
        caller = asyncio.ensure_future(ACTS[action](app, run.id, worker))
        await until(lambda: caller.done() or connection.fetchval(WAITERS))
        assert not caller.done()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    await locker.close()

    await until(lambda: connection.fetchval("select count(*) from audit where action = $1", action))
