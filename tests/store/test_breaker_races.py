"""Circuit breakers while several act at once: one opening, one probe at a time, and no failures of before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import SOMEBODY_WAITS, until

from mainspring import Breaker, BreakerState, Mainspring, RetryPolicy
from mainspring.keeper.rescuer import Rescuer
from mainspring.model.breaker import Counts
from mainspring.store import admission, breakers, openings
from mainspring.store.breakers import Gauge, Who
from mainspring.store.statements import load
from mainspring.testing import run_until_idle

from .test_breakers import Target, calling, fail, opening, release, status
from .test_limits import LANES, places
from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

ALICE, BOB = Who(1, "worker alice"), Who(1, "worker bob")


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
async def two(database: Database) -> AsyncIterator[tuple[Connection, Connection]]:
    first, second = await database.connect("first"), await database.connect("second")
    yield first, second
    await first.close()
    await second.close()


async def gauge_of(connection: Connection, app: Mainspring, target: Target, breaker: Breaker) -> Gauge:
    await calling(app, target, breaker).submit()
    (rule,) = await openings.rules(connection, tenant_id=1)
    return Gauge(rule, "")


async def trip(connection: Connection, gauge: Gauge, who: Who) -> bool:
    return bool(await breakers.open_tripped(connection, LANES, gauge.rule, {gauge.value: "away"}, who))


async def openings_audited(connection: Connection) -> int:
    return int(await connection.fetchval("select count(*) from audit where action = 'breaker.open'"))


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_two_workers_that_cross_the_threshold_at_once_open_it_once(
    app: Mainspring, connection: Connection, two: tuple[Connection, Connection], target: Target
) -> None:
    gauge = await gauge_of(connection, app, target, Breaker(5))
    for each in two:
        await breakers.tally(each, LANES, {gauge: Counts(3, 0)})
    opened = await asyncio.gather(
        trip(two[0], gauge, ALICE),
        trip(two[1], gauge, BOB),
    )

    assert sorted(opened) == [False, True]
    assert await openings_audited(connection) == 1
    assert (await opening(app)).failures == 6


async def test_whoever_writes_last_sees_what_both_have_counted(
    app: Mainspring, connection: Connection, two: tuple[Connection, Connection], target: Target
) -> None:
    """The control is in it: who looked before its COMMIT would miss what the other has not committed."""
    gauge = await gauge_of(connection, app, target, Breaker(5))
    frames = [each.transaction() for each in two]
    for frame in frames:
        await frame.start()
    await breakers.tally(two[0], LANES, {gauge: Counts(3, 0)})
    await two[1].execute(  # in another slice, so that neither waits for the other
        "insert into breaker_tally values ($1, $2, '', date_part('epoch', clock_now()) - 5, 4e9, 0, 3)",
        gauge.home(LANES),
        gauge.rule.id,
    )
    before = [(await breakers.totals(each, LANES, [gauge]))[gauge].failures for each in two]
    for frame in frames:
        await frame.commit()
    after = [(await breakers.totals(each, LANES, [gauge]))[gauge].failures for each in two]

    assert (before, after) == ([3, 3], [6, 6])


async def test_who_was_about_to_open_it_when_it_opened_and_closed_does_not(
    app: Mainspring, connection: Connection, two: tuple[Connection, Connection], target: Target
) -> None:
    """A worker that paused between its look and its write comes with failures of before."""
    gauge = await gauge_of(connection, app, target, Breaker(3))
    await breakers.tally(two[0], LANES, {gauge: Counts(3, 0)})
    assert gauge.rule.breaker.trips(*(await breakers.totals(two[0], LANES, [gauge]))[gauge])
    assert await trip(two[1], gauge, BOB)
    (found,) = await openings.of_tenant(connection, tenant_id=1)
    assert await breakers.close_after_success(two[1], LANES, [found.id], BOB) == 1

    assert not await trip(two[0], gauge, ALICE)
    assert (await status(app)).state is BreakerState.CLOSED


async def test_nor_when_it_was_changed_or_removed_meanwhile(
    app: Mainspring, connection: Connection, target: Target
) -> None:
    gauge = await gauge_of(connection, app, target, Breaker(3))
    await breakers.tally(connection, LANES, {gauge: Counts(3, 0)})
    await app.breakers.set("send", 100)
    assert not await trip(connection, gauge, ALICE)
    await app.breakers.remove("send")
    assert not await trip(connection, gauge, ALICE)

    assert await connection.fetchval("select count(*) from breaker_opening") == 0


async def test_a_probe_of_an_earlier_opening_closes_no_later_one(
    app: Mainspring, connection: Connection, target: Target
) -> None:
    gauge = await gauge_of(connection, app, target, Breaker(1))
    await breakers.tally(connection, LANES, {gauge: Counts(1, 0)})
    await trip(connection, gauge, ALICE)
    (earlier,) = await openings.of_tenant(connection, tenant_id=1)
    await app.breakers.close("send")
    await app.breakers.open("send")

    assert await breakers.close_after_success(connection, LANES, [earlier.id], BOB) == 0
    assert (await status(app)).state is BreakerState.OPEN


# ── probes ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def _probe_at_once(
    app: Mainspring,
    clock: FrozenClock,
    target: Target,
    two: tuple[Connection, Connection],
    connection: Connection,
    patch: pytest.MonkeyPatch,
) -> int:
    """One releases a probe while another one has counted the same slots and not gone on. Answers how many passed."""
    send = calling(app, target, Breaker(1, probe_after=30))
    await fail(app, send, target, 1)
    await send.submit_many([{"number": number} for number in range(5)])
    await run_until_idle(app)
    await clock.advance(30)
    gate = await connection.fetchval("select gate from held limit 1")
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


async def test_two_who_release_at_an_open_breaker_let_one_probe_out(
    frozen_app: Mainspring,
    clock: FrozenClock,
    target: Target,
    two: tuple[Connection, Connection],
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await _probe_at_once(frozen_app, clock, target, two, connection, monkeypatch) == 1


async def test_without_the_lock_of_the_gate_two_probes_would_go_out(
    frozen_app: Mainspring,
    clock: FrozenClock,
    target: Target,
    two: tuple[Connection, Connection],
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control."""
    lock = load("limits/lock_gates")
    monkeypatch.setattr(lock, "text", lock.text.replace("for no key update skip locked", ""))

    assert await _probe_at_once(frozen_app, clock, target, two, connection, monkeypatch) == 2


async def test_a_lost_worker_s_probe_goes_on_with_its_run_and_no_other_goes_out(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    may_end, calls = asyncio.Event(), []

    @frozen_app.job(name="send", breaker=Breaker(1, probe_after=30))
    async def send(number: int) -> None:
        calls.append(number)
        await may_end.wait()

    await send.submit_many([{"number": number} for number in range(3)])
    await frozen_app.breakers.open("send")
    await run_until_idle(frozen_app)
    assert calls == []
    async with working(frozen_app) as worker:
        await clock.advance(30)
        await release(connection, clock)
        await until(lambda: calls)
        await connection.execute("update worker set state = 'lost', ended_at = clock_now() where id = $1", worker.id)
        await Rescuer(lanes=LANES, clock=clock).step(connection)
        await clock.advance(3600)
        await release(connection, clock)
        assert await places(connection) == {"held": 2, "ready": 1, "slot": 1}
        assert (await opening(frozen_app)).state is BreakerState.HALF_OPEN
        may_end.set()
    await run_until_idle(frozen_app)

    assert await places(connection) == {}
    assert (await status(frozen_app)).state is BreakerState.CLOSED


@pytest.mark.parametrize("puts_off", [True, False])
async def test_the_next_probe_waits_from_the_failure_of_the_last_however_long_that_took(
    frozen_app: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    puts_off: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: unless it is put off before the slot is free, the next one goes out at once."""
    may_fail, calls = asyncio.Event(), []

    @frozen_app.job(
        name="send", breaker=Breaker(1, probe_after=30, max_probe_after=30), retry=RetryPolicy(max_attempts=1)
    )
    async def send(number: int) -> None:
        calls.append(number)
        await may_fail.wait()
        raise ConnectionError("away")

    if not puts_off:

        async def nothing(*_: object) -> None: ...

        monkeypatch.setattr(openings, "put_off", nothing)
    await send.submit_many([{"number": number} for number in range(3)])
    await frozen_app.breakers.open("send")
    await run_until_idle(frozen_app)
    async with working(frozen_app) as worker:
        await clock.advance(30)
        await release(connection, clock)
        await until(lambda: calls)
        await clock.advance(300)
        may_fail.set()
        await until(lambda: connection.fetchval("select count(*) = 1 from dead"))
        await worker.parts.admitter.until_idle()
        await release(connection, clock)

        told = (await opening(frozen_app)).probes
    assert told == (1 if puts_off else 2)
