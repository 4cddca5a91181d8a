"""Schedules on a caller's own connection: what is done to them happens if and only if their transaction commits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import PATIENCE

from mainspring import Mainspring
from mainspring.errors import ForeignDatabase, InvalidInput, ScheduleExists, ScheduleNotFound, ScheduleVersionConflict
from mainspring.store import notify
from mainspring.store.callers_session import as_text
from mainspring.store.database import Database
from mainspring.store.migrate import migrate

from .callers import ALL, ASYNC, BLOCKING, caller
from .scheduling import HOUR, NEW_YEAR, Firing, outcomes, remind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    Remind = Job[[int], None]


@pytest.fixture
async def app(url: str, clock: FrozenClock) -> AsyncIterator[Mainspring]:
    """An application that is used from here and, by its blocking twins, from its own thread."""
    app = Mainspring(url, submitted_by="tester", clock=clock)
    await clock.freeze(app)
    yield app
    await app.close()
    await asyncio.to_thread(app.close_sync)


@pytest.fixture
def job(app: Mainspring) -> Remind:
    return remind(app)


async def names(app: Mainspring) -> list[str]:
    return [each.name for each in await app.schedules.list()]


# ── commit and rollback ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", ALL)
async def test_schedules_are_made_changed_and_deleted_with_their_caller(
    app: Mainspring, job: Remind, url: str, library: str, is_committed: bool
) -> None:
    await job.scheduled("put", "0 9 * * *").create(1)
    await job.scheduled("deleted", "0 9 * * *").create(1)
    hostile = job.options(tags=['a"{b', "c\\d,"], priority=2)
    async with caller(library, url) as one:
        made = await hostile.options(connection=one.connection).scheduled("made", "0 9 * * *").create(7)
        put = await job.options(connection=one.connection).scheduled("put", "0 10 * * *").put(8)
        await app.schedules.delete("deleted", connection=one.connection)
        assert (made.next_at, made.payload) == (NEW_YEAR + 9 * HOUR, {"customer": 7})
        assert (put.version, put.next_at) == (2, NEW_YEAR + 10 * HOUR)
        assert await names(app) == ["deleted", "put"], "nobody else sees any of it yet"
        await (one.commit() if is_committed else one.rollback())

    assert await names(app) == (["made", "put"] if is_committed else ["deleted", "put"])
    assert (await app.schedules.find("put")).version == (2 if is_committed else 1)
    if is_committed:
        assert await app.schedules.find("made") == made


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", BLOCKING)
async def test_the_blocking_twins_do_the_same(
    app: Mainspring, job: Remind, url: str, library: str, is_committed: bool
) -> None:
    await job.scheduled("put", "0 9 * * *").create(1)
    await job.scheduled("deleted", "0 9 * * *").create(1)

    def change(connection: Any) -> None:
        own = job.options(tags=["a"], connection=connection)
        assert own.scheduled("made", "0 9 * * *").create_sync(7).tags == ["a"]
        assert own.scheduled("put", "0 10 * * *").put_sync(8).version == 2
        app.schedules.delete_sync("deleted", connection=connection)

    async with caller(library, url) as one:
        await asyncio.to_thread(change, one.connection)
        await (one.commit() if is_committed else one.rollback())

    assert await names(app) == (["made", "put"] if is_committed else ["deleted", "put"])


@pytest.mark.parametrize("library", ["asyncpg", "psycopg", "async sqlalchemy on asyncpg", "sqlalchemy"])
async def test_what_is_overdue_is_decided_and_what_is_staged_withdrawn(
    app: Mainspring, job: Remind, url: str, clock: FrozenClock, connection: Connection, library: str
) -> None:
    for name in ("put", "deleted"):
        await job.scheduled(name, "0 * * * *").create(1)
    firing = Firing(connection, clock)
    await clock.advance(HOUR)
    await firing.fire(horizon=3600.0)  # 01:00, and 02:00 ahead of its time
    async with caller(library, url) as one:
        await job.options(connection=one.connection).scheduled("put", "30 * * * *").put(1)
        await app.schedules.delete("deleted", connection=one.connection)
        await one.commit()
    await clock.advance(HOUR)
    await firing.fire()
    first, half, second = (NEW_YEAR + hours * HOUR for hours in (1, 1.5, 2))
    assert await outcomes(app, "put") == [(first, first, "fired"), (half, half, "fired")]
    assert await outcomes(app, "deleted") == [(first, first, "fired"), (second, second, "deleted")]

    await clock.advance(2 * HOUR)  # nobody fires
    async with caller(library, url) as one:
        await app.schedules.delete("put", connection=one.connection)
        await one.commit()
    assert [each for _, _, each in await outcomes(app, "put")][2:] == ["collapsed", "fired", "deleted"]


async def test_a_savepoint_that_is_rolled_back_takes_only_its_own_schedule_along(
    app: Mainspring, job: Remind, url: str
) -> None:
    async with caller("asyncpg", url) as one:
        own = job.options(connection=one.connection)
        await own.scheduled("kept", "0 9 * * *").create(1)
        savepoint = one.connection.transaction()
        await savepoint.start()
        await own.scheduled("dropped", "0 9 * * *").create(1)
        await savepoint.rollback()
        await one.commit()
    assert await names(app) == ["kept"]


# ── what the caller keeps ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("library", ["asyncpg", "async psycopg", "async sqlalchemy on asyncpg"])
async def test_the_callers_search_path_and_transaction_survive_a_refusal(
    app: Mainspring, job: Remind, url: str, library: str
) -> None:
    await job.scheduled("taken", "0 9 * * *").create(1)
    async with caller(library, url) as one:
        own = job.options(connection=one.connection)
        await _execute(library, one.connection, "set local search_path = pg_catalog")
        with pytest.raises(ScheduleExists):
            await own.scheduled("taken", "0 9 * * *").create(1)
        with pytest.raises(ScheduleNotFound):
            await app.schedules.delete("nobody", connection=one.connection)
        with pytest.raises(ScheduleVersionConflict):
            await app.schedules.delete("taken", expected_version=2, connection=one.connection)
        await own.scheduled("free", "0 9 * * *").create(1)
        path = "do $$ begin assert current_setting('search_path') = 'pg_catalog'; end $$"
        await _execute(library, one.connection, path)
        await one.commit()
    assert await names(app) == ["free", "taken"]


async def _execute(library: str, connection: Any, statement: str) -> None:
    if "sqlalchemy" in library:
        import sqlalchemy

        statement = sqlalchemy.text(statement)  # type: ignore[assignment]
    await connection.execute(statement)


async def test_schedulers_are_woken_by_the_commit(job: Remind, url: str) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = await asyncpg.connect(url)
    await listener.add_listener(notify.SCHEDULE, lambda *message: heard.put_nowait(message[-1]))
    async with caller("asyncpg", url) as one:
        await job.options(connection=one.connection).scheduled("dropped", "0 9 * * *").create(1)
        await one.rollback()
    async with caller("asyncpg", url) as one:
        await job.options(connection=one.connection).scheduled("made", "0 9 * * *").create(1)
        await one.connection.execute("notify mainspring_schedule, 'the commit'")
        await one.commit()
    lane, last = await asyncio.wait_for(heard.get(), PATIENCE), await asyncio.wait_for(heard.get(), PATIENCE)
    assert (lane.isdigit(), last) == (True, "the commit"), "and nothing of what was rolled back"
    await listener.close()


# ── refused ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_without_a_transaction_it_is_refused(app: Mainspring, job: Remind, url: str) -> None:
    connection = await asyncpg.connect(url)
    with pytest.raises(InvalidInput) as caught:
        await job.options(connection=connection).scheduled("a", "0 9 * * *").create(1)
    assert caught.value.code == "no-transaction"
    await connection.close()


@pytest.mark.parametrize("library", ASYNC)
async def test_an_async_connection_is_refused_by_the_blocking_twins(job: Remind, url: str, library: str) -> None:
    async with caller(library, url) as one:
        scheduled = job.options(connection=one.connection).scheduled("a", "0 9 * * *")
        with pytest.raises(InvalidInput) as caught:
            await asyncio.to_thread(scheduled.create_sync, 1)
        assert caught.value.code == "connection-is-async"
        await one.rollback()


@pytest.mark.parametrize("library", ["asyncpg", "psycopg"])
async def test_another_installation_is_refused(app: Mainspring, job: Remind, empty_url: str, library: str) -> None:
    other = await Database(empty_url).connect("test")
    await migrate(other)
    async with caller(library, empty_url) as one:
        with pytest.raises(ForeignDatabase):
            await job.options(connection=one.connection).scheduled("a", "0 9 * * *").create(1)
        with pytest.raises(ForeignDatabase):
            await app.schedules.delete("a", connection=one.connection)
        await one.commit()
    assert await other.fetchval("select count(*) from schedule") == 0
    await other.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (3, "3"),
        (b"\x00a", "\\x0061"),
        (["a", None, 'b"\\'], '{"a",NULL,"b\\"\\\\"}'),
        ([], "{}"),
        (NEW_YEAR, "2031-01-01T00:00:00+00:00"),
    ],
)
def test_values_travel_as_text(value: object, text: str | None) -> None:
    assert as_text(value) == text
