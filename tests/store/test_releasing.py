"""Held runs go back in line when a worker that may claim them knows their job, and do not come and go without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.waiting import PATIENCE, until

from mainspring import Mainspring
from mainspring.keeper.releaser import BATCH, EVERY, SHARED_PAUSE, Releaser, pauses_of
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.lifecycle import State
from mainspring.model.line import Delivery, Line
from mainspring.model.worker import Server
from mainspring.store import workers
from mainspring.store.runs import HeldGroup

from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

LANES = 8


def greet(app: Mainspring) -> Job[..., str]:
    @app.job(name="greet")
    async def greet(name: str) -> str:
        return f"Hello {name}"

    return greet


@pytest.fixture
async def old_app(url: str, clock: FrozenClock, frozen_app: Mainspring) -> AsyncIterator[Mainspring]:
    """The application before somebody added a job to it."""
    app = Mainspring(url, clock=clock)

    @app.job
    async def other() -> None: ...

    yield app
    await app.close()


@pytest.fixture
def releaser(clock: FrozenClock) -> Releaser:
    return Releaser(lanes=LANES, clock=clock)


async def registered(
    connection: Connection, *handlers: str, queue: str = "default", labels: tuple[str, ...] = ()
) -> UUID:
    worker_id = uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="test",
        pid=1,
        queues=[queue],
        handlers=handlers,
        slots=1,
        lease_seconds=600,
        version="test",
    )
    return worker_id


async def until_held(connection: Connection, count: int) -> None:
    await until(lambda: connection.fetchval("select count(*) = $1 from held", count))


async def held_by(old_app: Mainspring, job: Job[..., str], connection: Connection, count: int = 1) -> list[Any]:
    """Runs that a worker claimed which did not know their job; it has ended since."""
    async with working(old_app):
        handles = await job.submit_many([{"name": str(number)} for number in range(count)])
        await until_held(connection, count)
    return handles


async def test_a_run_stays_held_until_a_worker_that_may_claim_it_knows_its_job(
    old_app: Mainspring, frozen_app: Mainspring, releaser: Releaser, connection: Connection
) -> None:
    (handle,) = await held_by(old_app, greet(frozen_app), connection)
    await registered(connection, "other")
    await registered(connection, "greet", queue="elsewhere")  # it would be claimed by the other one, and held again
    for _ in range(3):
        assert await releaser.step(connection) == EVERY
    assert (await handle.find()).state is State.HELD

    async with working(frozen_app):
        await connection.execute("update worker set state = 'stopped', ended_at = clock_now() where host = 'test'")
        await releaser.step(connection)
        assert await handle.result(PATIENCE) == "Hello 0"
    assert [attempt.number for attempt in (await handle.find()).attempts] == [1]


async def test_runs_of_every_tenant_are_released(
    old_app: Mainspring, frozen_app: Mainspring, releaser: Releaser, connection: Connection
) -> None:
    await held_by(old_app, greet(frozen_app), connection)
    for table in ("job", "line", "held"):
        await connection.execute(f"update {table} set tenant_id = tenant_id + 1")  # noqa: S608
    await registered(connection, "greet")

    await releaser.step(connection)

    assert await connection.fetchval("select count(*) from ready") == 1


async def test_a_worker_that_is_to_drain_is_not_waited_for_and_not_relied_on(
    old_app: Mainspring, frozen_app: Mainspring, releaser: Releaser, connection: Connection
) -> None:
    (handle,) = await held_by(old_app, greet(frozen_app), connection)
    knowing = await registered(connection, "greet")
    await workers.request_drain(connection, knowing, tenant_id=DEFAULT_TENANT, actor="tester", reason="")
    await releaser.step(connection)
    assert (await handle.find()).state is State.HELD

    await registered(connection, "greet")
    lacking = await registered(connection, "other")
    await workers.request_drain(connection, lacking, tenant_id=DEFAULT_TENANT, actor="tester", reason="")
    await releaser.step(connection)
    assert (await handle.find()).state is State.READY


async def test_a_run_does_not_go_to_and_fro_while_a_worker_lacks_its_handler(
    old_app: Mainspring, frozen_app: Mainspring, releaser: Releaser, clock: FrozenClock, connection: Connection
) -> None:
    """A deploy that never ends: the new worker is registered, and only the old one claims."""
    job = greet(frozen_app)
    async with working(old_app):
        handle = await job.submit(name="you")
        await until_held(connection, 1)
        await registered(connection, "greet")
        for rounds in range(1, 4):
            for _ in range(5):
                await releaser.step(connection)
            assert (await claims_of(connection), (await handle.find()).state) == (rounds, State.HELD)
            await clock.advance(SHARED_PAUSE)
            await releaser.step(connection)
            await until_held_again(connection, rounds + 1)

    async with working(frozen_app):
        await releaser.step(connection)  # at once: all that are left know it
        assert await handle.result(PATIENCE) == "Hello you"
    assert [attempt.number for attempt in (await handle.find()).attempts] == [1]  # none of it was an attempt


async def until_held_again(connection: Connection, claims: int) -> None:
    await until(lambda: connection.fetchval("select fence = $1 from held", claims))


async def claims_of(connection: Connection) -> int:
    """How often the one run that is held was claimed."""
    fence: int = await connection.fetchval("select fence from held")
    return fence


async def test_a_worker_with_a_keeper_releases_what_it_finds_when_it_comes(
    old_app: Mainspring, frozen_app: Mainspring, connection: Connection
) -> None:
    handles = await held_by(old_app, greet(frozen_app), connection, count=20)
    async with working(frozen_app, keeper=True):
        assert {await handle.result(PATIENCE) for handle in handles} == {f"Hello {number}" for number in range(20)}


async def test_many_are_released_batch_by_batch(
    frozen_app: Mainspring, releaser: Releaser, connection: Connection
) -> None:
    handle = await greet(frozen_app).submit(name="you")
    await connection.execute(
        """with run as (delete from ready returning *)
           insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, reason)
           select lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, 'no-handler' from run
           union all
           select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, due_at,
                  'no-handler' from run, generate_series(1, $1)""",
        BATCH,
    )
    await registered(connection, "greet")

    assert [await releaser.step(connection) for _ in range(2)] == [0.0, EVERY]
    assert await connection.fetchval("select count(*) from held") == 0
    assert (await handle.find()).state is State.READY


@pytest.mark.parametrize(
    ("servers", "pause"),
    [
        ([("default", "", "greet")], 0.0),
        ([("default", "", "greet"), ("default", "", "greet other")], 0.0),
        ([("default", "", "greet"), ("default", "", "other")], SHARED_PAUSE),
        ([("default", "", "greet"), ("elsewhere", "", "other")], 0.0),
        ([("default", "", "other"), ("elsewhere", "", "greet")], None),
        ([("default", "", "other")], None),
        ([], None),
    ],
)
def test_who_knows_a_job_decides_how_long_its_runs_stay_held(
    servers: list[tuple[str, str, str]], pause: float | None
) -> None:
    live = [Server(*(frozenset(words.split()) for words in server)) for server in servers]
    pauses = pauses_of([HeldGroup(7, "greet", 3, Line("default"))], live)

    assert pauses == ({} if pause is None else {(7, 3): pause})


@pytest.mark.parametrize(("labels", "pause"), [("gpu eu", 0.0), ("gpu", None)])
def test_only_workers_with_the_labels_of_a_line_count(labels: str, pause: float | None) -> None:
    line = Line("default", ("eu", "gpu"), Delivery.AT_MOST_ONCE)
    server = Server(frozenset({"default"}), frozenset(labels.split()), frozenset({"greet"}))

    assert pauses_of([HeldGroup(7, "greet", 3, line)], [server]) == ({} if pause is None else {(7, 3): pause})
