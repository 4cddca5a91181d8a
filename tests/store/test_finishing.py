"""Transactional runs: finished inside the handler's own transaction, with what it does there, or not at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest
from tests.checker import check
from tests.waiting import until

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.errors import InvalidInput, LeaseLost, RunCancelled, RunFailed
from mainspring.model.line import Delivery
from mainspring.store import workers
from mainspring.testing import inline, run_until_idle

from .callers import ASYNC, BLOCKING, caller, until_someone_waits_for_a_lock
from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from mainspring.store.connection import Connection as StoreConnection

    Connection = asyncpg.Connection[asyncpg.Record]


AT_ONCE = RetryPolicy(max_attempts=2, first_delay=timedelta(0))
PAY = "insert into payment (run_id) values ('{}')"


@pytest.fixture
async def own(url: str) -> AsyncIterator[Connection]:
    """The connection of a handler."""
    connection = await asyncpg.connect(url)
    await connection.execute("create table public.payment (run_id uuid, at timestamptz default now())")
    yield connection
    await connection.close()


async def paid(connection: Connection) -> list[UUID]:
    return [row["run_id"] for row in await connection.fetch("select run_id from public.payment")]


async def all_is_well(connection: Connection, *runs: UUID) -> None:
    report = await check(connection, runs, effects=await paid(connection), must_be_drained=True)
    assert report.violations == [], report


# ── committed ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_is_finished_by_the_transaction_that_does_its_work(
    app: Mainspring, connection: Connection, own: Connection
) -> None:
    @app.job(delivery="transactional")
    async def pay(context: Context, amount: int) -> None:
        async with own.transaction():
            await own.execute(PAY.format(context.run_id))
            await context.finish(own, {"paid": amount})

    handle: Any = await pay.submit(amount=7)
    assert await run_until_idle(app) == {"succeeded": 1}

    assert await handle.result(20) == {"paid": 7}
    run = await handle.find()
    (attempt,) = run.attempts
    assert (run.state, run.delivery, run.payload) == ("succeeded", Delivery.TRANSACTIONAL, {"amount": 7})
    assert (attempt.number, attempt.fence, attempt.error) == (1, 1, None)
    assert None not in (attempt.claimed_at, attempt.started_at, attempt.finished_at, attempt.worker_id)
    assert await connection.fetchval("select count(*) from lease") == 0
    assert await connection.fetchval("select count(*) from stale") == 0
    await all_is_well(connection, handle.id)


@pytest.mark.parametrize("library", ASYNC)
async def test_every_async_library_can_finish_a_run(app: Mainspring, own: Connection, url: str, library: str) -> None:
    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        async with caller(library, url) as mine:
            await context.finish(mine.connection, library)
            await mine.commit()

    handle = await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}
    assert (await handle.find()).attempts[0].result == library


@pytest.mark.parametrize("library", BLOCKING)
async def test_every_blocking_library_can_finish_a_run(app: Mainspring, url: str, library: str) -> None:
    from .callers import _BLOCKING

    @app.job(delivery="transactional")
    def pay(context: Context) -> None:
        with _BLOCKING[library](url) as connection:
            context.finish_sync(connection, library)
            connection.commit()

    handle = await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}
    assert (await handle.find()).attempts[0].result == library


async def test_what_goes_wrong_after_the_commit_does_not_undo_it(
    app: Mainspring, connection: Connection, own: Connection
) -> None:
    @app.job(delivery="transactional", retry=AT_ONCE)
    async def pay(context: Context) -> None:
        async with own.transaction():
            await own.execute(PAY.format(context.run_id))
            await context.finish(own)
        raise ConnectionError("the answer to COMMIT was lost")

    handle = await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}
    await all_is_well(connection, handle.id)


# ── not committed ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_transaction_that_rolls_back_leaves_its_run_unfinished(
    app: Mainspring, connection: Connection, own: Connection
) -> None:
    """The first attempt fails after it has finished its run; the second one does it all again."""

    @app.job(delivery="transactional", retry=AT_ONCE)
    async def pay(context: Context) -> None:
        async with own.transaction():
            await own.execute(PAY.format(context.run_id))
            await context.finish(own)
            if context.attempt == 1:
                raise ValueError("no")

    handle = await pay.submit()
    assert await run_until_idle(app) == {"failed": 1, "succeeded": 1}
    await all_is_well(connection, handle.id)


async def test_a_handler_that_forgets_to_finish_is_told_how(app: Mainspring) -> None:
    @app.job(delivery="transactional", retry=RetryPolicy(max_attempts=1))
    async def forget(context: Context) -> int:
        return 7

    handle = await forget.submit()
    await run_until_idle(app)

    with pytest.raises(RunFailed, match="no transaction that finished its run was committed"):
        await handle.result(20)
    error = (await handle.find()).attempts[-1].error
    assert error is not None
    assert error["code"] == "not-finished"
    assert "What it returned is not used." in error["message"]
    assert "await context.finish(connection, result)" in error["message"]


async def test_a_handler_that_finishes_and_never_commits_has_not_finished(
    app: Mainspring, url: str, own: Connection
) -> None:
    @app.job(delivery="transactional", retry=RetryPolicy(max_attempts=1))
    def pay(context: Context) -> None:
        connection = psycopg.connect(url)
        context.finish_sync(connection)
        connection.close()

    handle = await pay.submit()
    assert await run_until_idle(app) == {"failed": 1}
    assert (await handle.find()).state == "dead"


# ── refused ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_that_was_declared_lost_can_finish_nothing(
    app: Mainspring, connection: StoreConnection, own: Connection
) -> None:
    refused: list[LeaseLost] = []

    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        try:
            async with own.transaction():
                await own.execute(PAY.format(context.run_id))
                if context.fence == 1:
                    await workers.lose_if_silent(connection, worker.id, None)
                    await workers.rescue_all(connection, 8, worker.id)
                await context.finish(own)
        except LeaseLost as error:  # and the transaction is rolled back: its connection can be used again
            refused.append(error)
            raise

    handle = await pay.submit()
    async with working(app) as worker:
        await until(lambda: refused)
    async with working(app):  # whoever is lost claims nothing more
        await handle.result(20)

    (error,) = refused
    assert (error.code, error.fields["run_id"]) == ("lease-lost", str(handle.id))
    assert error.hint is not None
    assert await paid(own) == [handle.id]
    report = await check(connection, [handle.id], effects=await paid(own), stale_injected=1)
    assert report.violations == [], report


async def test_a_run_that_was_asked_to_stop_cannot_be_finished(
    app: Mainspring, connection: Connection, own: Connection
) -> None:
    caught: list[RunCancelled] = []

    @app.job(delivery="transactional")
    def pay(context: Context) -> None:
        with psycopg.connect(dsn) as mine:
            mine.execute(PAY.format(context.run_id))
            asyncio.run_coroutine_threadsafe(handle.cancel(reason="no longer"), loop).result()
            try:
                context.finish_sync(mine)
            except RunCancelled as error:
                caught.append(error)
                raise

    dsn, loop = app.location.url or "", asyncio.get_running_loop()
    handle = await pay.submit()
    assert await run_until_idle(app) == {"cancelled": 1}

    assert caught[0].code == "run-cancelled"
    assert (await handle.find()).state == "cancelled"
    assert await paid(own) == []


async def test_whoever_cancels_while_the_transaction_is_open_waits_for_its_end(
    app: Mainspring, own: Connection
) -> None:
    cancelling: list[asyncio.Future[Any]] = []

    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        async with own.transaction():
            await context.finish(own)
            cancelling.append(asyncio.ensure_future(handle.cancel()))
            await until_someone_waits_for_a_lock(own)
            assert not cancelling[0].done()

    handle = await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}
    with pytest.raises(Exception, match="there is nothing to cancel"):
        await cancelling[0]


async def test_a_run_is_finished_once(app: Mainspring, own: Connection) -> None:
    @app.job(delivery="transactional", retry=RetryPolicy(max_attempts=1))
    async def pay(context: Context) -> None:
        async with own.transaction():
            await context.finish(own)
            await context.finish(own)

    handle = await pay.submit()
    assert await run_until_idle(app) == {"failed": 1}
    error = (await handle.find()).attempts[-1].error
    assert error is not None
    assert error["code"] == "lease-lost"


async def test_a_connection_without_a_transaction_is_refused(app: Mainspring, own: Connection) -> None:
    @app.job(delivery="transactional", retry=RetryPolicy(max_attempts=1))
    async def pay(context: Context, library: str) -> None:
        if library == "asyncpg":
            await context.finish(own)
        else:
            with psycopg.connect(app.location.url or "", autocommit=True) as mine:
                await asyncio.to_thread(context.finish_sync, mine)

    for library in ("asyncpg", "psycopg"):
        handle = await pay.submit(library=library)
        assert await run_until_idle(app) == {"failed": 1}
        error = (await handle.find()).attempts[-1].error
        assert error is not None
        assert error["code"] == "no-transaction"


async def test_other_jobs_finish_by_returning(app: Mainspring, own: Connection) -> None:
    @app.job(retry=RetryPolicy(max_attempts=1))
    async def pay(context: Context) -> None:
        await context.finish(own)

    handle = await pay.submit()
    assert await run_until_idle(app) == {"failed": 1}
    error = (await handle.find()).attempts[-1].error
    assert error is not None
    assert error["code"] == "not-transactional"


async def test_a_result_that_cannot_be_stored_is_refused_before_the_database_is_asked(own: Connection) -> None:
    app = Mainspring()

    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        await context.finish(own, object())

    with inline(app), pytest.raises(RunFailed) as caught:
        await (await pay.submit()).result()
    assert isinstance(caught.value.__cause__, InvalidInput)


async def test_a_transaction_that_is_forgotten_open_is_ended_by_the_server(app: Mainspring, own: Connection) -> None:
    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        async with own.transaction():
            await context.finish(own)
            assert await own.fetchval("show idle_in_transaction_session_timeout") == "10s"

    before = await own.fetchval("show idle_in_transaction_session_timeout")
    await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}
    assert await own.fetchval("show idle_in_transaction_session_timeout") == before, "for that transaction only"


async def test_the_callers_search_path_does_not_matter(app: Mainspring, own: Connection) -> None:
    @app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        async with own.transaction():
            await own.execute("create temporary table lease (id int); set local search_path = pg_temp, public")
            await context.finish(own)

    await pay.submit()
    assert await run_until_idle(app) == {"succeeded": 1}


# ── inline ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_inline_a_handler_finishes_without_a_database() -> None:
    app = Mainspring()

    @app.job(delivery="transactional")
    async def pay(context: Context, finishes: bool) -> None:
        if finishes:
            await context.finish(None, "paid")

    with inline(app):
        handle: Any = await pay.submit(finishes=True)
        assert await handle.result() == "paid"
        with pytest.raises(RunFailed, match="no transaction that finished"):
            await (await pay.submit(finishes=False)).result()
