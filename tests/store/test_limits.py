"""Limits: no more runs at once than they say, whatever becomes of those that hold a slot; and nobody is forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import SOMEBODY_WAITS, until

from mainspring import Context, Limit, Mainspring, RetryPolicy
from mainspring.errors import InvalidInput, JobNotFound, LimitNotFound, QueueNotFound
from mainspring.keeper import gatekeeper
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.keeper.rescuer import Rescuer
from mainspring.model.admission import Gate
from mainspring.model.line import Delivery
from mainspring.model.rate import TICK_SECONDS
from mainspring.store import admission, limits
from mainspring.store.statements import Statement, load
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Job
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

LANES = 8
AT_ONCE = RetryPolicy(max_attempts=2, first_delay=timedelta(0))
SUBMITTING: list[Mainspring] = []
PLACES = ("held", "ready", "later", "dead", "slot")


class Crowd:
    """Counts how many handlers run at once, by key; they run until told to go on."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[tuple[str, int]] = []
        self.may_end = asyncio.Event()

    async def join(self, key: str, number: int = 0) -> None:
        self.running[key] += 1
        self.most[key] = max(self.most[key], self.running[key])
        self.order.append((key, number))
        try:
            await self.may_end.wait()
        finally:
            self.running[key] -= 1


@pytest.fixture
def crowd() -> Crowd:
    SUBMITTING.clear()
    return Crowd()


async def places(connection: Connection) -> dict[str, int]:
    """How many rows are where."""
    return {
        place: count
        for place in PLACES
        if (count := await connection.fetchval(f"select count(*) from {place}"))  # noqa: S608  names of ours
    }


async def release(connection: Connection, clock: Any) -> None:
    """As the keeper does, again and again until nobody moves; after whoever submitted has done so."""
    for app in SUBMITTING:
        await (await app.services()).submitter.until_admitted()
    keeper = Gatekeeper(lanes=LANES, clock=clock)
    while await keeper.step(connection) == 0.0 or keeper.tokens_in == TICK_SECONDS:  # somebody else is at it
        keeper.forget()  # look at all gates again: he may have let somebody pass to the next one


def limited(app: Mainspring, crowd: Crowd, limit: Limit | list[Limit], **options: Any) -> Job[..., None]:
    async def send(customer: str = "acme", number: int = 0) -> None:
        await crowd.join(customer, number)

    SUBMITTING[:] = [app]
    decorate: Any = app.job
    job: Job[..., None] = decorate(name="send", limit=limit, **options)(send)
    return job


# ── how many at once ────────────────────────────────────────────────────────────────────────────────────────────


async def test_no_more_runs_come_in_line_than_the_limit_leaves(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(3))
    await send.submit_many([{"number": n} for n in range(10)])
    await release(connection, clock)

    assert await places(connection) == {"held": 7, "ready": 3, "slot": 3}


async def test_each_value_of_a_key_has_slots_of_its_own(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit_many([{"customer": f"c{n % 4}"} for n in range(20)])
    await release(connection, clock)

    assert await places(connection) == {"held": 16, "ready": 4, "slot": 4}
    found = await connection.fetch("select distinct convert_from(payload, 'UTF8') as payload from ready")
    assert len(found) == 4


@pytest.mark.parametrize("limit", [Limit(2), Limit(1, key="customer"), [Limit(2, key="customer"), Limit(3)]])
async def test_workers_execute_no_more_at_once_and_in_the_end_all(
    app: Mainspring, connection: Connection, crowd: Crowd, limit: Any
) -> None:
    send = limited(app, crowd, limit)
    limits_of_keys = [each.most for each in (limit if isinstance(limit, list) else [limit]) if each.key]
    in_all = [each.most for each in (limit if isinstance(limit, list) else [limit]) if not each.key]
    at_most_running = min([*in_all, 3 * sum(limits_of_keys)] if limits_of_keys else in_all)
    async with working(app, keeper=True, slots=20), working(app, keeper=True, slots=20):
        handles = [await send.submit(customer=f"c{n % 3}", number=n) for n in range(12)]
        await until(lambda: crowd.running.total() >= at_most_running)
        crowd.may_end.set()
        for handle in handles:
            await handle.result()

    for key, most in crowd.most.items():
        assert most <= min([*limits_of_keys, *in_all]), key
    assert len(crowd.order) == 12
    assert await places(connection) == {}


async def test_several_limits_are_passed_one_after_the_other(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, [Limit(2, key="customer"), Limit(3)], queue="mail")
    await send.submit_many([{"customer": f"c{n % 4}"} for n in range(20)])
    await frozen_app.limits.set(1, queue="mail", reason="test")
    await release(connection, clock)

    waiting = await connection.fetch("select gate from held where gate not like '%:%'")
    assert await places(connection) == {"held": 17, "ready": 3, "slot": 8 + 3}
    assert len(waiting) == 5, "two of each customer, and three of those passed"


async def test_a_limit_of_a_queue_and_one_of_all_runs_hold_for_what_waits_in_line_already(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    @frozen_app.job(queue="mail")
    async def post() -> None:
        await crowd.join("post")

    @frozen_app.job(queue="web")
    async def fetch() -> None:
        await crowd.join("fetch")

    for _ in range(5):
        await post.submit()
        await fetch.submit()
    await frozen_app.limits.set(2, queue="mail")
    await frozen_app.limits.set(3)
    async with working(frozen_app, slots=20):
        await until(lambda: crowd.running.total() == 3)
        await until(lambda: rows(connection, "held", 7))
        assert crowd.running["post"] <= 2
        crowd.may_end.set()
        await until(lambda: rows(connection, "attempt", 10))

    assert (crowd.most["post"] <= 2, len(crowd.order)) == (True, 10)
    found = await connection.fetch("select distinct attempt from attempt")
    assert [row["attempt"] for row in found] == [1], "to be held spends no attempt"
    assert await places(connection) == {}


async def rows(connection: Connection, table: str, count: int) -> bool:
    return bool(await connection.fetchval(f"select count(*) = $1 from {table}", count))  # noqa: S608


async def test_a_run_whose_key_decides_its_lane_counts_like_the_others(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    """An idempotency key lives in a lane of its own: the limit then looks into all of them."""
    send = limited(frozen_app, crowd, Limit(2))
    for number in range(10):
        await send.options(key=f"order-{number}").submit(number=number)
    await send.submit(number=11)
    await release(connection, clock)

    assert await places(connection) == {"held": 9, "ready": 2, "slot": 2}
    assert await connection.fetchval("select count(distinct lane) > 1 from held")


async def test_runs_of_a_schedule_are_under_the_limits_of_their_job(app: Mainspring, crowd: Crowd) -> None:
    limited(app, crowd, Limit(1))
    for number in range(4):
        await app.schedules.create(f"s{number}", "send", "every second")
    async with app.running(slots=20):
        await until(lambda: crowd.running.total() == 1)
        crowd.may_end.set()
        await until(lambda: len(crowd.order) >= 4)

    assert crowd.most["acme"] == 1


# ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_strict_order_is_the_order_of_acceptance_and_a_retry_keeps_its_place(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    done: list[tuple[int, int]] = []

    @frozen_app.job(limit=Limit(1, order="strict"), retry=RetryPolicy(first_delay=timedelta(hours=1)))
    async def post(context: Context, number: int) -> None:
        done.append((number, context.attempt))
        if number == 2 and context.attempt == 1:
            raise ValueError("not yet")

    for number in range(3):
        await post.options(priority=9 - number).submit(number=number)
        await clock.advance(0.001)
    await post.submit_many([{"number": number} for number in range(3, 6)])
    await run_until_idle(frozen_app)
    assert done == [(0, 1), (1, 1), (2, 1)], "those behind it wait for its next attempt"
    assert await places(connection) == {"held": 3, "later": 1, "slot": 1}
    await run_until_idle(frozen_app, travel=True)

    assert done == [(0, 1), (1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (5, 1)]
    assert await places(connection) == {}


async def test_without_strict_order_a_run_that_backs_off_frees_its_slot(
    frozen_app: Mainspring, connection: Connection
) -> None:
    done: list[int] = []

    @frozen_app.job(limit=Limit(1), retry=RetryPolicy(first_delay=timedelta(hours=1)))
    async def post(context: Context, number: int) -> None:
        if number == 0 and context.attempt == 1:
            raise ValueError("not yet")
        done.append(number)

    for number in range(3):
        await post.submit(number=number)
    await run_until_idle(frozen_app)
    assert (sorted(done), await places(connection)) == ([1, 2], {"later": 1})
    await run_until_idle(frozen_app, travel=True)

    assert (sorted(done), await places(connection)) == ([0, 1, 2], {})


@pytest.mark.parametrize("decision", ["requeue", "purge"])
async def test_a_dead_letter_halts_those_behind_it_until_somebody_decides(
    frozen_app: Mainspring, connection: Connection, decision: str
) -> None:
    done: list[int] = []
    limit = Limit(1, key="customer", order="strict", on_dead="halt")

    @frozen_app.job(limit=limit, retry=RetryPolicy(max_attempts=1))
    async def post(context: Context, customer: str, number: int) -> None:
        if (customer, number, context.fence) == ("acme", 0, 1):
            raise ValueError("broken")
        done.append(number)

    first = await post.submit(customer="acme", number=0)
    for number in (1, 2):
        await post.submit(customer="acme", number=number)
        await post.submit(customer="other", number=10 + number)
    await run_until_idle(frozen_app)
    assert (done, await places(connection)) == ([11, 12], {"held": 2, "dead": 1, "slot": 1})

    await getattr(frozen_app.runs, decision)(first.id)
    await run_until_idle(frozen_app)

    assert done[2:] == ([0, 1, 2] if decision == "requeue" else [1, 2])
    assert await places(connection) == {}


async def test_unless_told_to_halt_order_goes_on_behind_a_dead_letter(
    frozen_app: Mainspring, connection: Connection
) -> None:
    done: list[int] = []

    @frozen_app.job(limit=Limit(1, order="strict"), retry=RetryPolicy(max_attempts=1))
    async def post(number: int) -> None:
        if number == 0:
            raise ValueError("broken")
        done.append(number)

    for number in range(3):
        await post.submit(number=number)
    await run_until_idle(frozen_app)

    assert (done, await places(connection)) == ([1, 2], {"dead": 1})


# ── slots come back ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_lost_worker_s_slot_comes_back_with_its_run(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    for number in range(3):
        await send.submit(number=number)
    async with working(frozen_app) as worker:
        await until(lambda: crowd.running.total() == 1)
        await connection.execute("update worker set state = 'lost', ended_at = clock_now() where id = $1", worker.id)
        await Rescuer(lanes=LANES, clock=clock).step(connection)
        await release(connection, clock)

        assert await places(connection) == {"held": 2, "ready": 1, "slot": 1}, "nobody else took it meanwhile"
        crowd.may_end.set()
    await run_until_idle(frozen_app)

    assert await places(connection) == {}


async def test_a_run_that_is_given_back_keeps_its_slot(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    for number in range(3):
        await send.submit(number=number)
    async with working(frozen_app, grace=0.0):
        await until(lambda: crowd.running.total() == 1)
    await release(connection, clock)

    assert await places(connection) == {"held": 2, "ready": 1, "slot": 1}
    assert await connection.fetchval("select gates is not null from ready")


@pytest.mark.parametrize("place", ["ready", "held", "running"])
async def test_a_cancelled_run_gives_its_slot_to_the_next(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, place: str
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    handles = [await send.submit(number=number) for number in range(3)]
    await release(connection, clock)
    first = await connection.fetchval("select id from ready")
    if place == "running":
        async with working(frozen_app, poll_interval=0.01):
            await until(lambda: crowd.running.total() == 1)
            await frozen_app.runs.cancel(first)
            await until(lambda: len(crowd.order) >= 2)
            crowd.may_end.set()
    else:
        await frozen_app.runs.cancel(first if place == "ready" else next(h.id for h in handles if h.id != first))
        await release(connection, clock)
        assert await places(connection) == {"held": 1, "ready": 1, "slot": 1}
        crowd.may_end.set()
    await run_until_idle(frozen_app)

    assert await places(connection) == {}


async def test_a_run_that_expires_gives_its_slot_to_the_next(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    await send.options(max_age=60).submit(number=0)
    await release(connection, clock)
    await send.submit(number=1)
    await clock.advance(61)
    await Expirer(lanes=LANES).step(connection)
    await release(connection, clock)

    assert await places(connection) == {"ready": 1, "slot": 1}


async def test_a_run_that_finishes_itself_in_its_transaction_gives_its_slot_back(
    app: Mainspring, connection: Connection, url: str
) -> None:
    done: list[int] = []

    @app.job(delivery=Delivery.TRANSACTIONAL, limit=Limit(1), retry=AT_ONCE)
    async def pay(context: Context, number: int) -> None:
        own = await asyncpg.connect(url)
        async with own.transaction():
            await context.finish(own)
        await own.close()
        done.append(number)

    async with working(app, keeper=True):
        for handle in [await pay.submit(number=number) for number in range(3)]:
            await handle.result()
        await until(lambda: len(done) == 3)  # a result is there when the transaction is, and the handler goes on

    assert (sorted(done), await places(connection)) == ([0, 1, 2], {})


async def test_a_slot_that_no_run_can_hold_is_given_back_and_reported(
    frozen_app: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    crowd: Crowd,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There should never be one. The control: those that runs do hold, wherever they wait, stay."""
    reports: list[dict[str, Any]] = []
    monkeypatch.setattr(gatekeeper.log, "error", lambda *_, **fields: reports.append(fields), raising=False)
    send = limited(frozen_app, crowd, Limit(1, key="customer", order="strict"), retry=AT_ONCE)
    await send.submit(customer="ready")
    await send.submit(customer="leaked")
    await release(connection, clock)
    leaked = await connection.fetchval("select run_id from slot where gate like '%leaked'")
    await connection.execute("delete from ready where id = $1", leaked)
    keeper = Gatekeeper(lanes=LANES, clock=clock)
    await clock.advance(gatekeeper.RECOUNT_EVERY + 1)
    await keeper.step(connection)

    assert [each["run_id"] for each in reports] == [str(leaked)]
    assert await places(connection) == {"ready": 1, "slot": 1}


# ── rates ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_as_many_start_as_there_are_tokens_and_the_next_when_there_are_more(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(rate="2/s", burst=3, key="customer"))
    await send.submit_many([{"customer": customer} for customer in "aaaaaaaaab"])
    await release(connection, clock)
    assert await places(connection) == {"held": 6, "ready": 4}, "no slot is taken, as any number may run at once"

    await clock.advance(1)
    await release(connection, clock)
    assert await places(connection) == {"held": 4, "ready": 6}
    await clock.advance(60)
    await release(connection, clock)
    assert await places(connection) == {"held": 1, "ready": 9}, "it fills up to the burst, and no further"


async def test_a_rate_and_a_number_at_once_hold_together(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(2, rate="1/s", burst=1))
    await send.submit_many([{"number": number} for number in range(6)])
    for seconds, passed in ((0, 1), (1, 2), (1, 2)):
        await clock.advance(seconds)
        await release(connection, clock)
        assert (await places(connection))["slot"] == passed
    crowd.may_end.set()
    await run_until_idle(frozen_app, travel=True)

    assert (len(crowd.order), await places(connection)) == (6, {})


async def test_runs_start_at_their_rate_while_workers_work(
    app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    crowd.may_end.set()
    send = limited(app, crowd, Limit(rate="200/s", burst=5))
    async with working(app, keeper=True, slots=50):
        for handle in await send.submit_many([{"number": number} for number in range(60)]):
            await handle.result()
    found = await connection.fetch("select date_part('epoch', ready_at) as at from attempt order by 1")
    released = [row["at"] for row in found]
    windows = [sum(1 for at in released if began <= at < began + 0.1) for began in released]

    assert len(released) == 60
    assert max(windows) <= 0.15 * 200 + 5


async def test_a_run_that_waits_for_a_token_says_so(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(rate="30/minute"))
    await send.submit()
    await release(connection, clock)
    handles = []
    for number in range(3):
        handles.append(await send.submit(number=number))
        await clock.advance(0.001)
    await release(connection, clock)

    found = await handles[2].explain()

    assert (found.gate, found.ahead, found.is_estimate) == (Gate.RATE, 2, True)
    assert found.says == "at most 30/minute of job send may start; 2 come before it"
    # The third token of half a second each, but for what has come into the bucket besides the one of its burst.
    assert found.earliest_at == found.at + timedelta(seconds=6 - 0.05 - 0.003)


async def test_a_retry_needs_a_token_of_its_own(frozen_app: Mainspring, connection: Connection) -> None:
    starts: list[int] = []

    @frozen_app.job(limit=Limit(rate="1/s"), retry=AT_ONCE)
    async def post(context: Context, number: int) -> None:
        starts.append(number)
        if context.attempt == 1:
            raise ValueError("once more")

    await post.submit(number=0)
    await run_until_idle(frozen_app)
    assert starts == [0]
    await run_until_idle(frozen_app, travel=True)

    assert (starts, await places(connection)) == ([0, 0], {})


# ── live ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_limit_that_is_raised_or_removed_lets_the_next_pass(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    @frozen_app.job
    async def send(number: int) -> None:
        await crowd.join("send", number)

    await send.submit(number=-1)
    await run_until_idle_of(frozen_app, crowd)
    await frozen_app.limits.set(1, job="send", reason="slowly")
    await until(lambda: _gated(frozen_app, send))
    for number in range(5):
        await send.submit(number=number)
    await release(connection, clock)
    before = await places(connection)
    assert before["slot"] == 1

    await frozen_app.limits.set(3, job="send", reason="faster")
    await release(connection, clock)
    assert (await places(connection))["slot"] == 3

    await frozen_app.limits.remove(job="send", reason="as fast as it goes")
    await release(connection, clock)
    assert "held" not in await places(connection)
    crowd.may_end.set()
    await run_until_idle(frozen_app)
    assert "ready" not in await places(connection)


async def run_until_idle_of(app: Mainspring, crowd: Crowd) -> None:
    crowd.may_end.set()
    await run_until_idle(app)
    crowd.may_end.clear()


async def _gated(app: Mainspring, job: Job[..., None]) -> bool:
    """Whether whoever submits here knows of the limit."""
    books = (await app.services()).rule_books
    books._books.clear()
    return bool((await books.of(app.actor.tenant)).rules)


async def test_what_the_code_declares_takes_effect_once_and_somebody_s_decision_stays(url: str) -> None:
    async def deployed(limit: Limit | None) -> list[int | None]:
        async with Mainspring(url, submitted_by="deploy") as app:

            @app.job(limit=limit)
            async def send() -> None: ...

            await send.submit()
            return [each.most for each in await app.limits.list()]

    assert await deployed(Limit(3)) == [3]
    async with Mainspring(url, submitted_by="ada") as app:
        await app.limits.set(7, job="send", reason="more")
        (status,) = await app.limits.list()
        assert (status.is_declared, status.is_as_declared, status.changed_by) == (True, False, "ada")
    assert await deployed(Limit(3)) == [7], "the code says what it said before"
    assert await deployed(Limit(4)) == [4], "the code says something new"
    assert await deployed(Limit(3)) == [4], "an old process that starts again brings nothing back"
    assert await deployed(None) == []


async def test_a_run_that_is_changed_counts_under_its_new_key(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    handles = [await send.submit(customer=customer) for customer in ("a", "a", "b")]
    await until(lambda: rows(connection, "held", 1))
    waiting = await connection.fetchval("select id from held")
    await frozen_app.runs.change(waiting, arguments={"customer": "b", "number": 7})
    async with working(frozen_app, slots=5):
        await until(lambda: crowd.running.total() == 2)
        await until(lambda: rows(connection, "held", 1))
        crowd.may_end.set()
        await until(lambda: rows(connection, "attempt", 3))

    assert (crowd.most, len(crowd.order)) == (Counter({"a": 1, "b": 1}), len(handles))
    assert await places(connection) == {}


async def test_runs_for_later_wait_at_their_limit_when_they_are_due(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    for number in range(3):
        await send.options(delay=60).submit(number=number)
    assert await places(connection) == {"later": 3}
    await clock.advance(61)
    crowd.may_end.set()
    await run_until_idle(frozen_app)

    assert (crowd.most["acme"], len(crowd.order), await places(connection)) == (1, 3, {})


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def two(database: Database) -> AsyncIterator[tuple[Connection, Connection]]:
    connections = [await database.connect(f"releaser {number}") for number in range(2)]
    yield connections[0], connections[1]
    for each in connections:
        await each.close()


async def _release_at_once(
    app: Mainspring, crowd: Crowd, two: tuple[Connection, Connection], connection: Connection, patch: pytest.MonkeyPatch
) -> int:
    """One releases while another one has counted the same slots and not gone on. Answers how many passed."""
    send = limited(app, crowd, Limit(1))
    await send.submit_many([{"number": number} for number in range(5)])
    await until(lambda: rows(connection, "slot", 1))
    gate = await connection.fetchval("select gate from held limit 1")
    await connection.execute("delete from ready; delete from slot")
    has_counted, may_go_on = asyncio.Event(), asyncio.Event()
    count = admission._used

    async def count_and_wait(counting: Connection, *arguments: Any) -> admission.Used:
        used = await count(counting, *arguments)
        if counting is two[0]:
            has_counted.set()
            await may_go_on.wait()
        return used

    patch.setattr(admission, "_used", count_and_wait)
    first = asyncio.create_task(admission.admit(two[0], [gate], LANES))
    await has_counted.wait()
    second = asyncio.create_task(admission.admit(two[1], [gate], LANES))
    await until(lambda: second.done() or _is_waiting(connection))
    may_go_on.set()
    await asyncio.gather(first, second)
    return int(await connection.fetchval("select count(*) from ready"))


async def _is_waiting(connection: Connection) -> bool:
    return bool(await connection.fetchval(SOMEBODY_WAITS))


@pytest.mark.invariant(13)
async def test_two_who_release_at_one_gate_take_turns(
    frozen_app: Mainspring,
    crowd: Crowd,
    two: tuple[Connection, Connection],
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await _release_at_once(frozen_app, crowd, two, connection, monkeypatch) == 1


async def test_without_their_lock_they_would_exceed_the_limit(
    frozen_app: Mainspring,
    crowd: Crowd,
    two: tuple[Connection, Connection],
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control of the test above."""
    lock = load("limits/lock_gates")
    monkeypatch.setattr(
        admission, "load", lambda name: Statement(name, "select :lane::smallint") if load(name) is lock else load(name)
    )

    assert await _release_at_once(frozen_app, crowd, two, connection, monkeypatch) == 2


async def test_a_caller_s_open_transaction_keeps_nobody_waiting(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, url: str
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit(customer="warm-up")
    own = await asyncpg.connect(url)
    transaction = own.transaction()
    await transaction.start()
    await send.options(connection=own).submit(customer="a", number=1)
    await send.submit(customer="a", number=2)
    await release(connection, clock)
    assert (await places(connection))["ready"] == 2, "nobody waits for what may never be committed"
    await transaction.commit()
    await own.close()
    await release(connection, clock)

    assert await places(connection) == {"held": 1, "ready": 2, "slot": 2}


# ── seeing and refusing ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_says_which_limit_it_waits_for_and_who_holds_it(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    handles = []
    for number in range(3):
        handles.append(await send.submit(customer="Acme", number=number))
        await release(connection, clock)
        await clock.advance(1)

    found = await handles[2].explain()

    assert (found.gate, found.ahead, found.state) == (Gate.LIMIT, 1, "held")
    assert found.says == (
        f"at most 1 of job send may execute at once for customer Acme, and run {handles[0].id} holds the slot;"
        " 1 comes before it"
    )
    assert found.remedy == "mainspring limit show --job send --key customer"


async def test_the_broad_limit_is_named_behind_the_narrow_one(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, [Limit(2, key="customer"), Limit(3)])
    handles = [await send.submit(customer=customer) for customer in ("a", "b", "a", "a")]
    await release(connection, clock)

    found = await handles[3].explain()

    assert "at most 2 of job send may execute at once for customer a, and run" in found.says
    assert [(each.gate, each.remedy) for each in found.then] == [
        (Gate.LIMIT, "mainspring limit show --job send"),
        (Gate.NO_WORKER, "mainspring worker --app MODULE:APP --queues default"),
    ]
    assert "at most 3 of job send may execute at once, and run" in found.then[0].says


async def test_a_run_behind_a_dead_letter_that_halts_says_who_has_to_decide(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=1), limit=Limit(1, key="customer", order="strict", on_dead="halt"))
    async def charge(customer: str) -> None:
        raise ValueError(customer)

    dead = await charge.submit("a")
    await run_until_idle(frozen_app)
    waiting = await charge.submit("a")
    await (await frozen_app.services()).submitter.until_admitted()

    found = await waiting.explain()

    assert found.says == (
        f"at most 1 of job charge may execute at once for customer a, and run {dead.id}, which is a dead letter,"
        " holds the slot until it is requeued or purged"
    )
    assert (found.gate, found.remedy) == (Gate.LIMIT, f"mainspring dead-letter requeue {dead.id}")
    assert (found.as_soon_as, found.earliest_at) == (None, None)


async def test_a_limit_of_what_does_not_exist_is_not_looked_for(frozen_app: Mainspring, crowd: Crowd) -> None:
    await limited(frozen_app, crowd, Limit(1)).submit()
    with pytest.raises(JobNotFound):
        await frozen_app.limits.show(job="sned")
    with pytest.raises(QueueNotFound):
        await frozen_app.limits.remove(queue="mali")
    with pytest.raises(LimitNotFound):
        await frozen_app.limits.show(queue="default")


async def test_a_limit_shows_who_holds_what_and_who_waits(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    handles = [await send.submit(customer=customer) for customer in ("a", "b", "a", "a")]
    await release(connection, clock)

    status, gates = await frozen_app.limits.show(job="send", key="customer")

    assert (status.holding, status.waiting, status.counts_are_exact) == (2, 2, True)
    assert [(gate.value, len(gate.holders), gate.waiting) for gate in gates] == [("a", 1, 2), ("b", 1, 0)]
    assert {*gates[0].holders, *gates[1].holders} <= {handle.id for handle in handles}
    assert gates[0].first_waiting in {handle.id for handle in handles}


async def test_a_run_whose_arguments_lack_the_key_is_refused_and_nothing_is_accepted(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    with pytest.raises(InvalidInput) as refusal:
        await send.submit_many([{"customer": "a"}, {"customer": "y" * 300}])

    assert refusal.value.code == "limit-key-fails"
    assert await places(connection) == {}


async def test_of_many_runs_the_one_whose_arguments_lack_the_key_is_named(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    flow = frozen_app.flow("mail")
    for customer in ("a", "y" * 300):
        flow.add(send, customer)
    calls = [{"customer": "a"}, {"customer": "b"}, {"customer": "y" * 300}]

    for submission, which, field in (
        (send.submit_many(calls), "Item 2: ", {"item": 2}),
        (send.options(connection=connection).submit_many(calls), "Item 2: ", {"item": 2}),
        (flow.submit(), "Node 'send-2': ", {"node": "send-2"}),
        (send.submit("y" * 300), "", {}),
        (send.options(connection=connection).submit("y" * 300), "", {}),
    ):
        with pytest.raises(InvalidInput) as refusal:
            await submission
        assert refusal.value.code == "limit-key-fails"
        assert str(refusal.value).startswith(f"{which}The run is limited by customer")
        assert {"item", "node"} & refusal.value.fields.keys() == field.keys()
        assert field.items() <= refusal.value.fields.items()
    assert await places(connection) == {}


async def test_of_many_children_the_one_whose_arguments_lack_the_key_is_named(
    frozen_app: Mainspring, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))

    @frozen_app.job
    async def send_all() -> str:
        try:
            await send.options(child=True).submit_many([{"customer": "a"}, {"customer": "y" * 300}])
        except InvalidInput as error:
            return str(error)
        return ""

    crowd.may_end.set()
    await send.submit("a")  # from now on the limit is known
    handle = await send_all.submit()
    await run_until_idle(frozen_app)

    assert (await handle.result()).startswith("Item 1: The run is limited by customer")


async def test_limits_for_what_does_not_exist_are_refused(frozen_app: Mainspring, crowd: Crowd) -> None:
    await limited(frozen_app, crowd, Limit(1)).submit()
    acts: dict[type[Exception], Any] = {
        JobNotFound: lambda: frozen_app.limits.set(1, job="nobody"),
        QueueNotFound: lambda: frozen_app.limits.set(1, queue="nowhere"),
        LimitNotFound: lambda: frozen_app.limits.remove(queue="default"),
    }
    for error, act in acts.items():
        with pytest.raises(error):
            await act()
    wrong: dict[str, dict[str, Any]] = {
        "invalid-limit": {"most": 0, "job": "send"},
        "limit-of-nothing": {"job": "send"},
        "order-without-number": {"job": "send", "rate": "1/s", "order": "strict"},
        "invalid-rate": {"job": "send", "rate": "fast"},
        "limit-of-two": {"most": 1, "job": "send", "queue": "default"},
        "invalid-limit-key": {"most": 1, "job": "send", "key": "a()"},
    }
    for code, values in wrong.items():
        with pytest.raises(InvalidInput) as refusal:
            await frozen_app.limits.set(**values)
        assert refusal.value.code == code
    assert [each.most for each in await frozen_app.limits.list()] == [1]


async def test_limits_of_another_tenant_are_not_seen(frozen_app: Mainspring, connection: Connection) -> None:
    await frozen_app.limits.set(1)
    assert len(await limits.listed(connection, tenant_id=1)) == 1
    assert await limits.listed(connection, tenant_id=2) == []
