"""What becomes of the runs of a lost worker: by how they are delivered, and by how often that has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from mainspring.errors import RunFailed, RunLost
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import MOST_CRASHES
from mainspring.model.line import Delivery
from mainspring.model.run import PRIORITIES
from mainspring.store import jobs, leases, workers
from mainspring.testing.checker import check

if TYPE_CHECKING:
    import asyncpg

    from mainspring import Mainspring
    from mainspring.app.handle import Handle

    Connection = asyncpg.Connection[asyncpg.Record]


async def submitted(app: Mainspring, delivery: Delivery) -> Handle[None]:
    @app.job(delivery=delivery)
    async def work() -> None: ...

    return await work.submit()


async def crash(connection: Connection, handle: Handle[None]) -> workers.Rescued:
    """A worker claims the run and is lost."""
    worker_id = uuid4()
    run = await handle.find()
    lines = await jobs.lines(connection)
    (line,) = {number for line, number in lines.items() if line.delivery is run.delivery}
    await claim(connection, lane_of(handle.id), line, worker_id)
    return await workers.rescue_all(connection, 8, worker_id)


async def claim(connection: Connection, lane: int, line: int, worker_id: UUID) -> None:
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


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.TRANSACTIONAL])
async def test_a_run_that_may_start_again_goes_back_in_line(
    app: Mainspring, connection: Connection, delivery: Delivery
) -> None:
    handle = await submitted(app, delivery)

    assert await crash(connection, handle) == workers.Rescued(leases=1, rescued=1)

    run = await handle.find()
    assert (run.state, run.attempts_spent, run.fence) == ("ready", 0, 1)
    assert [(attempt.outcome, attempt.state) for attempt in run.attempts] == [("crashed", "ready")]


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
