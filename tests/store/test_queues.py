"""Queues: paused ones give nothing away, and every one tells what it has and how fast it moves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.waiting import until

from mainspring import Limit
from mainspring.errors import InvalidInput, QueueNotFound, WorkerNotFound
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.sampler import Sampler
from mainspring.store import queues, workers
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def jobs(frozen_app: Mainspring) -> dict[str, Job[Any, Any]]:
    @frozen_app.job(queue="mail")
    async def send(n: int) -> int:
        return n

    @frozen_app.job(queue="reports")
    async def report(n: int) -> int:
        return n

    return {"send": send, "report": report}


async def acts(connection: Connection) -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = await connection.fetch("select actor, action, subject, detail from audit order by at, action")
    return [
        (row["actor"], row["action"], row["subject"], msgspec.json.decode(row["detail"]))
        for row in rows
        if row["action"].startswith(("queue", "worker"))
    ]


# ── pausing ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_of_a_paused_queue_is_claimed_and_everything_after_it_is_resumed(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]]
) -> None:
    sent, reported = await jobs["send"].submit(n=1), await jobs["report"].submit(n=2)
    assert await frozen_app.queues.pause("mail", reason="the server is down")
    await run_until_idle(frozen_app)

    assert ((await sent.find()).state, (await reported.find()).state) == ("ready", "succeeded")

    assert await frozen_app.queues.resume("mail")
    await run_until_idle(frozen_app)

    assert (await sent.find()).state == "succeeded"


async def test_runs_are_accepted_while_their_queue_is_paused(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]]
) -> None:
    await jobs["send"].submit(n=1)
    await frozen_app.queues.pause("mail")
    await jobs["send"].submit_many([{"n": n} for n in range(10)])

    (mail,) = [queue for queue in await frozen_app.queues.list() if queue.name == "mail"]
    assert (mail.depth, mail.wanted_slots, mail.paused_by) == (11, 0, "tester")


async def test_pausing_twice_is_pausing_once_and_each_change_is_on_record(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]], connection: Connection
) -> None:
    await jobs["send"].submit(n=1)

    assert await frozen_app.queues.pause("mail", reason="first")
    assert not await frozen_app.queues.pause("mail", reason="second")
    assert await frozen_app.queues.resume("mail", reason="third")
    assert not await frozen_app.queues.resume("mail", reason="fourth")

    assert await acts(connection) == [
        ("tester", "queue.pause", "mail", {"reason": "first"}),
        ("tester", "queue.resume", "mail", {"reason": "third"}),
    ]


async def test_an_unknown_queue_cannot_be_paused(frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]]) -> None:
    await jobs["send"].submit(n=1)
    with pytest.raises(QueueNotFound, match=r"There is no queue named 'mali'\. Did you mean 'mail'\?"):
        await frozen_app.queues.pause("mali")
    with pytest.raises(InvalidInput) as caught:
        await frozen_app.queues.pause("mail", reason="\0")

    assert caught.value.code == "invalid-reason"


# ── measuring ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_queue_tells_its_depth_and_the_age_of_its_oldest_run(
    frozen_app: Mainspring, clock: FrozenClock, jobs: dict[str, Job[Any, Any]]
) -> None:
    await jobs["send"].options(priority=9).submit(n=1)
    await clock.advance(timedelta(seconds=90))
    await jobs["send"].options(priority=0).submit(n=2)

    (mail,) = [queue for queue in await frozen_app.queues.list() if queue.name == "mail"]
    assert (mail.depth, mail.oldest_seconds, mail.slots) == (2, 90.0, 0)
    assert (mail.arrivals_per_s, mail.finished_per_s) == (None, None)


async def test_rates_come_from_what_workers_tell_at_their_beats(
    frozen_app: Mainspring, clock: FrozenClock, jobs: dict[str, Job[Any, Any]], connection: Connection
) -> None:
    await jobs["send"].submit_many([{"n": n} for n in range(20)])
    line = await connection.fetchval("select id from line where queue = 'mail'")
    worker = await registered(connection, slots=0)
    assert await queues.take_samples(connection)
    assert not await queues.take_samples(connection)  # one look serves everybody
    await clock.advance(timedelta(seconds=20))
    await connection.execute("delete from ready where (lane, id) in (select lane, id from ready limit 10)")
    await queues.tell(connection, worker, {line: (40, 20.0, 0)})

    (mail,) = [queue for queue in await frozen_app.queues.list() if queue.name == "mail"]
    assert (mail.finished_per_s, mail.arrivals_per_s, mail.mean_seconds) == (2.0, 1.5, 0.5)
    assert mail.wanted_slots == 2  # 1.5/s × 0.5 s at 80 %, and ten that wait


async def test_a_queue_tells_how_many_runs_wait_for_their_time(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]]
) -> None:
    await jobs["send"].options(delay=timedelta(hours=1)).submit_many([{"n": n} for n in range(30)])
    await jobs["send"].options(delay=timedelta(days=1), labels={"gpu"}).submit(n=1)
    await jobs["report"].submit(n=1)

    scheduled = {queue.name: (queue.depth, queue.scheduled) for queue in await frozen_app.queues.list()}
    assert scheduled == {"mail": (0, 31), "reports": (1, 0)}
    pressure = await frozen_app.queues.pressure("mail")
    assert (pressure.depth, pressure.scheduled, pressure.promoted_per_s) == (0, 31, None)


async def test_runs_that_wait_for_their_time_are_counted_up_to_a_bound(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    await jobs["send"].options(delay=timedelta(hours=1)).submit_many([{"n": n} for n in range(30)])
    monkeypatch.setattr(queues, "COUNTED", 20)  # a batch is in one lane

    assert (await frozen_app.queues.pressure("mail")).scheduled == 20


async def test_a_queue_tells_how_many_come_in_line_per_second(
    frozen_app: Mainspring, clock: FrozenClock, jobs: dict[str, Job[Any, Any]], connection: Connection
) -> None:
    await jobs["send"].options(delay=timedelta(seconds=10)).submit_many([{"n": n} for n in range(30)])
    await jobs["send"].options(delay=timedelta(hours=1)).submit(n=30)
    promoter = Promoter(lanes=8, clock=clock)
    sampler = Sampler(promoter.take_promoted)
    await sampler.step(connection)
    await clock.advance(timedelta(seconds=20))
    while await promoter.step(connection) == 0.0:
        pass
    await sampler.step(connection)

    (mail,) = [queue for queue in await frozen_app.queues.list() if queue.name == "mail"]
    assert (mail.depth, mail.scheduled, mail.promoted_per_s) == (30, 1, 1.5)
    assert (await frozen_app.queues.pressure("mail")).promoted_per_s == 1.5
    assert promoter.take_promoted() == {}, "what was said is not said again"


async def test_those_that_wait_at_a_limit_after_their_time_count_as_promoted(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    @frozen_app.job(queue="mail", limit=Limit(1))
    async def send(n: int) -> None: ...

    await send.options(delay=timedelta(seconds=10)).submit_many([{"n": n} for n in range(3)])
    await clock.advance(timedelta(seconds=10))
    promoter = Promoter(lanes=8, clock=clock)
    while await promoter.step(connection) == 0.0:
        pass

    assert await connection.fetchval("select count(*) from held") == 3
    assert list(promoter.take_promoted().values()) == [3]


async def test_two_keepers_that_promote_at_one_moment_count_together_and_are_forgotten_later(
    frozen_app: Mainspring, clock: FrozenClock, jobs: dict[str, Job[Any, Any]], connection: Connection
) -> None:
    await jobs["send"].submit(n=1)
    line = await connection.fetchval("select id from line where queue = 'mail'")
    await queues.take_samples(connection)
    await clock.advance(timedelta(seconds=20))
    for _ in range(2):
        await queues.add_promotions(connection, {line: 20})
    assert (await frozen_app.queues.pressure("mail")).promoted_per_s == 2.0

    await clock.advance(timedelta(minutes=3))
    await queues.tidy(connection)
    assert await connection.fetchval("select count(*) from promotion") == 0


async def test_a_worker_wants_no_slots_for_what_it_lacks_the_labels_of(
    frozen_app: Mainspring, jobs: dict[str, Job[Any, Any]], connection: Connection
) -> None:
    await jobs["send"].submit_many([{"n": n} for n in range(60)])
    await jobs["send"].options(labels={"gpu"}).submit_many([{"n": n} for n in range(90)])

    assert await queues.wanted_slots(connection, ["mail"], []) == 2
    assert await queues.wanted_slots(connection, ["mail"], [], labels=["gpu"]) == 5
    assert await queues.wanted_slots(connection, ["reports"], [], labels=["gpu"]) == 0

    plain = await registered(connection, slots=100)
    assert await queues.wanted_slots(connection, ["mail"], [], labels=["gpu"]) == 3
    assert await queues.wanted_slots(connection, ["mail"], [plain], labels=["gpu"]) == 5
    await frozen_app.queues.pause("mail")
    assert await queues.wanted_slots(connection, ["mail"], [], labels=["gpu"]) == 0


async def registered(connection: Connection, *, slots: int) -> UUID:
    worker = uuid4()
    await workers.register(
        connection,
        worker_id=worker,
        host="h",
        pid=1,
        queues=["mail"],
        handlers=[],
        slots=slots,
        lease_seconds=1,
        version="0",
    )
    return worker


async def test_what_workers_long_gone_have_done_stays_in_the_sum(
    connection: Connection, frozen_app: Mainspring, clock: FrozenClock
) -> None:
    await frozen_app.services()
    gone = [await registered(connection, slots=5) for _ in range(2)]
    for worker in gone:
        await queues.tell(connection, worker, {1: (10, 1.0, 3)})
    await workers.stop_if_live(connection, gone[0])
    await clock.advance(timedelta(hours=2))
    await queues.tidy(connection)

    rows = await connection.fetch("select worker_id, finished, holding from worker_tally order by worker_id")
    assert [tuple(row)[1:] for row in rows] == [(10, 0), (10, 3)]
    assert rows[0]["worker_id"].int == 0


async def test_a_worker_tells_what_it_did(app: Mainspring, connection: Connection) -> None:
    @app.job(queue="mail")
    async def send(n: int) -> int:
        return n

    await send.submit_many([{"n": n} for n in range(30)])
    async with working(app, slots=5, heartbeat_interval=0.05):
        await until(
            lambda: connection.fetchval(
                "select (finished, busy_seconds > 0, holding) = (30, true, 0) from worker_tally"
            )
        )


# ── draining ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_only_a_live_worker_can_be_asked_to_drain(frozen_app: Mainspring) -> None:
    for nobody in (uuid4(), "not an id"):
        with pytest.raises(WorkerNotFound, match="There is no live worker"):
            await frozen_app.workers.drain(nobody)
