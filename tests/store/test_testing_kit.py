"""What users of `mainspring.testing` may rely on, with a real database."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import InvalidInput, RunFailed
from mainspring.testing import (
    NotIdle,
    assert_submitted,
    assert_submitted_sync,
    run_until_idle,
    run_until_idle_sync,
)

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

HOUR = timedelta(hours=1)


# ── the frozen clock ────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_connection_tells_the_frozen_time(
    database: Database, connection: asyncpg.Connection[asyncpg.Record], clock: FrozenClock
) -> None:
    assert await connection.fetchval("select clock_now()") != clock.at

    await clock.freeze(database)

    assert await connection.fetchval("select clock_now()") == clock.at


async def test_sql_follows_when_the_clock_moves(
    database: Database, connection: asyncpg.Connection[asyncpg.Record], clock: FrozenClock
) -> None:
    await clock.freeze(database)
    prepared = await connection.prepare("select clock_now()")
    for _ in range(10):  # long enough for a plan that is kept
        await prepared.fetchval()

    await clock.advance(HOUR)
    assert await prepared.fetchval() == clock.at
    await clock.set(clock.at - 2 * HOUR)
    assert await prepared.fetchval() == clock.at


async def test_thawing_gives_the_database_its_own_clock_back(
    database: Database, connection: asyncpg.Connection[asyncpg.Record], clock: FrozenClock
) -> None:
    definition = "select pg_get_functiondef('clock_now'::regproc)"
    before = await connection.fetchval(definition)

    await clock.freeze(database)
    await clock.thaw()

    assert await connection.fetchval(definition) == before
    assert await connection.fetchval("select clock_now() = now()")


@pytest.mark.invariant(10)
async def test_column_defaults_follow_the_frozen_clock(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    await clock.advance(HOUR)
    run = await (await nothing.submit()).find()

    assert run.submitted_at == run.due_at == clock.at


async def test_history_has_a_partition_wherever_the_clock_goes(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    for _ in range(3):
        await clock.advance(timedelta(days=40))
        handle = await nothing.submit()
        await run_until_idle(frozen_app)
        assert [attempt.recorded_at for attempt in (await handle.find()).attempts] == [clock.at]


# ── run_until_idle ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_ready_is_executed(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    @frozen_app.job
    def triple(n: int) -> int:
        return 3 * n

    handles = [await add.submit(a=1, b=2), await triple.submit(n=2)]

    assert await run_until_idle(frozen_app) == {"succeeded": 2}
    assert [await handle.result() for handle in handles] == [3, 6]


async def test_with_nothing_to_do_it_ends_at_once(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    assert await run_until_idle(frozen_app) == {}


async def test_it_leaves_no_worker_behind(
    frozen_app: Mainspring, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    await nothing.submit_many([{}] * 500)
    assert await run_until_idle(frozen_app) == {"succeeded": 500}

    assert await connection.fetchval("select array_agg(state::text) from worker") == ["stopped"]
    assert await connection.fetchval("select count(*) from lease") == 0


async def test_a_real_clock_will_do(app: Mainspring) -> None:
    @app.job
    async def nothing() -> None: ...

    await nothing.submit()
    assert await run_until_idle(app) == {"succeeded": 1}


async def test_runs_that_handlers_submit_are_executed_too(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def count_down(n: int) -> None:
        if n:
            await count_down.submit(n=n - 1)

    await count_down.submit(n=5)
    assert await run_until_idle(frozen_app) == {"succeeded": 6}


async def test_what_is_due_later_waits_until_the_clock_gets_there(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    await nothing.options(delay=HOUR).submit()
    await clock.advance(HOUR - timedelta(seconds=1))
    assert await run_until_idle(frozen_app) == {}

    await clock.advance(timedelta(seconds=1))
    assert await run_until_idle(frozen_app) == {"succeeded": 1}


async def test_a_failed_run_waits_for_its_next_attempt(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def fail() -> None:
        raise ValueError

    handle = await fail.submit()
    assert await run_until_idle(frozen_app) == {"failed": 1}
    assert (await handle.find()).state == "scheduled"


async def test_travelling_makes_retries_happen_at_once(frozen_app: Mainspring, clock: FrozenClock) -> None:
    began = clock.at

    @frozen_app.job(retry=RetryPolicy(max_attempts=4, first_delay=HOUR, cap=8 * HOUR))
    async def fail() -> None:
        raise ValueError("never works")

    handle = await fail.submit()

    assert await run_until_idle(frozen_app, travel=True) == {"failed": 4}
    assert clock.at == began + (1 + 2 + 4) * HOUR
    with pytest.raises(RunFailed, match="never works"):
        await handle.result()


async def test_travelling_stops_at_each_due_time(frozen_app: Mainspring, clock: FrozenClock) -> None:
    seen = []

    @frozen_app.job(on_disconnect="stop")
    async def look(n: int) -> None:
        seen.append((n, clock.at - began))

    began = clock.at
    for hours in (5, 1, 3):
        await look.options(at=began + hours * HOUR).submit(n=hours)

    assert await run_until_idle(frozen_app, travel=True) == {"succeeded": 3}
    assert seen == [(1, HOUR), (3, 3 * HOUR), (5, 5 * HOUR)]


async def test_only_a_frozen_clock_can_travel(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="frozen clock"):
        await run_until_idle(app, travel=True)


async def test_only_the_queues_asked_for_are_served(frozen_app: Mainspring) -> None:
    @frozen_app.job(queue="mail")
    async def send() -> None: ...

    @frozen_app.job(queue="slow")
    async def crunch() -> None: ...

    mail, slow = await send.submit(), await crunch.submit()

    assert await run_until_idle(frozen_app, queues=["mail"]) == {"succeeded": 1}
    assert [(await run.find()).state for run in (mail, slow)] == ["succeeded", "ready"]


async def test_a_run_that_came_too_late_expires(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job(max_age=HOUR)
    async def nothing() -> None: ...

    handle = await nothing.submit()
    await clock.advance(HOUR)

    assert await run_until_idle(frozen_app) == {"expired": 1}
    assert (await handle.find()).state == "expired"


async def test_a_handler_that_never_ends_is_stopped_and_named(
    frozen_app: Mainspring, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @frozen_app.job
    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    began = asyncio.Event()
    handle = await hang.submit()
    said, timeout = "", 0.1
    while not began.is_set():  # a slow machine needs longer to begin
        timeout *= 2
        with pytest.raises(NotIdle) as not_idle:
            await run_until_idle(frozen_app, timeout=timeout)
        said = str(not_idle.value)

    assert "1 run(s) are running" in said
    assert (await handle.find()).state == "ready"
    assert await connection.fetchval("select count(*) from worker where state = 'live'") == 0


async def test_travelling_runs_handlers_into_their_timeouts(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job(timeout=HOUR, retry=RetryPolicy(max_attempts=2, first_delay=HOUR))
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    before = clock.at
    handle = await wait_for_ever.submit()

    assert await run_until_idle(frozen_app, travel=True) == {"timed_out": 2}
    assert (await handle.find()).state == "dead"
    assert clock.at - before >= 2 * HOUR


async def test_submissions_have_arguments_as_the_handler_sees_them(frozen_app: Mainspring) -> None:
    @frozen_app.job
    def pay(amount: Decimal, *, at: date = date(2031, 1, 1)) -> None: ...

    await pay.submit(Decimal("1.10"))

    (run,) = await assert_submitted(pay, amount=Decimal("1.10"))
    assert run.arguments == {"amount": Decimal("1.10"), "at": date(2031, 1, 1)}


# ── for tests that are not async ────────────────────────────────────────────────────────────────────────────────


async def test_a_test_that_is_not_async_executes_and_looks_alike(url: str) -> None:
    await asyncio.to_thread(_plain_test, url)


def _plain_test(url: str) -> None:
    app = Mainspring(url, submitted_by="tester")

    @app.job
    def add(a: int, b: int) -> int:
        return a + b

    handle = add.submit_sync(a=1, b=2)

    assert assert_submitted_sync(add, a=1)[0].run_id == handle.id
    assert run_until_idle_sync(app) == {"succeeded": 1}
    assert handle.result_sync(timeout=0) == 3
    assert handle.find_sync().state == "succeeded"
    assert [update.run.state for update in handle.watch_sync()] == ["succeeded"]
    assert app.runs.handle(str(handle.id)) == handle
    assert app.jobs.find_sync("add").name == "add"
    again = app.runs.rerun_sync(handle.id, arguments={"a": 3, "b": 4})
    assert again.cancel_sync(reason="enough") == "cancelled"
    assert [run.id for run in app.runs.each_sync()] == [again.id, handle.id]
    app.close_sync()


async def test_its_calls_are_refused_in_an_event_loop(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="run_until_idle_sync") as refused:
        run_until_idle_sync(app)
    assert "await run_until_idle(" in str(refused.value.hint)
