"""Schedules on a caller's own connection: what is done to them happens if and only if their transaction commits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from tests.waiting import PATIENCE

from mainspring import Mainspring
from mainspring.errors import ForeignDatabase, InvalidInput, ScheduleExists, ScheduleNotFound, ScheduleVersionConflict
from mainspring.model.scheduling import PutReport
from mainspring.store import notify
from mainspring.store.callers_session import as_text
from mainspring.store.database import Database
from mainspring.store.migrate import migrate

from .callers import ALL, ASYNC, BLOCKING, caller, engine_url, until_someone_waits_for_a_lock
from .scheduling import HOUR, LANES, NEW_YEAR, Firing, outcomes, remind, run_ids

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


@pytest.fixture
async def before(app: Mainspring, job: Remind) -> None:
    """What there was when the caller began."""
    for name in ("put", "put-by-name", "updated", "paused", "resumed", "deleted"):
        await job.scheduled(name, "0 9 * * *").create(1)
    await app.schedules.pause("resumed")


# As in a transaction that began so long ago.
FIFTEEN_SECONDS_LATER = """
create or replace function mainspring.statement_now() returns timestamptz language sql stable parallel safe
    as 'select mainspring.clock_now() + make_interval(secs => 15)'
"""
STAYED = ["deleted", "paused", "put", "put-by-name", "resumed", "updated"]
COMMITTED = ["by-name", "made", "many-1", "many-2", "many-3", "paused", "put", "put-by-name", "resumed", "updated"]


async def check_that_all_happened_or_nothing(app: Mainspring, *, is_committed: bool) -> None:
    assert await names(app) == (COMMITTED if is_committed else STAYED)
    found = {each.name: each for each in await app.schedules.list()}
    versions = [found[name].version for name in ("put", "put-by-name", "updated")]
    assert versions == ([2, 2, 2] if is_committed else [1, 1, 1])
    states = [found[name].state for name in ("paused", "resumed")]
    assert states == (["paused", "active"] if is_committed else ["active", "paused"])
    triggered = [run.payload for run in [await app.runs.find(run_id) for run_id in await run_ids(app)]]
    assert triggered == ([{"customer": 3}] if is_committed else [])


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", ALL)
async def test_what_is_done_to_schedules_happens_with_their_caller(
    app: Mainspring, job: Remind, url: str, library: str, is_committed: bool
) -> None:
    hostile = ['a"{b', "c\\d,"]
    async with caller(library, url) as one:
        own = {"connection": one.connection}
        made = await job.options(tags=hostile, **own).scheduled("made", "0 9 * * *").create(7)
        put = await job.options(**own).scheduled("put", "0 10 * * *").put(8)
        by_name = await app.schedules.create("by-name", "remind", "0 9 * * *", {"customer": 9}, **own)
        assert (by_name.next_at, by_name.payload) == (NEW_YEAR + 9 * HOUR, {"customer": 9})
        with pytest.raises(ScheduleVersionConflict):
            await app.schedules.put("put-by-name", "remind", "0 10 * * *", {"customer": 8}, expected_version=7, **own)
        await app.schedules.put("put-by-name", "remind", "0 10 * * *", {"customer": 8}, expected_version=1, **own)
        updated = await app.schedules.update("updated", when="0 10 * * *", arguments={"customer": 3}, **own)
        paused = await app.schedules.pause("paused", reason="a 'holiday'", until=NEW_YEAR + 5 * HOUR, **own)
        resumed = await app.schedules.resume("resumed", **own)
        tagged = job.options(tags=hostile)
        many = [tagged.scheduled(f"many-{number}", "0 9 * * *").request(number) for number in (2, 1)]
        ids = await app.schedules.create_many(many, **own)
        put_many = [job.scheduled(f"many-{number}", "0 9 * * *").request(number) for number in (2, 3)]
        assert await app.schedules.put_many(put_many, **own) == PutReport(created=1, changed=1)
        run_id = await app.schedules.trigger("updated", **own)
        await app.schedules.delete("deleted", **own)
        assert (made.next_at, made.payload) == (NEW_YEAR + 9 * HOUR, {"customer": 7})
        assert [(each.version, each.next_at) for each in (put, updated)] == [(2, NEW_YEAR + 10 * HOUR)] * 2
        assert (paused.state, paused.pause_reason, resumed.state) == ("paused", "a 'holiday'", "active")
        assert await names(app) == STAYED, "nobody else sees any of it yet"
        await (one.commit() if is_committed else one.rollback())

    await check_that_all_happened_or_nothing(app, is_committed=is_committed)
    if is_committed:
        assert await app.schedules.find("made") == made
        found = [await app.schedules.find(name) for name in ("many-2", "many-1")]
        assert [(each.id, each.version, each.tags) for each in found] == [(ids[0], 2, []), (ids[1], 1, hostile)]
        assert made.tags == hostile
        assert await run_ids(app) == [run_id]


async def test_a_transaction_that_began_before_an_instant_does_not_make_it_again(
    app: Mainspring, job: Remind, url: str, clock: FrozenClock, connection: Connection
) -> None:
    """It has fired meanwhile, and a schedule that is made again is another one to the ledger."""
    await job.scheduled("hourly", "0 * * * *").create(1)
    await clock.set(NEW_YEAR + HOUR - timedelta(seconds=10))
    await connection.execute(FIFTEEN_SECONDS_LATER)
    async with caller("asyncpg", url) as one:
        own = {"connection": one.connection}
        await app.schedules.delete("hourly", **own)
        again = await job.options(**own).scheduled("hourly", "0 * * * *").create(1)
        await one.commit()

    assert again.next_at == NEW_YEAR + 2 * HOUR


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("library", BLOCKING)
async def test_the_blocking_twins_do_the_same(
    app: Mainspring, job: Remind, url: str, library: str, is_committed: bool
) -> None:
    def change(connection: Any) -> None:
        own = job.options(tags=["a"], connection=connection)
        assert own.scheduled("made", "0 9 * * *").create_sync(7).tags == ["a"]
        assert own.scheduled("put", "0 10 * * *").put_sync(8).version == 2
        here = {"connection": connection}
        assert app.schedules.create_sync("by-name", "remind", "0 9 * * *", {"customer": 9}, **here).version == 1
        assert app.schedules.put_sync("put-by-name", "remind", "0 10 * * *", {"customer": 9}, **here).version == 2
        updated = app.schedules.update_sync("updated", arguments={"customer": 3}, connection=connection)
        assert (updated.version, updated.payload) == (2, {"customer": 3})
        assert app.schedules.pause_sync("paused", connection=connection).state == "paused"
        assert app.schedules.resume_sync("resumed", connection=connection).state == "active"
        many = [job.scheduled(f"many-{number}", "0 9 * * *").request(number) for number in (1, 2)]
        assert len(app.schedules.create_many_sync(many, connection=connection)) == 2
        put_many = [job.scheduled(f"many-{number}", "0 9 * * *").request(number) for number in (2, 3)]
        assert app.schedules.put_many_sync(put_many, connection=connection) == PutReport(created=1, unchanged=1)
        app.schedules.trigger_sync("updated", connection=connection)
        app.schedules.delete_sync("deleted", connection=connection)

    async with caller(library, url) as one:
        await asyncio.to_thread(change, one.connection)
        await (one.commit() if is_committed else one.rollback())

    await check_that_all_happened_or_nothing(app, is_committed=is_committed)


async def test_without_a_connection_the_blocking_twins_commit_by_themselves(app: Mainspring, job: Remind) -> None:
    await job.scheduled("a", "0 9 * * *").create(1)
    await asyncio.to_thread(app.schedules.update_sync, "a", tags=["b"])
    await asyncio.to_thread(app.schedules.pause_sync, "a", connection=None)
    found = await app.schedules.find("a")
    assert (found.tags, found.state) == (["b"], "paused")


@pytest.mark.parametrize("library", ["asyncpg", "async psycopg"])
async def test_a_caller_sees_what_was_done_before_in_the_same_transaction(
    app: Mainspring, job: Remind, url: str, library: str
) -> None:
    async with caller(library, url) as one:
        own = {"connection": one.connection}
        await job.options(**own).scheduled("made", "0 9 * * *").create(1)
        assert (await app.schedules.update("made", priority=1, **own)).version == 2
        assert (await app.schedules.update("made", priority=1, **own)).version == 2, "that changes nothing"
        assert (await app.schedules.rollback("made", to=1, **own)).version == 3
        await app.schedules.trigger("made", **own)
        await one.commit()
    assert ((await app.schedules.find("made")).version, len(await run_ids(app))) == (3, 1)


async def test_a_schedule_of_another_applications_job_is_triggered_and_updated_as_well(
    app: Mainspring, job: Remind, url: str, clock: FrozenClock
) -> None:
    await job.scheduled("a", "0 9 * * *").create(7)
    other = Mainspring(url, clock=clock)
    async with other, caller("asyncpg", url) as one:
        await other.schedules.update("a", tags=["b"], connection=one.connection)
        await other.schedules.trigger("a", connection=one.connection)
        await one.commit()
    (run_id,) = await run_ids(app)
    run = await app.runs.find(run_id)
    assert (run.payload, run.tags) == ({"customer": 7}, ["b"])


@pytest.mark.parametrize("library", ["asyncpg", "psycopg", "async sqlalchemy on asyncpg", "sqlalchemy"])
async def test_what_is_overdue_is_decided_and_what_is_staged_withdrawn(
    app: Mainspring, job: Remind, url: str, clock: FrozenClock, connection: Connection, library: str
) -> None:
    for name in ("put", "put-by-name", "updated", "paused", "deleted"):
        await job.scheduled(name, "0 * * * *").create(1)
    firing = Firing(connection, clock)
    await clock.advance(HOUR)
    await firing.fire(horizon=3600.0)  # 01:00, and 02:00 ahead of its time
    async with caller(library, url) as one:
        await job.options(connection=one.connection).scheduled("put", "30 * * * *").put(1)
        await app.schedules.update("updated", when="30 * * * *", connection=one.connection)
        await app.schedules.pause("paused", connection=one.connection)
        await app.schedules.delete("deleted", connection=one.connection)
        await one.commit()
    await clock.advance(HOUR)
    await firing.fire()
    first, half, second = (NEW_YEAR + hours * HOUR for hours in (1, 1.5, 2))
    for name in ("put", "updated"):
        assert await outcomes(app, name) == [(first, first, "fired"), (half, half, "fired")]
    assert await outcomes(app, "paused") == [(first, first, "fired")]
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


# ── what is held until then ─────────────────────────────────────────────────────────────────────────────────────


async def test_schedulers_pass_over_what_a_caller_holds_and_fire_it_afterwards(
    app: Mainspring, job: Remind, url: str, clock: FrozenClock, connection: Connection
) -> None:
    for name in ("paused", "updated", "triggered"):
        await job.scheduled(name, "0 * * * *").create(1)
    await clock.advance(HOUR)
    firing = Firing(connection, clock)
    async with caller("asyncpg", url) as one:
        await app.schedules.trigger("triggered", connection=one.connection)
        await app.schedules.pause("paused", connection=one.connection)
        await app.schedules.update("updated", tags=["a"], connection=one.connection)
        for lane in range(LANES):
            await firing.fire_lane(lane)
        fired = [each.name for each in await app.schedules.list() if each.next_at != NEW_YEAR + HOUR]
        assert fired == ["triggered"], "a trigger holds nothing"
        await one.rollback()
    await firing.fire()
    assert len(await run_ids(app)) == 3


async def test_who_changes_the_same_schedule_waits_for_the_caller(app: Mainspring, job: Remind, url: str) -> None:
    await job.scheduled("a", "0 9 * * *").create(1)
    async with caller("asyncpg", url) as one:
        await app.schedules.pause("a", connection=one.connection)
        updating = asyncio.create_task(app.schedules.update("a", tags=["b"]))
        await until_someone_waits_for_a_lock(one.connection)
        await one.commit()
    found = await updating
    assert (found.state, found.tags) == ("paused", ["b"])


# ── what the caller keeps ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("library", ["asyncpg", "async psycopg", "async sqlalchemy on asyncpg"])
async def test_the_callers_search_path_and_transaction_survive_a_refusal(
    app: Mainspring, job: Remind, url: str, connection: Connection, library: str
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
        many = [job.scheduled(name, "0 9 * * *").request(1) for name in ("a", "b", "taken")]
        with pytest.raises(ScheduleExists, match="none of the batch was made"):
            await app.schedules.create_many(many, connection=one.connection)
        with pytest.raises(InvalidInput, match="must be after the present"):
            await app.schedules.pause("taken", until=NEW_YEAR, connection=one.connection)
        await own.scheduled("free", "0 9 * * *").create(1)
        path = "do $$ begin assert current_setting('search_path') = 'pg_catalog'; end $$"
        await _execute(library, one.connection, path)
        await one.commit()
    assert await names(app) == ["free", "taken"]
    cursors = "select count(*) from mainspring.cursor where schedule_id not in (select id from mainspring.schedule)"
    assert await connection.fetchval(cursors) == 0, "what is refused leaves nothing behind"


REFUSE_RUNS = """
create function mainspring.refuse() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$;
create trigger refuse before insert on mainspring.ready for each row execute function mainspring.refuse()
"""


@pytest.mark.parametrize("library", ["asyncpg", "async psycopg", "async sqlalchemy on asyncpg"])
async def test_a_triggered_run_that_is_refused_leaves_the_callers_transaction_alone(
    app: Mainspring, job: Remind, url: str, connection: Connection, library: str
) -> None:
    await job.scheduled("triggered", "0 9 * * *").create(1)
    await connection.execute(REFUSE_RUNS)
    async with caller(library, url) as one:
        await job.options(connection=one.connection).scheduled("before", "0 9 * * *").create(1)
        with pytest.raises(Exception, match="no room"):
            await app.schedules.trigger("triggered", connection=one.connection)
        await job.options(connection=one.connection).scheduled("after", "0 9 * * *").create(1)
        await one.commit()
    assert await names(app) == ["after", "before", "triggered"]
    assert await run_ids(app) == []


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
    with pytest.raises(InvalidInput, match="has none open"):
        await app.schedules.trigger("a", connection=connection)
    await connection.close()


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg_async"])
async def test_a_connection_of_sqlalchemy_that_commits_by_itself_is_refused(
    app: Mainspring, job: Remind, url: str, driver: str
) -> None:
    pytest.importorskip("greenlet", reason="SQLAlchemy's asyncio needs greenlet")
    engine = create_async_engine(engine_url(url, driver), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    await job.scheduled("a", "0 9 * * *").create(1)
    async with engine.connect() as connection:
        for change in (app.schedules.trigger, app.schedules.pause, app.schedules.delete):
            with pytest.raises(InvalidInput, match="has none open") as caught:
                await change("a", connection=connection)
            assert caught.value.code == "no-transaction"
            assert "AUTOCOMMIT" in (caught.value.hint or "")
    assert [each.state for each in await app.schedules.list()] == ["active"]


async def test_a_blocking_connection_of_sqlalchemy_that_commits_by_itself_is_refused(
    app: Mainspring, job: Remind, url: str
) -> None:
    engine = create_engine(engine_url(url, "psycopg"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(InvalidInput) as caught:
        await asyncio.to_thread(job.options(connection=connection).scheduled("a", "0 9 * * *").create_sync, 1)
    assert caught.value.code == "no-transaction"
    assert await names(app) == []


@pytest.mark.parametrize("library", ASYNC)
async def test_an_async_connection_is_refused_by_the_blocking_twins(
    app: Mainspring, job: Remind, url: str, library: str
) -> None:
    async with caller(library, url) as one:
        scheduled = job.options(connection=one.connection).scheduled("a", "0 9 * * *")
        with pytest.raises(InvalidInput) as caught:
            await asyncio.to_thread(scheduled.create_sync, 1)
        assert caught.value.code == "connection-is-async"
        with pytest.raises(InvalidInput, match="async connection"):
            await asyncio.to_thread(app.schedules.pause_sync, "a", connection=one.connection)
        await one.rollback()


@pytest.mark.parametrize("library", ["asyncpg", "psycopg"])
async def test_another_installation_is_refused(app: Mainspring, job: Remind, empty_url: str, library: str) -> None:
    other = await Database(empty_url).connect("test")
    await migrate(other)
    async with caller(library, empty_url) as one:
        with pytest.raises(ForeignDatabase):
            await job.options(connection=one.connection).scheduled("a", "0 9 * * *").create(1)
        for act in (
            app.schedules.delete("a", connection=one.connection),
            app.schedules.pause("a", connection=one.connection),
            app.schedules.update("a", tags=["b"], connection=one.connection),
            app.schedules.trigger("a", connection=one.connection),
            app.schedules.create_many([job.scheduled("a", "0 9 * * *").request(1)], connection=one.connection),
        ):
            with pytest.raises(ForeignDatabase):
                await act
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
