"""Marks of queues: what becomes due comes in line at the pace of the workers, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import json
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
from mainspring.store import runs
from mainspring.testing import run_until_idle

from .callers import until_someone_waits_for_a_lock
from .scheduling import Firing
from .test_limits import places

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

LANES = 8
HIGH, LOW = 40, 16  # of which each lane has an eighth
EACH = HIGH // LANES


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


async def put_off(send: Any, clock: FrozenClock, count: int, seconds: float = 60, **options: Any) -> None:
    items = [{"number": number} for number in range(count)]
    await send.options(delay=timedelta(seconds=seconds), **options).submit_many(items)


async def in_line(connection: Connection) -> list[int]:
    """How many are in line, in each lane that has some."""
    rows = await connection.fetch("select count(*) as runs from ready group by lane order by lane")
    return [row["runs"] for row in rows]


async def gather(connection: Connection) -> int:
    """Put all that waits for its time into one lane, where what is in line is; answers which."""
    lane: int = await connection.fetchval(
        "select coalesce((select min(lane) from ready), (select min(lane) from later))"
    )
    await connection.execute("update later set lane = $1", lane)
    return lane


async def numbers(connection: Connection, query: str) -> list[int]:
    """What the runs of a query were submitted with."""
    return [json.loads(row["payload"])["number"] for row in await connection.fetch(query)]


async def test_what_becomes_due_waits_where_the_line_has_reached_its_high_mark(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, EACH)
    await clock.advance(60)
    await promote(connection, clock)
    assert (await places(connection)) == {"ready": EACH}

    await put_off(send, clock, 30)
    await gather(connection)
    await clock.advance(60)
    await promote(connection, clock)

    assert (await places(connection)) == {"ready": EACH, "held": 30}


async def test_one_promotion_of_many_fills_a_line_up_to_its_mark_and_no_further(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)  # a batch is in one lane
    await clock.advance(60)
    await promote(connection, clock)

    assert (await places(connection)) == {"ready": EACH, "held": 30 - EACH}


async def test_a_promotion_tops_up_a_line_that_has_some(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, EACH - 2)
    await clock.advance(60)
    await promote(connection, clock)
    await put_off(send, clock, 30)
    await gather(connection)
    await clock.advance(60)
    await promote(connection, clock)

    assert (await places(connection)) == {"ready": EACH, "held": 28}


async def test_the_first_of_a_batch_come_in_line_and_the_others_keep_their_order(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)
    await connection.execute(SHUFFLE, 30)
    instants = await numbers(connection, "select payload from later order by due_at")
    await clock.advance(60)
    await promote(connection, clock)

    assert await numbers(connection, "select payload from ready order by rank") == instants[:EACH]
    assert await numbers(connection, "select payload from held order by turn") == instants[EACH:]
    await look(connection, clock)
    assert await in_line(connection) == [EACH]  # nobody overtakes those who wait, so they keep to the mark, too


async def test_each_line_and_priority_of_a_batch_has_its_own_room(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    @frozen_app.job(name="archive", queue="large")
    async def archive(number: int = 0) -> None: ...

    await put_off(send, clock, 30)
    await put_off(send, clock, 7, priority=2)
    await put_off(send, clock, 3, priority=8)
    await put_off(archive, clock, 20)
    lane = await gather(connection)
    await clock.advance(60)
    groups = await runs.promote(connection, lane, [runs.LONG_AGO] * 10, 1_000)

    rows = await connection.fetch(
        "select line.queue, ready.priority, count(*) as runs from ready join line on line.id = line_id group by 1, 2"
    )
    assert {(row["queue"], row["priority"]): row["runs"] for row in rows} == {
        ("default", 5): EACH,
        ("default", 2): EACH,
        ("default", 8): 3,
        ("large", 5): 20,
    }
    assert (await places(connection)) == {"ready": 33, "held": 27}
    assert sorted((group["priority"], group["runs"], group["gates"] is None) for group in groups) == [
        (2, 2, False),
        (2, EACH, True),
        (5, EACH, True),
        (5, 20, True),
        (5, 25, False),
        (8, 3, True),
    ]


async def test_what_has_a_limit_waits_there_and_takes_no_room(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 10, seconds=59)
    await connection.execute("update later set gates = '1:1'")
    await put_off(send, clock, 10)
    await gather(connection)
    await clock.advance(60)
    await promote(connection, clock)

    assert await in_line(connection) == [EACH]
    rows = await connection.fetch("select reason::text, count(*) as runs from held group by reason")
    assert {row["reason"]: row["runs"] for row in rows} == {"limit": 10, "backpressure": 10 - EACH}


async def test_keepers_that_promote_at_the_same_moment_fill_the_room_once(
    send: Job[[int], None], database: Database, connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)
    lane = await gather(connection)
    await clock.advance(60)
    one, other = [await database.connect(name) for name in ("one keeper", "another one")]
    async with one.transaction():
        await runs.promote(one, lane, [runs.LONG_AGO] * 10, 15)
        promoting = asyncio.create_task(runs.promote(other, lane, [runs.LONG_AGO] * 10, 15))
        waiting = asyncio.create_task(until_someone_waits_for_a_lock(connection))
        await asyncio.wait({promoting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    await promoting
    for each in (one, other):
        await each.close()

    assert (await places(connection)) == {"ready": EACH, "held": 30 - EACH}


async def test_what_waits_comes_in_line_again_at_the_low_mark_up_to_the_high_one(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    await put_off(send, clock, 30)
    await clock.advance(60)
    await promote(connection, clock)
    await look(connection, clock)
    assert await in_line(connection) == [EACH]  # beyond the low mark

    await connection.execute("delete from ready where id not in (select id from ready order by rank desc limit 2)")
    await look(connection, clock)

    assert await in_line(connection) == [EACH]
    assert (await places(connection))["held"] == 30 - EACH - 3


async def test_who_has_waited_longest_is_not_overtaken_for_ever(
    send: Job[[int], None], connection: Connection, clock: FrozenClock
) -> None:
    """Others submit for now, and keep the line full: whoever was due before the first in line follows."""
    await put_off(send, clock, EACH + 12)
    await clock.advance(60)
    await promote(connection, clock)
    await connection.execute("update ready set rank = rank + 600 * 1000000")  # as if others had come after them
    await clock.advance(600)
    await look(connection, clock)

    assert (await places(connection)) == {"ready": 2 * EACH, "held": 12 - EACH}  # one mark of them, and no more
    ranks = await connection.fetch("select rank from ready order by rank limit 6")
    assert ranks[EACH - 1]["rank"] < ranks[EACH]["rank"]  # in the places that they would have had


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


async def test_a_batch_far_beyond_its_mark_is_executed_whole_and_in_the_order_of_its_instants(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    started: list[int] = []

    @frozen_app.job(name="note")
    async def note(number: int) -> None:
        started.append(number)

    await note.submit(-1)
    await run_until_idle(frozen_app)
    await frozen_app.queues.set_marks("default", high=HIGH, low=LOW)
    await put_off(note, clock, 100)
    await connection.execute(SHUFFLE, 100)
    instants = await numbers(connection, "select payload from later order by due_at")
    await clock.advance(60)
    await run_until_idle(frozen_app)

    assert sorted(started) == list(range(-1, 100))
    # What is claimed together starts in any order, and no more than the mark is.
    assert max(abs(started.index(number) - place) for place, number in enumerate([-1, *instants])) < EACH
    assert (await places(connection)) == {}


SHUFFLE = """
    update later
    set due_at = due_at - (convert_from(payload, 'utf8')::jsonb ->> 'number')::int * 7 % $1 * interval '0.1 second'"""


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


async def schedule_many(app: Mainspring, count: int) -> None:
    for number in range(count):
        await app.schedules.create(f"nightly-{number}", "send", "*/10 * * * *")


async def test_what_schedules_fire_together_fills_a_line_up_to_its_mark(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    await schedule_many(frozen_app, 80)
    await clock.advance(600)
    assert await Firing(connection, clock).fire() == 80
    assert max(await in_line(connection)) == EACH

    await promote(connection, clock)
    assert max(await in_line(connection)) == EACH
    assert sum((await places(connection)).values()) == 80

    await run_until_idle(frozen_app)
    assert await connection.fetchval("select count(*) from attempt where state = 'succeeded'") == 81


async def test_what_schedules_stage_ahead_of_its_instant_keeps_to_marks_that_were_set(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    await schedule_many(frozen_app, 80)
    await clock.advance(598)
    assert await Firing(connection, clock).fire(2.0) == 80
    assert max(await in_line(connection)) == EACH

    await clock.advance(2)
    await promote(connection, clock)
    assert max(await in_line(connection)) == EACH
    assert sum((await places(connection)).values()) == 80


async def test_the_usual_mark_keeps_out_nothing_that_was_staged(
    send: Job[[int], None], frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    await frozen_app.queues.set_marks("default", reason="a large machine")
    await frozen_app.schedules.create("nightly", "send", "*/10 * * * *")
    await clock.advance(598)
    await connection.execute(FILL_LANES, DEFAULT_HIGH_MARK // LANES, 1_000_000)  # a herd that is due in a second
    await Firing(connection, clock).fire(2.0)

    assert await places(connection) == {"ready": DEFAULT_HIGH_MARK + 1}


FILL_LANES = """
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, rank)
    select lane.lane, gen_random_uuid(), 1, job.id, 1, line.id, 5, '{}', rank_now() + $2
    from lane, job, line, generate_series(1, $1)"""


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
