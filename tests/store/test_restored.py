"""A database that was restored from a backup: a copy of it made earlier, with what has happened since forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from tests.checker import check
from tests.registering import registered_worker
from tests.waiting import Calls, until

from mainspring import Mainspring
from mainspring.control import restored
from mainspring.control.restored import FENCE_STEP, HIGHEST_FENCE, Outlook, Restored
from mainspring.errors import Conflict, InvalidInput
from mainspring.model.actor import DEFAULT_TENANT, Actor
from mainspring.model.ids import lane_of
from mainspring.model.run import PRIORITIES
from mainspring.store import leases, restoring, workers
from mainspring.store.database import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer
    from mainspring.testing import FrozenClock


ADA = Actor(DEFAULT_TENANT, "ada")
NOW = datetime(2031, 1, 1, tzinfo=UTC)
SECONDS_SINCE_2020 = int((NOW - datetime(2020, 1, 1, tzinfo=UTC)).total_seconds())
PLACES = ("ready", "later", "held", "dead")


class Installation(NamedTuple):
    """A database, an application that uses it, and a look into it."""

    url: str
    app: Mainspring
    connection: Connection

    async def restored(self, **options: Any) -> Restored:
        work = (await self.app.services()).restoration.work(ADA, **{"reason": "fire"} | options)
        return [done async for done in work][-1]

    async def look(self) -> Outlook:
        return await (await self.app.services()).restoration.look()

    async def fences(self) -> dict[UUID, int]:
        """Of every run that waits."""
        found = [await self.connection.fetch(f"select id, fence from {place}") for place in PLACES]  # noqa: S608
        return {row["id"]: row["fence"] for rows in found for row in rows}

    async def until(self, condition: str = "true") -> None:
        """Wait until the work goes on, and its session looks like this."""
        query = f"""
            select exists (select from pg_stat_activity where datname = current_database()
                           and application_name = 'mainspring restored' and {condition})"""  # noqa: S608
        await until(lambda: self.value(query))

    async def value(self, query: str, *arguments: Any) -> Any:
        return await self.connection.fetchval(query, *arguments)


@asynccontextmanager
async def opened(url: str, clock: FrozenClock) -> AsyncIterator[Installation]:
    app, connection = Mainspring(url, clock=clock, submitted_by="tester"), await Database(url).connect("test")
    try:
        await app.services()
        yield Installation(url, app, connection)
    finally:
        await connection.close()
        await app.close()


@pytest.fixture
async def here(frozen_app: Mainspring, url: str, clock: FrozenClock) -> AsyncIterator[Installation]:
    """A database with its application; time stands still."""
    await frozen_app.services()
    async with opened(url, clock) as installation:
        yield installation


@asynccontextmanager
async def copied(server: EmbeddedServer, url: str) -> AsyncIterator[str]:
    """A copy of a database: what a restore makes of a backup."""
    name, admin = f"copy_{uuid4().hex[:12]}", await asyncpg.connect(server.dsn)
    try:
        await admin.execute(f"create database {name} template {urlsplit(url).path[1:]}")
        yield server.dsn_for(name)
    finally:
        await admin.execute(f"drop database if exists {name} with (force)")
        await admin.close()


async def registered(connection: Connection, *, lease_seconds: float = 0.2) -> UUID:
    worker_id = uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="h",
        pid=1,
        queues=["default"],
        handlers=[],
        slots=1,
        lease_seconds=lease_seconds,
        version="0",
    )
    return worker_id


async def claim(connection: Connection, run_id: UUID, worker_id: UUID) -> int:
    """The fence that is handed out with this run."""
    await registered_worker(connection, worker_id)
    (row,) = await leases.claim(
        connection,
        lane=lane_of(run_id),
        line=await connection.fetchval("select line_id from ready where id = $1", run_id),
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=1,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert row["id"] == run_id
    return int(row["fence"])


async def one_in_each_place(installation: Installation) -> dict[str, Handle[None]]:
    """A run in each place where one can wait, and one that a worker has."""

    @installation.app.job
    async def work() -> None: ...

    runs = {place: await work.options(delay=60 if place == "later" else None).submit() for place in (*PLACES, "lease")}
    columns = await installation.value(
        "select string_agg(column_name, ', ') from information_schema.columns"
        " where table_name = 'dead' and column_name <> 'died_at'"
    )
    for place, more, value in (("held", ", reason", ", 'no-handler'"), ("dead", "", "")):
        await installation.connection.execute(
            f"with gone as (delete from ready where id = $1 returning *)"  # noqa: S608  the test writes it
            f" insert into {place} ({columns}{more}) select {columns}{value} from gone",
            runs[place].id,
        )
    await claim(installation.connection, runs["lease"].id, await registered(installation.connection))
    return runs


# ── fences ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(4)
async def test_every_fence_is_above_all_that_were_handed_out_after_the_backup(here: Installation) -> None:
    runs = await one_in_each_place(here)
    assert max((await here.fences()).values()) == 0

    done = await here.restored()

    assert await here.fences() == {run.id: SECONDS_SINCE_2020 for run in runs.values()}
    assert (done.waiting, done.looked_at, done.lifted, done.fence) == (5, 5, 5, SECONDS_SINCE_2020)
    assert await claim(here.connection, runs["ready"].id, uuid4()) == SECONDS_SINCE_2020 + 1


async def test_a_backup_that_is_restored_twice_hands_out_no_fence_twice(
    server: EmbeddedServer, frozen_app: Mainspring, url: str, clock: FrozenClock
) -> None:
    @frozen_app.job
    async def work() -> None: ...

    handle = await work.submit()
    fences = []
    for _ in range(2):
        await frozen_app.close()
        async with copied(server, url) as copy, opened(copy, clock) as installation:
            await installation.restored()
            fences += [await claim(installation.connection, handle.id, uuid4())]
        await clock.advance(60)

    assert fences == [SECONDS_SINCE_2020 + 1, SECONDS_SINCE_2020 + 61]


async def test_fences_grow_although_the_clock_went_back(here: Installation, clock: FrozenClock) -> None:
    await one_in_each_place(here)
    first = (await here.restored()).fence
    await clock.advance(timedelta(days=-30))

    assert (await here.restored()).fence == first + FENCE_STEP
    assert set((await here.fences()).values()) == {first + FENCE_STEP}


@pytest.mark.parametrize(("room", "fits"), [(2 * FENCE_STEP, True), (2 * FENCE_STEP - 1, False)])
async def test_fences_that_cannot_be_lifted_further_are_refused(here: Installation, room: int, fits: bool) -> None:
    await one_in_each_place(here)
    await here.connection.execute("update later set fence = $1", HIGHEST_FENCE - room)

    if fits:
        assert (await here.restored()).fence == HIGHEST_FENCE - FENCE_STEP
    else:
        with pytest.raises(Conflict, match="none can be higher than 2,147,483,647") as caught:
            await here.restored()
        assert caught.value.code == "fences-exhausted"


async def test_a_long_line_is_lifted_in_batches(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restored, "BATCH", 10)

    @here.app.job
    async def work(n: int) -> None: ...

    await work.submit_many([{"n": n} for n in range(200)])
    await work.options(delay=60).submit_many([{"n": n} for n in range(300)])

    assert (await here.restored()).lifted == 500
    assert set((await here.fences()).values()) == {SECONDS_SINCE_2020}


async def test_a_run_that_moves_on_while_it_is_to_be_lifted_is_lifted_where_it_is_then(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    @here.app.job
    async def work() -> None: ...

    handle = await work.options(delay=60).submit()
    lift = restoring.lift_fences
    batches: list[restoring.LiftedBatch] = []

    async def meet_a_change(connection: Connection, lane: int, *values: Any) -> restoring.LiftedBatch:
        if lane == lane_of(handle.id) and not batches:
            changing, lifting = await moved_while(here, handle.id, lambda: lift(connection, lane, *values))
            batches.append(lifting)
            assert changing == "INSERT 0 1"
            return lifting
        return await lift(connection, lane, *values)

    monkeypatch.setattr(restoring, "lift_fences", meet_a_change)
    await here.restored()

    assert [batch.is_whole for batch in batches] == [False]
    assert await here.fences() == {handle.id: SECONDS_SINCE_2020}
    assert (await handle.find()).state == "ready"


async def moved_while(here: Installation, run_id: UUID, lift: Any) -> tuple[str, restoring.LiftedBatch]:
    """Move a run from `later` to `ready` in a transaction that the lifting has to wait for."""
    columns = await here.value(
        "select string_agg(column_name, ', ') from information_schema.columns where table_name = 'later'"
    )
    mover = await Database(here.url).connect("test")
    async with mover.transaction():
        moved = await mover.execute(
            "with gone as (delete from later where id = $1 returning *)"  # noqa: S608  the test writes it
            f" insert into ready ({columns}) select {columns} from gone",
            run_id,
        )
        lifting = asyncio.create_task(lift())
        await here.until("wait_event_type = 'Lock'")
    await mover.close()
    return moved, await lifting


# ── workers and their leases ────────────────────────────────────────────────────────────────────────────────────


async def test_what_workers_of_the_backup_held_goes_back_in_line(here: Installation) -> None:
    runs = await one_in_each_place(here)

    done = await here.restored()

    assert (done.workers, done.leases, done.rescued) == (1, 1, 1)
    assert (await runs["lease"].find()).state == "ready"
    assert await here.value("select array_agg(state::text) from worker") == ["lost"]
    report = await check(here.connection, [run.id for run in runs.values()])
    assert report.violations == [], report


async def test_one_that_is_delivered_at_most_once_ends_as_lost(here: Installation) -> None:
    @here.app.job(delivery="at_most_once")
    async def work() -> None: ...

    handle = await work.submit()
    await claim(here.connection, handle.id, await registered(here.connection))

    assert (await here.restored()).lost == 1
    assert (await handle.find()).state == "lost"


async def test_leases_of_a_worker_that_ended_or_is_not_listed_any_more_are_taken_too(here: Installation) -> None:
    @here.app.job
    async def work() -> None: ...

    ended = await registered(here.connection)
    for worker_id in (ended, uuid4()):
        await claim(here.connection, (await work.submit()).id, worker_id)
    await workers.stop_if_live(here.connection, ended)
    await here.connection.execute("delete from worker where id <> $1", ended)

    done = await here.restored()

    assert (done.workers, done.leases, done.rescued) == (0, 2, 2)


def let_beat(monkeypatch: pytest.MonkeyPatch, here: Installation, worker_id: UUID) -> None:
    """The worker sends a heartbeat after each look at it."""
    pulses = workers.pulses

    async def look(connection: Connection) -> Any:
        found = await pulses(connection)
        await workers.send_heartbeats(here.connection, [worker_id])
        return found

    monkeypatch.setattr(workers, "pulses", look)


async def contents(here: Installation) -> list[Any]:
    tables = ("ready", "later", "held", "dead", "lease", "audit", "setting")
    return [await here.value(f"select array_agg({name}::text order by {name}::text) from {name}") for name in tables]  # noqa: S608


async def test_it_is_refused_while_a_worker_sends_heartbeats_and_nothing_has_happened(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = await one_in_each_place(here)
    alive, before = await registered(here.connection, lease_seconds=600), await contents(here)
    let_beat(monkeypatch, here, alive)

    with pytest.raises(Conflict, match=rf"1 worker of this database still sends heartbeats, {alive} for one") as caught:
        await here.restored()

    assert (caught.value.code, caught.value.fields) == ("workers-alive", {"workers": [str(alive)]})
    assert await contents(here) == before
    assert (await runs["lease"].find()).state == "running"


async def test_it_is_refused_when_a_worker_begins_meanwhile(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await registered(here.connection, lease_seconds=600)
    looks = Calls(workers.pulses)
    monkeypatch.setattr(workers, "pulses", looks)
    work = asyncio.create_task(here.restored())
    await looks.more()  # so that the first look, by which it knows who was there, is over
    await registered(here.connection)

    with pytest.raises(Conflict, match="still sends heartbeats"):
        await work


async def test_by_force_also_a_worker_that_sends_heartbeats_is_lost(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = await one_in_each_place(here)
    alive = await registered(here.connection, lease_seconds=600)
    let_beat(monkeypatch, here, alive)

    done = await here.restored(force=True)

    assert await workers.send_heartbeats(here.connection, [alive]) == {}
    assert (done.workers, done.rescued) == (2, 1)
    assert (await runs["lease"].find()).state == "ready"


async def test_a_lease_that_stays_locked_is_named(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    await one_in_each_place(here)
    monkeypatch.setattr(restored, "LOCKED_SECONDS", 0.05)

    async with here.connection.transaction():
        await here.connection.execute("select from lease for update")
        with pytest.raises(Conflict, match="leases of 1 ended worker locked") as caught:
            await here.restored()
    assert caught.value.code == "leases-locked"

    assert (await here.restored()).rescued == 1


# ── on record, and again ────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_on_record_with_its_reason_and_what_it_took(here: Installation) -> None:
    await one_in_each_place(here)

    done = await here.restored(reason="the disk of db-3")

    rows = await here.connection.fetch("select actor, action, subject, detail from audit order by action desc")
    (start, end) = [row for row in rows if row["action"].startswith("restore")]
    assert tuple(start)[:3] == ("ada", "restore.start", done.installation)
    assert tuple(end)[:3] == ("ada", "restore.end", done.installation)
    assert msgspec.json.decode(start["detail"]) == {"reason": "the disk of db-3"}
    assert msgspec.json.decode(end["detail"], type=Restored) == done


async def test_the_installation_gets_a_new_id_each_time(here: Installation) -> None:
    ids = []
    for _ in range(2):
        ids.append((await here.restored()).installation)
        assert await here.value("select value from setting where name = 'installation'") == ids[-1]

    assert len({UUID(each) for each in ids}) == 2


@pytest.mark.parametrize("reason", ["", "\0", "x" * 1001])
async def test_without_a_reason_nothing_happens(here: Installation, reason: str) -> None:
    await one_in_each_place(here)
    before = await contents(here)

    with pytest.raises(InvalidInput, match="reason is"):
        await here.restored(reason=reason)

    assert await contents(here) == before


async def test_an_empty_database_is_restored_too(here: Installation) -> None:
    assert await here.look() == Outlook(workers=0, watch_seconds=0.0, running=0, waiting=0)

    done = await here.restored()

    assert done == Restored(installation=done.installation, fence=SECONDS_SINCE_2020)
    assert await here.value("select count(*) from audit") == 2


async def test_looking_changes_nothing(here: Installation) -> None:
    await one_in_each_place(here)
    before = await contents(here)

    assert await here.look() == Outlook(workers=1, watch_seconds=0.1, running=1, waiting=4)
    assert await contents(here) == before


@pytest.mark.parametrize("steps", range(1, 13))
async def test_cut_off_after_any_step_it_is_simply_done_again(
    here: Installation, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(restored, "BATCH", 2)
    runs = await one_in_each_place(here)
    work = (await here.app.services()).restoration.work(ADA, reason="fire")
    assert isinstance(work, AsyncGenerator)
    async with aclosing(work):
        for _ in range(steps):
            await anext(work, None)

    done = await here.restored()

    assert await here.fences() == {run.id: done.fence for run in runs.values()}
    run = await runs["lease"].find()
    assert [attempt.outcome for attempt in run.attempts] == ["crashed"]
    assert await here.value("select count(*) from audit where action = 'restore.end'") in (1, 2)
    report = await check(here.connection, [run.id for run in runs.values()])
    assert report.violations == [], report
