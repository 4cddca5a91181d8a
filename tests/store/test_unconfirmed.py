"""What was committed, and no standby has: nobody answers from having seen it.

COMMIT waits for a standby that never comes; then the server's side of the connection is ended. Now everyone can see
what was committed, although the next failover takes it away. Who still answers rested on a read. Who writes something
and commits it before answering waits here, and answers when commits go on.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.switches import hurry, with_and_without
from tests.system.machinery import eventually
from tests.system.proxy import Proxy

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.errors import MainspringError, OutcomeUnknown
from mainspring.model.filter import run_filter
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from uuid import UUID

    from tests.system.replicas import Server

    from mainspring.app.job import Job

    Answer = asyncio.Future[Any]

ONCE = RetryPolicy(max_attempts=1, first_delay=timedelta(0))


@pytest.fixture
async def url(lone: Server) -> str:
    # asyncpg leaves behind futures of broken operations that nobody awaits; they are not what is tested here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    return lone.url


@pytest.fixture
async def other(url: str) -> AsyncIterator[Mainspring]:
    """Another process's application, with everything open that it needs for looking."""
    app = Mainspring(url, submitted_by="other")
    await app.services()
    yield app
    await app.close()


@pytest.fixture
async def shop(app: Mainspring, other: Mainspring) -> Shop:
    """Jobs that both applications know, and have registered."""
    shop = Shop(app)
    await shop.sell.submit()
    await shop.fail.submit()
    await run_until_idle(app)
    twin = Shop(other)
    await twin.sell.submit()
    await run_until_idle(other)
    return shop


class Shop:
    def __init__(self, app: Mainspring) -> None:
        self.app = app

        @app.job
        async def sell(n: int = 0) -> int:
            return n

        @app.job(retry=ONCE)
        async def fail() -> None:
            raise ValueError("no")

        self.sell: Job[Any, int] = sell
        self.fail: Job[Any, None] = fail

    async def dead(self) -> UUID:
        handle = await self.fail.submit()
        await run_until_idle(self.app)
        return handle.id


async def decided(server: Server, call: Awaitable[Any], part: str = "") -> Answer:
    """A call that has answered, whatever it says, or waits for a standby and says nothing."""
    already = await server.waiting(part)
    answer = asyncio.ensure_future(call)

    async def is_decided() -> bool:
        return answer.done() or await server.waiting(part) > already

    assert await eventually(is_decided)
    return answer


@asynccontextmanager
async def unconfirmed(server: Server, call: Awaitable[Any], part: str = "") -> AsyncIterator[Answer]:
    """Commit what no standby has and lose the answer: it is there to be seen. Afterwards, commits go on.

    Yields the call, which may have ended with an error, wait for certainty, or have been misled.
    """
    async with server.commits_held():
        first = await decided(server, call, part)
        assert not first.done(), first
        await server.end_waiting(part)
        assert await eventually(lambda: _is_done_or_waiting(server, first, part))
        yield first
    with suppress(MainspringError, *BROKEN):
        await first


BROKEN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


async def _is_done_or_waiting(server: Server, answer: Answer, part: str) -> bool:
    return answer.done() or await server.waiting(part) > 0


# ── submissions ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def submit(sell: Job[Any, int], kind: str) -> list[UUID]:
    match kind:
        case "single":
            return [(await sell.submit(n=1)).id]
        case "batch":
            return [handle.id for handle in await sell.submit_many([{"n": n} for n in range(20)])]
        case "keyed":
            return [(await sell.options(key="order 17").submit(n=1)).id]
        case _:
            return [(await sell.options(delay=3600).submit(n=1)).id]


@with_and_without("confirmation")
@pytest.mark.parametrize("kind", ["single", "batch", "keyed", "delayed"])
async def test_a_submission_that_finds_its_runs_answers_when_a_standby_has_them(
    lone: Server, shop: Shop, kind: str, without: str
) -> None:
    async with unconfirmed(lone, submit(shop.sell, kind), "submit") as submitting:
        assert await lone.ask("select (select count(*) from ready) + (select count(*) from later)")
        assert submitting.done() is bool(without)
    ids = await submitting
    for run_id in ids:
        await shop.app.runs.find(run_id)
    assert await lone.ask("select (select count(*) from ready) + (select count(*) from later)") == len(ids)


@with_and_without("confirmation")
async def test_a_key_that_was_used_before_stands_for_a_run_that_a_standby_has(
    lone: Server, shop: Shop, other: Mainspring, without: str
) -> None:
    sell = Shop(Mainspring(lone.url)).sell
    sell._app = other
    async with unconfirmed(lone, submit(shop.sell, "keyed"), "submit keyed") as first:
        answer = await decided(lone, submit(sell, "keyed"), "submit keyed")
        assert answer.done() is bool(without)
    assert await answer == await first


@with_and_without("confirmation")
async def test_a_key_that_was_used_before_keeps_the_caller_s_own_commit_waiting(
    lone: Server, shop: Shop, without: str
) -> None:
    async def submit_in_own_transaction() -> list[UUID]:
        connection = await asyncpg.connect(lone.url, server_settings={"application_name": "mainspring caller"})
        async with connection.transaction():
            handle = await shop.sell.options(key="order 17", connection=connection).submit(n=1)
        await connection.close()
        return [handle.id]

    async with unconfirmed(lone, submit(shop.sell, "keyed"), "submit keyed") as first:
        answer = await decided(lone, submit_in_own_transaction(), "caller")
        assert answer.done() is bool(without)
    assert await answer == await first


@with_and_without("confirmation")
async def test_a_job_that_is_found_registered_is_used_when_a_standby_has_it(
    lone: Server, shop: Shop, other: Mainspring, without: str
) -> None:
    """Else its number is remembered, and after a failover it may be another job's."""

    def buy_of(app: Mainspring) -> Job[Any, None]:
        @app.job
        async def buy() -> None: ...

        return buy

    first, second = buy_of(shop.app), buy_of(other)
    async with unconfirmed(lone, first.submit(), "client"):
        assert await lone.ask("select exists (select from job where name = 'buy')")
        answer = await decided(lone, second.submit())
        assert not answer.done()
        assert await lone.waiting("submit") == bool(without)
    await answer


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def submit_unconfirmed(server: Server, job: Job[Any, Any], **arguments: Any) -> Any:
    """Submit while commits are held, without waiting for anyone."""
    connection = await asyncpg.connect(server.url, server_settings={"synchronous_commit": "local"})
    try:
        return await job.options(connection=connection).submit(**arguments)
    finally:
        await connection.close()


@with_and_without("confirmation")
@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
async def test_a_claim_that_is_looked_up_starts_its_runs_when_a_standby_has_it(
    lone: Server, app: Mainspring, delivery: str, without: str
) -> None:
    """Else a failover takes the claim away, and somebody claims again what has started."""
    started: list[UUID] = []

    @app.job(delivery=delivery)
    async def pay(context: Context) -> None:
        started.append(context.run_id)

    await pay.submit()
    await run_until_idle(app)
    started.clear()
    async with working(app):
        async with unconfirmed(lone, _until_claimed(lone, pay), "worker claim"):
            assert await lone.ask("select count(*) from lease") == 1
            assert await eventually(lambda: _has_started_or_waits(lone, started))
            assert bool(started) is bool(without)
        assert await eventually(lambda: _is_over(lone))
    assert len(started) == 1


async def _until_claimed(server: Server, job: Job[Any, Any]) -> None:
    await submit_unconfirmed(server, job)
    await eventually(lambda: server.ask("select count(*) from lease"))


async def _has_started_or_waits(server: Server, started: list[UUID]) -> bool:
    return bool(started) or await server.waiting("worker claim") > 0


async def _is_over(server: Server) -> bool:
    return bool(await server.ask("select not exists (select from ready) and not exists (select from lease)"))


@with_and_without("confirmation")
@pytest.mark.parametrize("delivery", ["at_least_once", "transactional"])
async def test_a_settlement_that_was_recorded_before_is_done_when_a_standby_has_it(
    lone: Server, app: Mainspring, delivery: str, without: str
) -> None:
    """Settled by the worker or, delivered transactionally, by the handler's own COMMIT."""
    go_on = asyncio.Event()

    @app.job(delivery=delivery, retry=ONCE)
    async def pay(context: Context) -> None:
        await go_on.wait()
        if delivery == "transactional":
            own = await asyncpg.connect(lone.url, server_settings={"application_name": "mainspring handler"})
            async with own.transaction():
                await context.finish(own)

    part = "handler" if delivery == "transactional" else "worker flush"
    async with working(app) as worker:
        await pay.submit()
        assert await eventually(lambda: lone.ask("select count(*) from lease"))

        async def settle() -> None:
            go_on.set()
            assert await eventually(lambda: lone.ask("select count(*) from attempt"))

        async with unconfirmed(lone, settle(), part):
            assert await eventually(lambda: _has_settled_or_waits(lone, worker))
            assert (worker.parts.flusher.accepted > 0) is bool(without)
        assert await eventually(lambda: _has_settled(worker))
    assert await lone.ask("select count(*) from attempt where state = 'succeeded'") == 1
    assert await lone.ask("select count(*) from stale") == 0


async def _has_settled(worker: Any) -> bool:
    return bool(worker.parts.flusher.accepted)


async def _has_settled_or_waits(server: Server, worker: Any) -> bool:
    return bool(worker.parts.flusher.accepted) or await server.waiting("worker flush") > 0


@with_and_without("confirmation")
async def test_a_result_is_told_when_a_standby_has_it(
    lone: Server, app: Mainspring, other: Mainspring, without: str
) -> None:
    go_on = asyncio.Event()

    @app.job
    async def count() -> int:
        await go_on.wait()
        return 7

    async with working(app):
        handle = await count.submit()
        assert await eventually(lambda: lone.ask("select count(*) from lease"))

        async def settle() -> None:
            go_on.set()
            assert await eventually(lambda: lone.ask("select count(*) from attempt"))

        async with unconfirmed(lone, settle(), "worker flush"):
            assert await lone.ask("select count(*) from attempt") == 1
            answer = await decided(lone, other.runs.result(handle.id, 60), "client")
            assert answer.done() is bool(without)
    assert await answer == 7


# ── never failed ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(1)
@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_keyed_submission_that_is_cut_off_in_commit_never_failed(
    lone: Server, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    """Sent again, it meets its own transaction, which still waits for a standby: that is no busy key."""
    hurry(monkeypatch)
    async with Proxy(lone.url) as proxy, Mainspring(proxy.url) as app:
        shop = Shop(app)
        await shop.sell.options(key="order 1").submit()
        async with lone.commits_held():
            answer = await decided(lone, submit(shop.sell, "keyed"), "submit keyed")
            proxy.cut("submit keyed")
            assert await eventually(lambda: _is_back(proxy))
            if not comes_back:
                with pytest.raises(OutcomeUnknown):
                    await answer
        if comes_back:
            (run_id,) = await answer
            assert await lone.ask("select run_id from idempotency where key = 'order 17'") == run_id


async def _is_back(proxy: Proxy) -> bool:
    return len(proxy.named("submit keyed")) > 0


@pytest.mark.parametrize("act", ["cancel", "change", "requeue", "purge", "rerun"])
async def test_an_act_whose_commit_went_unanswered_never_failed(lone: Server, shop: Shop, act: str) -> None:
    """It is unknown, or it is found out: no error of the driver, and none that says it did not happen."""
    run_id = (await shop.sell.submit()).id if act in ("cancel", "change") else await shop.dead()
    async with lone.commits_held():
        answer = await decided(lone, _act(shop.app, act, run_id), "client")
        await lone.end_waiting("client")
        assert await eventually(lambda: _is_done_or_waiting(lone, answer, "client"))
    with suppress(OutcomeUnknown):
        await answer


# ── acts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@with_and_without("confirmation")
@pytest.mark.invariant(1)
@pytest.mark.parametrize("act", ["cancel", "change", "requeue", "purge", "rerun"])
async def test_an_act_that_was_done_before_is_answered_when_a_standby_has_it(
    lone: Server, shop: Shop, other: Mainspring, act: str, without: str
) -> None:
    """Whoever repeats it is told that it was done: that the run is cancelled, was changed, or is no longer dead."""
    run_id = (await shop.sell.submit()).id if act in ("cancel", "change") else await shop.dead()
    async with unconfirmed(lone, _act(shop.app, act, run_id), "client"):
        answer = await decided(lone, _act(other, act, run_id), "client")
        assert answer.done() is bool(without)
    with suppress(MainspringError):
        await answer


def _act(app: Mainspring, act: str, run_id: UUID) -> Awaitable[Any]:
    match act:
        case "cancel":
            return app.runs.cancel(run_id)
        case "change":
            return app.runs.change(run_id, priority=1, revision=0)
        case "requeue":
            return app.runs.requeue(run_id)
        case "purge":
            return app.runs.purge(run_id)
        case _:
            return app.runs.rerun(run_id)


@with_and_without("confirmation")
async def test_an_operation_that_is_resumed_at_its_end_is_over_when_a_standby_has_it(
    lone: Server, shop: Shop, other: Mainspring, without: str
) -> None:
    await shop.sell.submit_many([{}] * 5)
    operation = await shop.app.operations.start("cancel", run_filter(state="ready"))

    async def work(app: Mainspring) -> int:
        return [each async for each in app.operations.work(operation.id)][-1].done

    async with unconfirmed(lone, work(shop.app), "client"):
        answer = await decided(lone, work(other), "client")
        assert answer.done() is bool(without)
    assert await answer == 5
