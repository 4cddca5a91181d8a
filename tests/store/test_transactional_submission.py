"""Submitting on a caller's own connection: the run exists if and only if their transaction commits."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from tests.registering import registered_worker

from mainspring import Mainspring
from mainspring.control import submitter
from mainspring.errors import Conflict, InvalidInput, RunNotFound
from mainspring.model.ids import lane_of
from mainspring.model.run import PRIORITIES
from mainspring.store import leases

from .callers import ALL, ASYNC, BLOCKING, caller, until_someone_waits_for_a_lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.job import Job
    from mainspring.store.database import Database

    AddJob = Job[..., int]

NOT_DELAYED = 30.0  # seconds; whoever waits for an open transaction waits for longer


@pytest.fixture
async def app(url: str) -> AsyncIterator[Mainspring]:
    """An application that is used from here and, by its blocking twins, from its own thread."""
    app = Mainspring(url, submitted_by="tester")
    yield app
    await app.close()
    await asyncio.to_thread(app.close_sync)


@pytest.fixture(autouse=True)
def waiting_for_a_key_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitter, "KEY_SECONDS", 2 * NOT_DELAYED)


@pytest.fixture
def add(app: Mainspring) -> AddJob:
    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    return add


async def exists(app: Mainspring, run_id: UUID) -> bool:
    try:
        await app.runs.find(run_id)
    except RunNotFound:
        return False
    return True


# ── commit and rollback ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("library", ALL)
async def test_a_run_exists_once_its_caller_commits(app: Mainspring, add: AddJob, url: str, library: str) -> None:
    async with caller(library, url) as one:
        handle = await add.options(connection=one.connection).submit(a=1, b=2)
        assert not await exists(app, handle.id)
        await one.commit()

    run = await handle.find()
    assert (run.state, run.payload, run.submitted_by) == ("ready", {"a": 1, "b": 2}, "tester")


@pytest.mark.parametrize("library", ALL)
async def test_a_run_never_was_if_its_caller_rolls_back(app: Mainspring, add: AddJob, url: str, library: str) -> None:
    async with caller(library, url) as one:
        handle = await add.options(connection=one.connection).submit(a=1, b=2)
        await one.rollback()

    assert not await exists(app, handle.id)


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", ALL)
async def test_many_runs_share_their_callers_fate(
    app: Mainspring, add: AddJob, url: str, library: str, is_committed: bool
) -> None:
    async with caller(library, url) as one:
        handles = await add.options(connection=one.connection).submit_many({"a": 1, "b": each} for each in range(20))
        await (one.commit() if is_committed else one.rollback())

    assert [await exists(app, handle.id) for handle in handles] == [is_committed] * 20


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", BLOCKING)
async def test_the_blocking_twins_do_the_same(
    app: Mainspring, add: AddJob, url: str, library: str, is_committed: bool
) -> None:
    async with caller(library, url) as one:
        job = add.options(connection=one.connection)
        handles = [await asyncio.to_thread(job.submit_sync, a=1, b=2)]
        handles += await asyncio.to_thread(job.submit_many_sync, [{"a": 3, "b": 4}, {"a": 5, "b": 6}])
        await (one.commit() if is_committed else one.rollback())

    assert [await exists(app, handle.id) for handle in handles] == [is_committed] * 3


async def test_the_handles_of_a_batch_are_in_the_order_of_its_items(app: Mainspring, add: AddJob, url: str) -> None:
    async with caller("asyncpg", url) as one:
        handles = await add.options(connection=one.connection).submit_many({"a": each, "b": 0} for each in range(50))
        await one.commit()

    assert [(await handle.find()).payload["a"] for handle in handles] == list(range(50))


MANY = 8_000  # so many are in all lanes


@pytest.mark.parametrize("library", ["asyncpg", "psycopg"])
async def test_so_are_those_of_a_batch_for_many_lanes(app: Mainspring, add: AddJob, url: str, library: str) -> None:
    async with caller(library, url) as one:
        job = add.options(connection=one.connection, delay=60)
        batch = [{"a": each, "b": 0} for each in range(MANY)]
        handles = await (
            asyncio.to_thread(job.submit_many_sync, batch) if library in BLOCKING else job.submit_many(batch)
        )
        await one.commit()

    assert {lane_of(handle.id) for handle in handles} == set(range(8))
    assert [(await handles[each].find()).payload["a"] for each in (0, 999, 1_000, 7_999)] == [0, 999, 1_000, 7_999]


async def test_without_a_transaction_a_batch_for_many_lanes_is_accepted_as_a_whole_or_not_at_all(
    app: Mainspring, add: AddJob, url: str, connection: asyncpg.Connection[Any]
) -> None:
    await connection.execute("alter table ready add check (lane <> 7)")  # the last in order
    own = await asyncpg.connect(url)
    with pytest.raises(asyncpg.CheckViolationError):
        await add.options(connection=own).submit_many([{"a": 1, "b": 2}] * MANY)
    await own.close()

    assert await connection.fetchval("select count(*) from ready") == 0


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_run_and_what_its_caller_writes_happen_together(
    app: Mainspring, add: AddJob, url: str, connection: asyncpg.Connection[Any], is_committed: bool
) -> None:
    await connection.execute("create table public.invoice (number int)")
    async with caller("async psycopg", url) as one:
        await one.connection.execute("insert into public.invoice values (7)")
        handle = await add.options(connection=one.connection).submit(a=1, b=2)
        await (one.commit() if is_committed else one.rollback())

    assert await connection.fetchval("select count(*) from public.invoice") == is_committed
    assert await exists(app, handle.id) == is_committed


async def test_a_savepoint_that_is_rolled_back_takes_only_its_own_run_along(
    app: Mainspring, add: AddJob, url: str
) -> None:
    async with caller("asyncpg", url) as one:
        job = add.options(connection=one.connection)
        kept = await job.submit(a=1, b=1)
        savepoint = one.connection.transaction()
        await savepoint.start()
        dropped = await job.submit(a=2, b=2)
        await savepoint.rollback()
        await one.commit()

    assert (await exists(app, kept.id), await exists(app, dropped.id)) == (True, False)


async def test_options_travel_along(app: Mainspring, add: AddJob, url: str) -> None:
    async with caller("asyncpg", url) as one:
        job = add.options(connection=one.connection, delay=3600, priority=1, tags=["x"], key="k", max_age=60)
        handle = await job.submit(a=1, b=2)
        await one.commit()

    run = await handle.find()
    assert (run.state, run.priority, run.tags, run.idempotency_key) == ("scheduled", 1, ["x"], "k")
    assert run.expires_at is not None


# ── what callers bring along ────────────────────────────────────────────────────────────────────────────────────


async def test_without_a_transaction_a_run_exists_at_once(app: Mainspring, add: AddJob, url: str) -> None:
    plain = await asyncpg.connect(url)
    handle = await add.options(connection=plain).submit(a=1, b=2)
    assert await exists(app, handle.id)
    await plain.close()


async def test_autocommit_is_the_callers_choice(app: Mainspring, add: AddJob, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        handle = await asyncio.to_thread(add.options(connection=connection).submit_sync, a=1, b=2)
        assert await exists(app, handle.id)


@pytest.mark.parametrize("path", ["public", "nowhere", "trap, mainspring", "pg_temp"])
async def test_the_callers_search_path_does_not_matter(
    app: Mainspring, add: AddJob, url: str, connection: asyncpg.Connection[Any], path: str
) -> None:
    await connection.execute(
        """create schema trap; create table trap.ready (lane int); create table trap.idempotency (lane int);
           create function trap.clock_now() returns timestamptz language sql as 'select null::timestamptz'"""
    )
    async with caller("asyncpg", url) as one:
        await one.connection.execute(f"set local search_path = {path}")
        handle = await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        await one.commit()

    assert (await handle.find()).state == "ready"
    assert await connection.fetchval("select count(*) from trap.ready") == 0


@pytest.mark.parametrize("row_factory", [dict_row, namedtuple_row, scalar_row])
async def test_the_callers_row_factory_does_not_matter(
    app: Mainspring, add: AddJob, url: str, row_factory: Any
) -> None:
    with psycopg.connect(url, row_factory=row_factory) as connection:
        blocking = await asyncio.to_thread(add.options(connection=connection).submit_sync, a=1, b=2)
    async with await psycopg.AsyncConnection.connect(url, row_factory=row_factory) as connection:
        handle = await add.options(connection=connection).submit(a=1, b=2)

    assert [await exists(app, each) for each in (blocking.id, handle.id)] == [True, True]


async def test_the_callers_codecs_do_not_matter(app: Mainspring, add: AddJob, url: str) -> None:
    own = await asyncpg.connect(url)
    for kind in ("json", "jsonb"):
        await own.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await own.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")

    handle = await add.options(connection=own).submit(a=1, b=2)

    assert isinstance(handle.id, UUID)
    assert await exists(app, handle.id)
    await own.close()


# ── who waits for an open transaction ───────────────────────────────────────────────────────────────────────────


async def test_an_open_transaction_delays_nobody(app: Mainspring, add: AddJob, url: str) -> None:
    other = Mainspring(url, submitted_by="somebody else")
    other.registry.add(add.handler)
    async with caller("asyncpg", url) as one:
        job = add.options(connection=one.connection)
        await job.submit(a=1, b=2)
        await job.options(connection=one.connection, key="mine").submit(a=1, b=2)
        async with asyncio.timeout(NOT_DELAYED), other:
            theirs = type(add)(other, add.handler)
            handles = [
                *await asyncio.gather(*(add.submit(a=each, b=0) for each in range(20))),
                await add.options(key="another").submit(a=1, b=2),
                *await add.submit_many([{"a": 1, "b": 2}]),
                await theirs.submit(a=3, b=4),
                await theirs.options(key="a third").submit(a=3, b=4),
            ]
        await one.rollback()

    assert all([await exists(app, handle.id) for handle in handles])


async def test_claims_pass_over_what_is_not_committed(
    app: Mainspring, add: AddJob, url: str, database: Database
) -> None:
    worker = await database.connect(raw_time=True)
    line = await worker.fetchval("insert into line (tenant_id, queue) values (1, 'default') returning id")
    async with caller("asyncpg", url) as one:
        pending = await add.options(connection=one.connection).submit(a=1, b=2)
        accepted = await add.submit(a=1, b=2)
        async with asyncio.timeout(NOT_DELAYED):
            claimed = [
                row["id"]
                for lane in {lane_of(pending.id), lane_of(accepted.id)}
                for row in await leases.claim(
                    worker,
                    lane=lane,
                    line=line,
                    priorities=PRIORITIES,
                    fronts=[0] * 10,
                    count=10,
                    lease_id=uuid4(),
                    worker_id=await registered_worker(worker),
                )
            ]
        await one.commit()

    assert claimed == [accepted.id]
    assert (await pending.find()).state == "ready"
    await worker.close()


async def test_a_job_that_nobody_knew_is_registered_outside_the_callers_transaction(
    app: Mainspring, add: AddJob, url: str, connection: asyncpg.Connection[Any]
) -> None:
    """Otherwise everybody who registers the same job would wait for this caller."""
    async with caller("asyncpg", url) as one:
        await add.options(connection=one.connection).submit(a=1, b=2)
        await one.rollback()

    assert await connection.fetchval("select count(*) from job where name = 'add'") == 1


@pytest.mark.parametrize("is_committed", [True, False])
async def test_whoever_uses_the_same_key_waits_and_learns_which_run_it_stands_for(
    app: Mainspring, add: AddJob, url: str, is_committed: bool
) -> None:
    async with caller("asyncpg", url) as one:
        first = await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        second = asyncio.ensure_future(add.options(key="k").submit(a=1, b=2))
        await until_someone_waits_for_a_lock(one.connection)
        await (one.commit() if is_committed else one.rollback())

    assert ((await second).id == first.id) == is_committed
    assert await exists(app, (await second).id)


async def test_whoever_waits_for_a_key_does_not_delay_submissions_without_one(add: AddJob, url: str) -> None:
    async with caller("asyncpg", url) as one:
        await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        waiting = asyncio.ensure_future(add.options(key="k").submit(a=1, b=2))
        await until_someone_waits_for_a_lock(one.connection)
        async with asyncio.timeout(NOT_DELAYED):
            await asyncio.gather(add.submit(a=1, b=2), add.submit_many([{"a": 1, "b": 2}]))
        await one.commit()
        await waiting


async def test_whoever_waits_for_a_key_does_not_delay_other_keys(add: AddJob, url: str) -> None:
    async with caller("asyncpg", url) as one:
        await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        waiting = asyncio.ensure_future(add.options(key="k").submit(a=1, b=2))
        await until_someone_waits_for_a_lock(one.connection)
        other = asyncio.ensure_future(add.options(key="another").submit(a=1, b=2))
        finished, _ = await asyncio.wait({other}, timeout=NOT_DELAYED)
        await one.commit()
        await asyncio.gather(waiting, other)

    assert finished


async def test_closing_waits_for_what_is_being_submitted(app: Mainspring, add: AddJob, url: str) -> None:
    async with caller("asyncpg", url) as one:
        first = await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        waiting = asyncio.ensure_future(add.options(key="k").submit(a=1, b=2))
        await until_someone_waits_for_a_lock(one.connection)
        closing = asyncio.ensure_future(app.close())
        await asyncio.wait({closing}, timeout=0.1)
        await one.commit()
        await closing

    assert await waiting == first


async def test_waiting_for_a_key_has_an_end(
    app: Mainspring, add: AddJob, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitter, "KEY_SECONDS", 0.01)
    async with caller("asyncpg", url) as one:
        await add.options(connection=one.connection, key="k").submit(a=1, b=2)
        with pytest.raises(Conflict, match="still open") as refused:
            await add.options(key="k").submit(a=1, b=2)
        await one.commit()

    assert refused.value.code == "idempotency-key-busy"


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", [object(), "postgresql://localhost", sqlite3.connect(":memory:")])
async def test_what_is_not_a_postgresql_connection_is_refused_by_name(add: AddJob, what: object) -> None:
    with pytest.raises(InvalidInput, match=type(what).__name__) as refused:
        add.options(connection=what)
    assert refused.value.code == "invalid-connection"


@pytest.mark.parametrize("library", ASYNC)
async def test_an_async_connection_is_refused_by_a_blocking_call(
    add: AddJob, url: str, connection: asyncpg.Connection[Any], library: str
) -> None:
    async with caller(library, url) as one:
        with pytest.raises(InvalidInput) as refused:
            await asyncio.to_thread(add.options(connection=one.connection).submit_sync, a=1, b=2)
        await one.commit()

    assert refused.value.code == "connection-is-async"
    assert await connection.fetchval("select count(*) from ready") == 0


async def test_an_application_says_where_its_database_is_as_every_driver_reads_it(url: str) -> None:
    async with Mainspring(url.replace("postgresql://", "postgresql+asyncpg://", 1)) as app:
        assert await app.database_url() == url
        assert await asyncio.to_thread(app.database_url_sync) == url
        await asyncio.to_thread(app.close_sync)
