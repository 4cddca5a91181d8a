"""What the keeper removes after a stated time, what it leaves, and that nothing is counted twice or lost by it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring.clock import instant
from mainspring.keeper import pruner
from mainspring.keeper.pruner import EVERY, OPERATIONS_KEPT, STALE_KEPT, WORKERS_KEPT, Pruner
from mainspring.keeper.rescuer import Rescuer
from mainspring.model.filter import RunFilter
from mainspring.model.ids import lane_of, run_id_bytes
from mainspring.model.run import PRIORITIES
from mainspring.store import leases, queues, workers
from mainspring.store.statements import load

from .test_plans import Bench, kinds, rows_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock


LANES = 8
MOMENT = timedelta(microseconds=1)


@pytest.fixture
async def still(frozen_app: Mainspring, connection: Connection) -> Connection:
    """A connection to the database whose time stands still."""
    await frozen_app.services()
    return connection


async def prune(connection: Connection) -> float:
    return await Pruner(lanes=LANES).step(connection)


async def both_sides(connection: Connection, clock: FrozenClock, table: str, kept: timedelta) -> tuple[int, int]:
    """How many rows are left when exactly the stated time has passed, and a moment later."""
    left = []
    for pause in (kept, MOMENT):
        await clock.advance(pause)
        await prune(connection)
        left.append(await count(connection, table))
    return left[0], left[1]


async def count(connection: Connection, table: str) -> int:
    return int(await connection.fetchval(f"select count(*) from {table}"))  # noqa: S608  the tests write it


async def registered(connection: Connection) -> UUID:
    worker_id = uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="h",
        pid=1,
        queues=["default"],
        handlers=[],
        slots=1,
        lease_seconds=30.0,
        version="0",
    )
    return worker_id


async def stopped(connection: Connection) -> UUID:
    worker_id = await registered(connection)
    assert await workers.stop_if_live(connection, worker_id)
    return worker_id


async def claim(connection: Connection, run_id: UUID, worker_id: UUID) -> None:
    line = await connection.fetchval("select line_id from ready where id = $1", run_id)
    claimed = await leases.claim(
        connection,
        lane=lane_of(run_id),
        line=line,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=1,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert len(claimed) == 1


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_workers_go_a_week_after_they_ended(still: Connection, clock: FrozenClock) -> None:
    await stopped(still)
    assert await workers.lose_if_silent(still, await registered(still), None)

    assert await both_sides(still, clock, "worker", WORKERS_KEPT) == (2, 0)


async def test_a_worker_that_lives_stays_however_old_it_is(still: Connection, clock: FrozenClock) -> None:
    await registered(still)

    assert await both_sides(still, clock, "worker", 10 * WORKERS_KEPT) == (1, 1)


async def test_an_ended_worker_stays_until_its_leases_are_rescued(
    frozen_app: Mainspring, still: Connection, clock: FrozenClock
) -> None:
    @frozen_app.job
    async def work() -> None: ...

    worker_id, handle = await registered(still), await work.submit()
    await claim(still, handle.id, worker_id)
    await workers.lose_if_silent(still, worker_id, None)
    assert await both_sides(still, clock, "worker", WORKERS_KEPT) == (1, 1)

    await Rescuer(lanes=LANES, clock=clock).sweep(still)
    await prune(still)

    assert await count(still, "worker") == 0
    assert (await handle.find()).state == "ready"


async def test_what_a_worker_claims_after_its_row_went_is_rescued(
    frozen_app: Mainspring, still: Connection, clock: FrozenClock
) -> None:
    """Its claim began before it was declared lost, and was seen after its row had gone."""

    @frozen_app.job
    async def work() -> None: ...

    worker_id, handle = await registered_worker(still), await work.submit()
    await claim(still, handle.id, worker_id)
    await still.execute("delete from worker")

    await Rescuer(lanes=LANES, clock=clock).sweep(still)

    assert (await handle.find()).state == "ready"


async def test_a_live_workers_leases_are_not_rescued(
    frozen_app: Mainspring, still: Connection, clock: FrozenClock
) -> None:
    @frozen_app.job
    async def work() -> None: ...

    worker_id, handle = await registered(still), await work.submit()
    await claim(still, handle.id, worker_id)

    await Rescuer(lanes=LANES, clock=clock).sweep(still)

    assert (await handle.find()).state == "running"


# ── what workers did ────────────────────────────────────────────────────────────────────────────────────────────


async def finished(connection: Connection) -> int:
    return int(await connection.fetchval("select coalesce(sum(finished), 0) from worker_tally"))


async def test_a_worker_stays_until_what_it_did_is_part_of_the_sum(still: Connection, clock: FrozenClock) -> None:
    worker_id = await registered(still)
    await queues.tell(still, worker_id, {1: (10, 1.0, 0)})
    await workers.stop_if_live(still, worker_id)
    assert await both_sides(still, clock, "worker", WORKERS_KEPT) == (1, 1)

    await queues.tidy(still)
    await prune(still)

    assert (await count(still, "worker"), await finished(still)) == (0, 10)


@pytest.mark.parametrize("since", [timedelta(hours=2), WORKERS_KEPT + MOMENT], ids=["folded", "pruned"])
async def test_what_a_lost_worker_says_when_it_wakes_up_is_not_counted_again(
    still: Connection, clock: FrozenClock, since: timedelta
) -> None:
    worker_id = await registered(still)
    await queues.tell(still, worker_id, {1: (10, 1.0, 0)})
    await workers.lose_if_silent(still, worker_id, None)
    await clock.advance(since)
    await queues.tidy(still)
    await prune(still)

    await queues.tell(still, worker_id, {1: (12, 1.2, 0)})

    assert await finished(still) == 10


# ── stale completions and operations ────────────────────────────────────────────────────────────────────────────


async def record_stale(connection: Connection, runs: Sequence[UUID], lane: int = 3) -> None:
    await load("leases/record_stale").execute(
        connection,
        lane=lane,
        worker=uuid4(),
        runs=runs,
        fences=[1] * len(runs),
        leases=[uuid4()] * len(runs),
        outcomes=["succeeded"] * len(runs),
    )


def new_runs(clock: FrozenClock, number: int, lane: int = 3) -> list[UUID]:
    return [UUID(bytes=each) for each in run_id_bytes(number, lane, instant(clock))]


async def test_stale_completions_go_after_a_month_in_every_lane(still: Connection, clock: FrozenClock) -> None:
    runs = {lane: new_runs(clock, 2, lane) for lane in range(LANES)}
    await clock.advance(1)
    for lane in range(LANES):
        await record_stale(still, runs[lane], lane)

    assert await both_sides(still, clock, "stale", STALE_KEPT) == (16, 0)


async def test_a_new_stale_completion_of_an_old_run_stays_for_its_month(still: Connection, clock: FrozenClock) -> None:
    runs = new_runs(clock, 2)
    await clock.advance(10 * STALE_KEPT)
    await record_stale(still, runs)

    assert await both_sides(still, clock, "stale", STALE_KEPT) == (2, 0)


async def test_operations_go_three_months_after_they_ended_and_the_audit_stays(
    frozen_app: Mainspring, still: Connection, clock: FrozenClock
) -> None:
    operation = await frozen_app.operations.start("cancel", RunFilter(), reason="spring")
    async for _ in frozen_app.operations.work(operation.id):
        pass

    assert await both_sides(still, clock, "operation", OPERATIONS_KEPT) == (1, 0)
    assert await still.fetchval("select detail->>'reason' from audit where action = 'operation.start'") == "spring"


async def test_an_operation_that_was_cut_off_stays_for_whoever_resumes_it(
    frozen_app: Mainspring, still: Connection, clock: FrozenClock
) -> None:
    await frozen_app.operations.start("cancel", RunFilter(), reason="spring")

    assert await both_sides(still, clock, "operation", 10 * OPERATIONS_KEPT) == (1, 1)


# ── how it goes about it ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_batch_is_bounded_and_the_rest_comes_at_once(
    still: Connection, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "BATCH", 10)
    for _ in range(25):
        await stopped(still)
    await clock.advance(WORKERS_KEPT + MOMENT)

    steps = [(await prune(still), await count(still, "worker")) for _ in range(3)]

    assert steps == [(0.0, 15), (0.0, 5), (EVERY, 0)]


async def test_pruners_at_once_do_not_harm_each_other(
    database: Database, still: Connection, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "BATCH", 7)
    for _ in range(30):
        await stopped(still)
    await record_stale(still, new_runs(clock, 30))
    await clock.advance(2 * STALE_KEPT)
    others = [await database.connect("test") for _ in range(3)]

    async def prune_all(connection: Connection) -> None:
        while await prune(connection) < EVERY:
            pass

    await asyncio.gather(*(prune_all(each) for each in others))

    assert (await count(still, "worker"), await count(still, "stale")) == (0, 0)
    for each in others:
        await each.close()


@pytest.mark.parametrize("steps", ["plan, fill", "fill, analyse, plan"])
async def test_a_long_list_of_stale_completions_is_not_read_for_the_few_old_ones(
    database: Database, still: Connection, clock: FrozenClock, steps: str
) -> None:
    connection = await database.connect("test")
    bench = await Bench.set_up(connection)
    await record_stale(still, new_runs(clock, 5, 0), 0)
    await clock.advance(2 * STALE_KEPT)
    for step in steps.split(", "):
        match step:
            case "fill":
                await record_stale(still, new_runs(clock, 5_000, 0), 0)
            case "analyse":
                await still.execute("vacuum analyze stale")
            case _:
                await bench.plan_of(load("leases/prune_stale"))

    plan = await bench.plan_of(load("leases/prune_stale"))

    assert kinds(plan) == {"Index Scan"}
    assert rows_read(plan) == 5
    await connection.close()
