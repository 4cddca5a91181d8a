"""Marks of queues: what becomes due comes in line at the pace of the workers, and nobody waits for ever."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.errors import InvalidInput, QueueNotFound
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.keeper.promoter import Promoter
from mainspring.model.admission import Gate
from mainspring.model.capacity import DEFAULT_HIGH_MARK, LinePressure, PressureLevel, pressure_of
from mainspring.model.ids import lane_of
from mainspring.testing import run_until_idle

from .scheduling import Firing
from .test_limits import places

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

LANES = 8
HIGH, LOW = 40, 16  # of which each lane has an eighth


@pytest.fixture
async def send(frozen_app: Mainspring) -> Job[[int], None]:
    @frozen_app.job(name="send")
    async def handler(number: int = 0) -> None: ...

    await handler.submit()
    await run_until_idle(frozen_app)
    await frozen_app.queues.set_marks("default", high=HIGH, low=LOW, reason="a small machine")
    return handler


async def promote(connection: Connection, clock: FrozenClock) -> None:
    promoter = Promoter(lanes=LANES, clock=clock)
    while await promoter.step(connection) == 0.0:
        pass


async def look(connection: Connection, clock: FrozenClock) -> None:
    await Gatekeeper(lanes=LANES, clock=clock).step(connection)


async def put_off(send: Any, clock: FrozenClock, count: int, seconds: float = 60) -> None:
    await send.options(delay=timedelta(seconds=seconds)).submit_many([{"number": number} for number in range(count)])


async def in_line(connection: Connection) -> list[int]:
    """How many are in line, in each lane that has some."""
    rows = await connection.fetch("select count(*) as runs from ready group by lane order by lane")
    return [row["runs"] for row in rows]


async def test_what_becomes_due_waits_where_the_line_has_reached_its_high_mark(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)  # a batch is in one lane
    await clock.advance(60)
    await promote(connection, clock)
    assert (await places(connection)) == {"ready": 30}  # it was empty when the first batch came

    await put_off(send, clock, 30)
    await connection.execute("update later set lane = (select min(lane) from ready)")
    await clock.advance(60)
    await promote(connection, clock)

    assert (await places(connection)) == {"ready": 30, "held": 30}


async def test_what_waits_comes_in_line_again_at_the_low_mark_up_to_the_high_one(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)
    await clock.advance(60)
    await promote(connection, clock)
    await put_off(send, clock, 30)
    await connection.execute("update later set lane = (select min(lane) from ready)")
    await clock.advance(60)
    await promote(connection, clock)
    await look(connection, clock)
    assert await in_line(connection) == [30]  # beyond the low mark

    await connection.execute("delete from ready where id not in (select id from ready order by rank desc limit 2)")
    await look(connection, clock)

    assert await in_line(connection) == [HIGH // LANES]
    assert (await places(connection))["held"] == 27


async def test_who_has_waited_longest_is_not_overtaken_for_ever(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    """Others submit for now, and keep the line full: whoever was due before the first in line follows."""
    await put_off(send, clock, 30)
    await clock.advance(60)
    await promote(connection, clock)
    await put_off(send, clock, 5)
    await connection.execute("update later set lane = (select min(lane) from ready)")
    await clock.advance(60)
    await promote(connection, clock)
    await connection.execute("update ready set rank = rank + 600 * 1000000")  # as if others had come after it
    await clock.advance(600)
    await look(connection, clock)

    assert (await places(connection)) == {"ready": 35}
    ranks = await connection.fetch("select rank from ready order by rank limit 6")
    assert ranks[4]["rank"] < ranks[5]["rank"]  # in the places that they would have had


async def test_what_is_submitted_for_now_comes_in_line_whatever_the_marks(
    send: Job[[int], None], connection: Connection
) -> None:
    await send.submit_many([{"number": number} for number in range(100)])
    assert (await places(connection)) == {"ready": 100}


async def test_everything_is_executed_in_the_end(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    for _ in range(3):
        await put_off(send, clock, 50)
    await clock.advance(60)
    await run_until_idle(frozen_app)

    assert (await places(connection)) == {}
    assert await connection.fetchval("select count(*) from attempt where state = 'succeeded'") == 151


async def test_runs_of_schedules_wait_in_later_where_the_line_is_full(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    await frozen_app.schedules.create("nightly", "send", "every 10 minutes")
    firing = Firing(connection, clock)
    await clock.advance(600)
    assert await firing.fire() == 1
    assert await places(connection) == {"ready": 1}

    await fill_lane_of(connection, await connection.fetchval("select id from ready"))
    await clock.advance(600)
    assert await firing.fire(2.0) == 1
    assert (await places(connection))["later"] == 1

    await promote(connection, clock)
    assert (await places(connection)) == {"ready": HIGH, "held": 1}
    assert await connection.fetchval("select reason from held") == "backpressure"


async def fill_lane_of(connection: Connection, run_id: UUID) -> None:
    """Let as many be in line as the mark says, in the lane of this run."""
    columns = "tenant_id, job_id, job_version, line_id, priority, payload"
    await connection.execute("delete from ready")
    await connection.execute(
        f"insert into ready (lane, id, {columns}) select $1, gen_random_uuid(), 1, job.id, 1, line.id, 5, '{{}}'"  # noqa: S608
        " from job, line, generate_series(1, $2)",
        lane_of(run_id),
        HIGH,
    )


async def test_explaining_says_that_the_line_is_full(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    handle = await send.options(delay=timedelta(seconds=60)).submit(1)
    await fill_lane_of(connection, handle.id)
    await clock.advance(60)
    await promote(connection, clock)
    found = await frozen_app.runs.explain(handle.id)

    assert (found.gate, found.remedy) == (Gate.BACKPRESSURE, "mainspring queue pressure default")
    assert found.says == (
        "queue default has as many runs in line as its high mark says; it follows when workers have taken some"
    )


async def test_producers_are_told_how_much_there_is(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection
) -> None:
    assert (await frozen_app.queues.pressure("default")).level is PressureLevel.LOW
    await send.submit_many([{"number": number} for number in range(20)])
    assert (await frozen_app.queues.pressure("default")).level is PressureLevel.RISING
    await send.submit_many([{"number": number} for number in range(20)])
    found = await frozen_app.queues.pressure("default")
    assert (found.level, found.depth, found.utilization) == (PressureLevel.HIGH, 40, 1.0)
    assert (found.high_mark, found.low_mark) == (HIGH, LOW)


async def test_marks_are_audited_and_can_be_taken_back(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection
) -> None:
    await frozen_app.queues.set_marks("default", reason="a large machine")
    assert (await frozen_app.queues.pressure("default")).high_mark == DEFAULT_HIGH_MARK
    rows = await connection.fetch(
        "select detail ->> 'reason' as reason from audit where action = 'queue.marks' order by at"
    )
    assert [row["reason"] for row in rows] == ["a small machine", "a large machine"]


async def test_marks_that_make_no_sense_are_refused(send: Job[[int], None], frozen_app: Mainspring) -> None:
    wrong: list[dict[str, Any]] = [{"high": 0}, {"high": -1}, {"high": 5, "low": 5}, {"low": 30_000}, {"high": True}]
    for values in wrong:
        with pytest.raises(InvalidInput) as refusal:
            await frozen_app.queues.set_marks("default", **values)
        assert refusal.value.code == "invalid-mark"
    with pytest.raises(QueueNotFound):
        await frozen_app.queues.set_marks("nowhere", high=5)
    with pytest.raises(QueueNotFound):
        await frozen_app.queues.pressure("nowhere")


def test_the_fullest_line_decides_about_the_pressure() -> None:
    lines = [
        LinePressure(priority=5, depth=10, waiting=0, high=100, low=50),
        LinePressure(priority=1, depth=60, waiting=10, high=100, low=50),
    ]
    found = pressure_of("mail", lines, 20.0)
    assert (found.level, found.utilization, found.depth, found.waiting) == (PressureLevel.RISING, 0.7, 70, 10)
    assert found.drained_in == 4.0


def test_the_usual_mark_is_the_same_in_the_database() -> None:
    schema = Path("src/mainspring/store/sql/schema.sql").read_text(encoding="utf-8")
    assert set(re.findall(r"queue\.high_mark, (\d+)", schema)) == {str(DEFAULT_HIGH_MARK)}
