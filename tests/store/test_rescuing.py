"""What becomes of the runs of a lost worker: by how they are delivered, and by how often that has happened."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs
from tests.checker import check
from tests.registering import registered_before, registered_worker
from tests.unit.hands import HandClock

from mainspring.errors import DatabaseBusy, RunFailed, RunLost
from mainspring.keeper.rescuer import READS_PER_LEASE, Rescuer
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import MOST_CRASHES
from mainspring.model.line import Delivery
from mainspring.model.run import PRIORITIES
from mainspring.store import jobs, leases, workers
from mainspring.store.run_log import LINES_PER_SPAN, SPAN_SECONDS

from .callers import until_someone_waits_for_a_lock

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock


async def submitted(app: Mainspring, delivery: Delivery) -> Handle[None]:
    @app.job(delivery=delivery)
    async def work() -> None: ...

    return await work.submit()


LEASE = 30.0


async def crash(connection: Connection, handle: Handle[None]) -> workers.Rescued:
    """A worker claims the run and is lost."""
    worker_id = uuid4()
    run = await handle.find()
    lines = await jobs.lines(connection, tenant_id=DEFAULT_TENANT)
    (line,) = {number for line, number in lines.items() if line.delivery is run.delivery}
    await claim(connection, lane_of(handle.id), line, worker_id)
    return await workers.rescue_all(connection, 8, worker_id)


async def claim(connection: Connection, lane: int, line: int, worker_id: UUID) -> None:
    await registered_worker(connection, worker_id)
    await claim_one(connection, lane, line, worker_id)


async def claim_one(connection: Connection, lane: int, line: int, worker_id: UUID) -> None:
    rows = await leases.claim(
        connection,
        lane=lane,
        line=line,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=1,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert len(rows) == 1


@pytest.mark.invariant(5)
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.TRANSACTIONAL])
async def test_a_run_that_may_start_again_goes_back_in_line(
    app: Mainspring, connection: Connection, delivery: Delivery
) -> None:
    handle = await submitted(app, delivery)

    assert await crash(connection, handle) == workers.Rescued(leases=1, rescued=1)

    run = await handle.find()
    assert (run.state, run.attempts_spent, run.fence) == ("ready", 0, 1)
    assert [(attempt.outcome, attempt.state) for attempt in run.attempts] == [("crashed", "ready")]


@pytest.mark.invariant(5)
async def test_a_run_delivered_at_most_once_is_lost(app: Mainspring, connection: Connection) -> None:
    handle = await submitted(app, Delivery.AT_MOST_ONCE)

    assert await crash(connection, handle) == workers.Rescued(leases=1, lost=1)

    run = await handle.find()
    assert (run.state, run.payload) == ("lost", {})
    assert [(attempt.outcome, attempt.state) for attempt in run.attempts] == [("crashed", "lost")]
    with pytest.raises(RunLost, match="delivered at most once, it does not start again"):
        await handle.result(20)
    report = await check(connection, [handle.id], must_be_drained=True)
    assert report.violations == [], report


async def test_one_that_was_asked_to_stop_is_cancelled_and_not_lost(app: Mainspring, connection: Connection) -> None:
    handle = await submitted(app, Delivery.AT_MOST_ONCE)
    worker_id = uuid4()
    line = await connection.fetchval("select line_id from ready")
    await claim(connection, lane_of(handle.id), line, worker_id)
    await handle.cancel()

    assert await workers.rescue_all(connection, 8, worker_id) == workers.Rescued(leases=1, cancelled=1)
    assert (await handle.find()).state == "cancelled"


async def test_a_run_that_is_around_at_too_many_crashes_becomes_a_dead_letter(
    app: Mainspring, connection: Connection
) -> None:
    handle = await submitted(app, Delivery.AT_LEAST_ONCE)
    for _ in range(MOST_CRASHES - 1):
        assert (await crash(connection, handle)).rescued == 1

    assert await crash(connection, handle) == workers.Rescued(leases=1, buried=1)

    run = await handle.find()
    assert (run.state, run.payload, run.attempts_spent) == ("dead", {}, 0)
    assert [attempt.state for attempt in run.attempts] == ["ready"] * (MOST_CRASHES - 1) + ["dead"]
    assert run.attempts[-1].error == {
        "code": "crashed-too-often",
        "message": f"Its worker was lost {MOST_CRASHES} times while it ran.",
    }
    with pytest.raises(RunFailed, match="lost 10 times"):
        await handle.result(20)
    report = await check(connection, [handle.id])
    assert report.violations == [], report


# ── without blame ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(5)
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
async def test_what_a_worker_left_behind_that_ended_by_itself_is_no_crash(
    app: Mainspring, connection: Connection, delivery: Delivery
) -> None:
    """It could not settle, for a fault of the database's: nobody is blamed for that."""
    handle = await submitted(app, delivery)
    worker_id = uuid4()
    line = await connection.fetchval("select line_id from ready")
    await claim(connection, lane_of(handle.id), line, worker_id)
    assert await workers.stop_if_live(connection, worker_id)
    assert await workers.ended_with_leases(connection, 8) == [worker_id]
    await workers.rescue_all(connection, 8, worker_id)

    run = await handle.find()
    state = "ready" if delivery is Delivery.AT_LEAST_ONCE else "lost"
    assert [(attempt.outcome, attempt.state) for attempt in run.attempts] == [("interrupted", state)]
    assert run.attempts[0].error is not None
    assert run.attempts[0].error["code"] == "worker-gave-up"
    assert await connection.fetchval("select coalesce(sum(crashes), 0) from ready") == 0
    report = await check(connection, [handle.id])
    assert report.violations == [], report


# ── by a stepped clock ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(6)
@pytest.mark.parametrize("step", [timedelta(days=1), -timedelta(days=1)])
async def test_a_clock_that_steps_makes_nobody_look_silent_for_longer_or_shorter(
    connection: Connection, clock: FrozenClock, step: timedelta
) -> None:
    """The database's clock jumps at each look; the rescuer's own says when a lease time has passed."""
    await clock.freeze(connection)
    (beating, silent), hand = [await registered_worker(connection) for _ in range(2)], HandClock()
    await connection.execute("update worker set lost_after = $1 where lost_after is not null", LEASE)
    rescuer = Rescuer(lanes=8, clock=hand)
    for _ in range(READS_PER_LEASE):
        hand.now += LEASE / READS_PER_LEASE
        await clock.set(clock.at + step)
        assert beating in await workers.send_heartbeats(connection, [beating])
        await rescuer.step(connection)
    assert await connection.fetchval("select count(*) from worker where state = 'live'") == 2
    hand.now += LEASE / READS_PER_LEASE
    await workers.send_heartbeats(connection, [beating])
    await rescuer.step(connection)

    assert await connection.fetchval("select id from worker where state = 'lost'") == silent
    assert await connection.fetchval("select id from worker where state = 'live'") == beating


# ── behind a lock ───────────────────────────────────────────────────────────────────────────────────────────────


async def silent_for_long(rescuer: Rescuer, connection: Connection, clock: HandClock) -> None:
    """The rescuer has seen the same beat as often as it takes, but for one look."""
    for _ in range(READS_PER_LEASE):
        clock.now += LEASE / READS_PER_LEASE
        await rescuer.step(connection)
    clock.now += LEASE / READS_PER_LEASE


@pytest.mark.parametrize("table", ["worker_heartbeat", "worker"])
async def test_a_lock_that_keeps_beats_back_makes_silence_count_for_nothing(
    connection: Connection, database: Database, table: str
) -> None:
    """When it lets go, beats come first: whoever judges does not wait in line with them, and begins anew. Workers of
    programs before migration 21 beat in their rows."""
    is_of_now, clock = table == "worker_heartbeat", HandClock()
    worker_id = await (registered_worker(connection) if is_of_now else registered_before(connection, LEASE))
    await connection.execute("update worker set lost_after = $1 where lost_after is not null", LEASE)
    rescuer = Rescuer(lanes=8, clock=clock)
    await silent_for_long(rescuer, connection, clock)
    holder = await database.connect("holder")
    async with holder.transaction():
        await holder.execute(f"lock table {table} in share mode")
        with pytest.raises(DatabaseBusy):
            await rescuer.step(connection)
        rescuer.forget()  # as its keeper does
    await holder.close()
    await rescuer.step(connection)

    assert await connection.fetchval("select state from worker where id = $1", worker_id) == "live"


async def test_without_that_lock_the_same_silence_loses_the_worker(connection: Connection) -> None:
    """The control."""
    worker_id, clock = await registered_worker(connection), HandClock()
    await connection.execute("update worker set lost_after = $1 where lost_after is not null", LEASE)
    rescuer = Rescuer(lanes=8, clock=clock)
    await silent_for_long(rescuer, connection, clock)
    await rescuer.step(connection)

    assert await connection.fetchval("select state from worker where id = $1", worker_id) == "lost"


async def test_declaring_a_worker_lost_does_not_wait_behind_a_lock_on_its_row(
    connection: Connection, database: Database
) -> None:
    worker_id = await registered_worker(connection)
    holder = await database.connect("holder")
    async with holder.transaction():
        await holder.execute("select from worker for update")
        with pytest.raises(DatabaseBusy):
            await workers.lose_if_silent(connection, worker_id, 0)
    await holder.close()

    assert await workers.lose_if_silent(connection, worker_id, 0)


async def test_a_worker_that_beat_since_it_was_looked_at_is_not_lost(connection: Connection) -> None:
    worker_id = await registered_worker(connection)
    await workers.send_heartbeats(connection, [worker_id])

    assert not await workers.lose_if_silent(connection, worker_id, 0)
    assert await workers.lose_if_silent(connection, worker_id, 1)
    assert await workers.send_heartbeats(connection, [worker_id]) == {}


async def test_a_worker_that_waits_for_the_one_who_declares_it_lost_hears_of_it(
    connection: Connection, database: Database
) -> None:
    """Its heartbeat comes too late: it must not take itself for alive."""
    worker_id = await registered_worker(connection)
    holder = await database.connect("holder")
    async with holder.transaction():
        await holder.execute("select from worker_heartbeat for update")
        beating = asyncio.create_task(workers.send_heartbeats(connection, [worker_id]))
        await until_someone_waits_for_a_lock(holder)
        await holder.execute("update worker set state = 'lost', ended_at = clock_now()")
    await holder.close()

    assert await beating == {}


# ── programs before and after migration 21 ──────────────────────────────────────────────────────────────────────

BEAT_OF_BEFORE = "update worker set beat = beat + 1 where id = $1"
PULSES_OF_BEFORE = "select id, beat, lease_seconds from worker where state = 'live'"


async def test_a_worker_of_before_is_judged_by_the_heartbeats_in_its_row(connection: Connection) -> None:
    beating, silent = [await registered_before(connection, LEASE) for _ in range(2)]
    clock = HandClock()
    rescuer = Rescuer(lanes=8, clock=clock)
    for _ in range(READS_PER_LEASE + 2):
        clock.now += LEASE / READS_PER_LEASE
        await connection.execute(BEAT_OF_BEFORE, beating)
        await rescuer.step(connection)

    assert await connection.fetchval("select id from worker where state = 'live'") == beating
    assert await connection.fetchval("select id from worker where state = 'lost'") == silent


async def test_a_supervisor_of_before_may_beat_for_a_worker_of_now(connection: Connection) -> None:
    """It started the worker after the package was upgraded: the new process registers itself."""
    worker_id, clock = await registered_worker(connection), HandClock()
    await connection.execute("update worker set lost_after = $1 where lost_after is not null", LEASE)
    rescuer = Rescuer(lanes=8, clock=clock)
    for _ in range(READS_PER_LEASE + 2):
        clock.now += LEASE / READS_PER_LEASE
        await connection.execute(BEAT_OF_BEFORE, worker_id)
        await rescuer.step(connection)
    assert await connection.fetchval("select state from worker") == "live"
    await silent_for_long(rescuer, connection, clock)
    await rescuer.step(connection)

    assert await connection.fetchval("select state from worker") == "lost"


async def test_a_rescuer_of_before_never_loses_a_worker_of_now(connection: Connection) -> None:
    """It sees a count that does not move, and the lease time of the row: it has no end."""
    await registered_worker(connection)
    clock = HandClock()
    rescuer = Rescuer(lanes=8, clock=clock)
    year = 365 * 86_400
    for _ in range(1_000):
        clock.now += year / 1_000
        pulses = [workers.Pulse(*row) for row in await connection.fetch(PULSES_OF_BEFORE)]
        assert rescuer.suspects(pulses) == []


# ── what the log says ───────────────────────────────────────────────────────────────────────────────────────────


async def swept(connection: Connection, worker_id: UUID, rescuer: Rescuer) -> list[Any]:
    """What is written about runs when this worker is lost and its runs are rescued."""
    assert await workers.lose_if_silent(connection, worker_id, None)
    with capture_logs() as lines:
        await rescuer.sweep(connection)
    return [line for line in lines if "run" in line]


async def test_each_run_that_is_lost_with_its_worker_has_a_line(app: Mainspring, connection: Connection) -> None:
    handle, worker_id = await submitted(app, Delivery.AT_MOST_ONCE), uuid4()
    await claim(connection, lane_of(handle.id), await connection.fetchval("select line_id from ready"), worker_id)

    assert await swept(connection, worker_id, Rescuer(lanes=8, clock=HandClock())) == [
        {
            "event": "a run is lost",
            "log_level": "error",
            "job": "work",
            "run": str(handle.id),
            "attempt": 1,
            "outcome": "crashed",
            "error": "The worker sent no more heartbeats; delivered at most once, it does not start again.",
            "attempts_left": 0,
        }
    ]


async def test_each_run_that_is_dead_by_its_crashes_has_a_line_and_those_before_have_none(
    app: Mainspring, connection: Connection
) -> None:
    handle, written = await submitted(app, Delivery.AT_LEAST_ONCE), []
    line = await connection.fetchval("select line_id from ready")
    for _ in range(MOST_CRASHES):
        worker_id = uuid4()
        await claim(connection, lane_of(handle.id), line, worker_id)
        written += await swept(connection, worker_id, Rescuer(lanes=8, clock=HandClock()))

    assert [(line["event"], line["run"], line["outcome"]) for line in written] == [
        ("a run is dead", str(handle.id), "crashed")
    ]
    assert written[0]["error"] == f"Its worker was lost {MOST_CRASHES} times while it ran."


async def test_of_many_runs_that_are_lost_at_once_some_have_a_line_and_the_others_are_counted(
    app: Mainspring, connection: Connection
) -> None:
    @app.job(delivery=Delivery.AT_MOST_ONCE)
    async def work() -> None: ...

    handles, clock, worker_id = await work.submit_many([{}] * (LINES_PER_SPAN + 3)), HandClock(), uuid4()
    rescuer = Rescuer(lanes=8, clock=clock)
    line = await connection.fetchval("select line_id from ready limit 1")
    await registered_worker(connection, worker_id)
    for handle in handles:
        await claim_one(connection, lane_of(handle.id), line, worker_id)
    assert len(await swept(connection, worker_id, rescuer)) == LINES_PER_SPAN
    clock.now += SPAN_SECONDS
    with capture_logs() as lines:
        await rescuer.step(connection)

    assert [(line["event"], line["job"], line["more"]) for line in lines] == [
        ("a run is lost, and more like it", "work", 3)
    ]
