"""A worker all of whose threads are taken: what it claims, what it leaves in line, and who goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.registering import registered_worker
from tests.waiting import until

from mainspring.errors import DatabaseUnreachable
from mainspring.model.ids import lane_of
from mainspring.model.run import PRIORITIES
from mainspring.store import leases
from mainspring.worker import running

from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import asyncpg

    from mainspring import Mainspring
    from mainspring.store.connection import Connection

PATIENCE = 60.0
BACKLOG = 30


class Threaded:
    """Jobs whose handlers block their threads until they are let go, and one that needs none."""

    def __init__(self, app: Mainspring) -> None:
        self.gate = threading.Semaphore(0)
        self.begun: list[str] = []

        @app.job
        def block() -> None:
            self.begun.append("block")
            self.gate.acquire()

        @app.job(delivery="at_most_once")
        def block_once() -> None:
            self.begun.append("block_once")
            self.gate.acquire()

        @app.job
        async def quick() -> str:
            return "done"

        @app.job(delivery="at_most_once")
        async def quick_once() -> str:
            return "done"

        self.block, self.block_once, self.quick, self.quick_once = block, block_once, quick, quick_once


@pytest.fixture
async def jobs(app: Mainspring) -> AsyncIterator[Threaded]:
    threaded = Threaded(app)
    yield threaded
    threaded.gate.release(1_000)


async def until_begun(jobs: Threaded, count: int) -> None:
    await until(lambda: len(jobs.begun) >= count)


async def test_async_runs_are_claimed_and_executed_while_all_threads_are_blocked(
    app: Mainspring, jobs: Threaded
) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=2):
        await until_begun(jobs, 2)
        handles = [await job.submit() for job in (jobs.quick, jobs.quick_once)]

        assert [await handle.result(timeout=PATIENCE) for handle in handles] == ["done", "done"]
        assert len(jobs.begun) == 2, "nobody let them go meanwhile"
        jobs.gate.release(1_000)


async def test_the_first_runs_of_a_tenant_do_not_wait_in_a_worker_that_has_no_thread_for_them(
    app: Mainspring, jobs: Threaded, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a job of another tenant needs a thread is known when the first of its runs has been claimed."""
    monkeypatch.setattr(running, "STALE_SECONDS", 600.0)  # until then they would wait, and be given back in any case
    await app.tenants.create("acme")
    await jobs.block.submit_many([{}] * 2)
    async with working(app, slots=100, threads=2):
        await until_begun(jobs, 2)
        await jobs.block.options(tenant="acme").submit_many([{}] * BACKLOG)

        await until(
            lambda: connection.fetchval("select count(*) from ready where fence > 0 having count(*) = $1", BACKLOG)
        )
        jobs.gate.release(1_000)


async def test_an_urgent_run_goes_before_whatever_waits_for_a_thread(app: Mainspring, jobs: Threaded) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=4, threads=2):
        await until_begun(jobs, 2)
        handle = await jobs.quick.options(priority=0).submit()

        assert await handle.result(timeout=PATIENCE) == "done"
        jobs.gate.release(1_000)


async def test_an_urgent_run_gets_the_next_thread(
    app: Mainspring, jobs: Threaded, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it was asked for in vain while all of them were taken."""
    claim, asked = leases.claim, list[int]()

    async def spied(*connection: Any, **how: Any) -> Any:
        rows = await claim(*connection, **how)
        asked.append(len(how["priorities"]))
        return rows

    @app.job
    def hasten() -> None:
        jobs.begun.append("hasten")

    monkeypatch.setattr(leases, "claim", spied)
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=1) as worker:
        await until_begun(jobs, 1)
        lane = lane_of((await hasten.options(priority=0).submit()).id)
        line = await connection.fetchval("select line_id from ready where priority = 0")
        await until(lambda: (lane, line) in worker.parts.claimer._fronts)
        worker.parts.claimer.notice(lane, line, 0)  # as a wake-up does, unless one was sent for the line just before
        await until(lambda: 1 in asked)

        jobs.gate.release()
        await until_begun(jobs, 2)
        assert jobs.begun[1] == "hasten"
        jobs.gate.release(1_000)


async def test_runs_that_cannot_start_stay_in_line_for_other_workers(
    app: Mainspring, jobs: Threaded, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=2):
        await until_begun(jobs, 2)
        handle = await jobs.quick.submit()
        await handle.result(timeout=PATIENCE)  # it has asked for more since

        assert await connection.fetchval("select count(*) from ready") == BACKLOG - 2
        async with working(app, slots=100, threads=3):
            await until_begun(jobs, 5)
            jobs.gate.release(1_000)


async def test_threads_are_filled_as_they_become_free(app: Mainspring, jobs: Threaded) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=2):
        for count in range(2, BACKLOG):
            await until_begun(jobs, count)
            jobs.gate.release()


async def test_runs_that_may_not_wait_in_a_worker_get_a_thread_in_their_turn(app: Mainspring, jobs: Threaded) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=2):
        await until_begun(jobs, 2)
        await jobs.block_once.submit()
        while "block_once" not in jobs.begun:
            jobs.gate.release()
            await until_begun(jobs, len(jobs.begun) + 1)

        assert len(jobs.begun) < BACKLOG + 1, "it did not have to wait for all of them"
        jobs.gate.release(1_000)


async def test_a_thread_is_not_kept_for_a_claim_that_failed(
    app: Mainspring, jobs: Threaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    await jobs.block.submit_many([{}] * BACKLOG)
    async with working(app, slots=100, threads=1) as worker:
        await until_begun(jobs, 1)
        handle = await jobs.block_once.submit()
        executor, lines = worker.parts.executor, worker.parts.lines
        await until(lambda: executor.capacity._kept_threads)
        claim, failures = leases.claim, [DatabaseUnreachable("connection lost")]

        async def fail_once(connection: Connection, *, line: int, **how: Any) -> Any:
            if failures and lines[line].is_claimed_singly and executor.capacity.free_threads():
                await handle.cancel()  # so nothing is there when the line is asked again
                raise failures.pop()
            return await claim(connection, line=line, **how)

        monkeypatch.setattr(leases, "claim", fail_once)
        jobs.gate.release()
        await until(lambda: not failures)
        await until_begun(jobs, 2)
        jobs.gate.release(1_000)


async def test_one_thread_is_enough_for_handlers_that_wait_for_each_other(app: Mainspring) -> None:
    @app.job
    def leaf() -> int:
        return 1

    @app.job
    def branch() -> int:
        return leaf.submit_sync().result_sync() + 1

    @app.job
    def tree() -> int:
        return branch.submit_sync().result_sync() + 1

    async with working(app, slots=2, threads=1):
        handles = [await tree.submit() for _ in range(3)]
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [3, 3, 3]
    await asyncio.to_thread(app.close_sync)


# ── the statement ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("threads", "claimed"), [(0, ["quick"] * 2), (2, ["block"] * 2 + ["quick"] * 2)])
async def test_a_claim_takes_only_so_many_runs_of_jobs_that_need_a_thread(
    app: Mainspring, jobs: Threaded, connection: Connection, threads: int, claimed: list[str]
) -> None:
    first = await jobs.block.options(key="a").submit()
    lane = lane_of(first.id)
    rows: Any = await connection.fetch("select job_id, line_id from ready")
    ((in_thread, line),) = rows
    for job in (jobs.block, jobs.block, jobs.quick, jobs.quick):
        await _submit_to(lane, job)

    taken = await leases.claim(
        connection,
        lane=lane,
        line=line,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=5,
        lease_id=uuid4(),
        worker_id=await registered_worker(connection),
        jobs_in_threads=[in_thread],
        threads=threads,
    )

    assert sorted("block" if row["job_id"] == in_thread else "quick" for row in taken) == claimed
    assert await connection.fetchval("select count(*) from ready where lane = $1", lane) == 5 - len(taken)


async def test_a_claim_takes_nothing_if_all_need_a_thread_and_none_is_free(
    app: Mainspring, jobs: Threaded, connection: Connection
) -> None:
    first = await jobs.block.options(key="a").submit()
    lane, (in_thread, line) = lane_of(first.id), await connection.fetchrow("select job_id, line_id from ready")

    taken = await leases.claim(
        connection,
        lane=lane,
        line=line,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=5,
        lease_id=uuid4(),
        worker_id=await registered_worker(connection),
        jobs_in_threads=[in_thread],
        threads=0,
    )

    assert taken == []
    assert await connection.fetchval("select count(*) from ready") == 1
    assert await connection.fetchval("select count(*) from lease") == 0


async def _submit_to(lane: int, job: Any) -> None:
    """Until one happens to be in that lane."""
    while lane_of((await job.submit()).id) != lane:
        pass
