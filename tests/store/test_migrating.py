"""Migrations: many may start at once, the present program survives the next one, and a mismatch is said clearly."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from mainspring import RetryPolicy, wiring
from mainspring.errors import (
    DatabaseUnsuitable,
    MainspringError,
    RunFailed,
    SchemaMismatch,
    ValueNotStorable,
)
from mainspring.store import workers
from mainspring.store.database import Database
from mainspring.store.migrate import check_schema, known_migrations, migrate
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from mainspring import Mainspring
    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.store.migrate import Migration


NEWEST = known_migrations()[-1].version
NEXT = NEWEST + 1
NOW_APPLIED = "select array_agg(version order by version) from migration"

MIGRATING_PROGRAM = """
import asyncio, sys
from mainspring.store.database import Database
from mainspring.store.migrate import migrate

async def main():
    connection = await Database(sys.argv[1]).connect()
    print(len(await migrate(connection)))
    await connection.close()

asyncio.run(main())
"""


@pytest.fixture
async def empty(empty_url: str) -> AsyncIterator[Connection]:
    connection = await Database(empty_url).connect("test")
    yield connection
    await connection.close()


async def refusal(work: Awaitable[Any]) -> MainspringError:
    with pytest.raises(MainspringError) as caught:
        await work
    return caught.value


def written(folder: Path, name: str, sql: str) -> list[Migration]:
    """The migrations of this program, and one more."""
    (folder / name).write_text(sql)
    return [*known_migrations(), *known_migrations(folder)]


# ── applying ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_processes_that_start_together_migrate_once(empty_url: str, empty: Connection) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", MIGRATING_PROGRAM, empty_url, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(4)
    ]
    answers = await asyncio.gather(*(process.communicate() for process in processes))

    assert sorted(int(out) for out, _ in answers) == [0, 0, 0, len(known_migrations())]
    assert await empty.fetchval(NOW_APPLIED) == [migration.version for migration in known_migrations()]


async def test_connections_that_migrate_together_take_turns(empty_url: str, empty: Connection) -> None:
    connections = [await Database(empty_url).connect("test") for _ in range(8)]
    applied = await asyncio.gather(*(migrate(connection) for connection in connections))
    for connection in connections:
        await connection.close()

    assert sum(map(len, applied)) == len(known_migrations())
    assert await check_schema(empty) == 8


async def test_migrating_again_changes_nothing(connection: Connection) -> None:
    before = await connection.fetch("select * from migration")

    assert await migrate(connection) == []
    assert await connection.fetch("select * from migration") == before


async def test_it_says_what_it_does(empty: Connection) -> None:
    said: list[str] = []
    await migrate(empty, say=said.append)

    assert said[0] == "applying 0001 create jobs and runs"
    assert len([sentence for sentence in said if sentence.startswith("applying")]) == len(known_migrations())


async def test_lanes_are_fixed_for_life(connection: Connection) -> None:
    await connection.execute("update setting set value = '4' where name = 'lanes'")
    await migrate(connection)

    assert await check_schema(connection) == 4


async def test_a_migration_that_fails_leaves_no_trace_and_can_be_repeated(
    connection: Connection, tmp_path: Path
) -> None:
    broken = written(tmp_path, f"{NEXT:04}_break.sql", "-- serves: 1\ncreate table half (id int); select 1 / 0")
    with pytest.raises(ValueNotStorable):
        await migrate(connection, migrations=broken)

    assert await connection.fetchval("select to_regclass('half')") is None
    assert await connection.fetchval(NOW_APPLIED) == [migration.version for migration in known_migrations()]

    mended = written(tmp_path, f"{NEXT:04}_break.sql", "-- serves: 1\ncreate table half (id int)")
    assert [migration.version for migration in await migrate(connection, migrations=mended)] == [NEXT]


async def test_the_lock_is_given_back_when_a_migration_fails(url: str, connection: Connection, tmp_path: Path) -> None:
    broken = written(tmp_path, f"{NEXT:04}_break.sql", "-- serves: 1\nselect 1 / 0")
    with pytest.raises(ValueNotStorable):
        await migrate(connection, migrations=broken)

    other = await Database(url).connect("test")
    assert await migrate(other) == []
    await other.close()


async def test_a_migration_waits_briefly_for_a_table_and_then_tries_again(
    url: str, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.migrate.LOCK_WAIT", "10ms")
    monkeypatch.setattr("mainspring.store.migrate.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("mainspring.store.migrate.TRIES", 3_000)
    said: list[str] = []
    in_the_way = await Database(url).connect("test")
    await in_the_way.execute("begin; lock table ready in row exclusive mode")

    def say(sentence: str) -> None:
        said.append(sentence)
        if "waiting" in sentence:
            in_the_way.terminate()

    migrations = written(tmp_path, f"{NEXT:04}_widen.sql", "-- serves: 1\nalter table ready add column colour text")
    assert len(await migrate(connection, migrations=migrations, say=say)) == 1
    assert said[:2] == [f"applying {NEXT:04} widen", "waiting for a table that others use"]


async def test_a_migration_that_waits_in_vain_says_what_to_look_for(
    url: str, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.migrate.LOCK_WAIT", "10ms")
    monkeypatch.setattr("mainspring.store.migrate.TRIES", 1)
    in_the_way = await Database(url).connect("test")
    await in_the_way.execute("begin; lock table ready in row exclusive mode")

    migrations = written(tmp_path, f"{NEXT:04}_widen.sql", "-- serves: 1\nalter table ready add column colour text")
    error = await refusal(migrate(connection, migrations=migrations))
    await in_the_way.close()

    assert error.code == "migration-blocked"
    assert "mainspring doctor" in str(error)
    assert await connection.fetchval(NOW_APPLIED) == [migration.version for migration in known_migrations()]


def test_a_migration_says_whom_it_still_serves(tmp_path: Path) -> None:
    (tmp_path / "0002_forget.sql").write_text("select 1")

    with pytest.raises(ValueError, match=r"0002_forget\.sql lacks its line '-- serves: N'"):
        known_migrations(tmp_path)


def test_migrations_are_numbered_without_gaps_and_serve_nobody_newer_than_themselves() -> None:
    migrations = known_migrations()

    assert [migration.version for migration in migrations] == list(range(1, len(migrations) + 1))
    assert all(migration.serves <= migration.version for migration in migrations)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", migration.name) for migration in migrations)


# ── fitting together ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_database_without_a_schema_is_named_as_such(empty: Connection) -> None:
    error = await refusal(check_schema(empty))

    assert (type(error), error.code) == (SchemaMismatch, "schema-missing")
    assert str(error) == "This database has no Mainspring schema yet. Run: mainspring migrate"


async def test_a_schema_older_than_the_program_is_refused(connection: Connection) -> None:
    await connection.execute("delete from migration where version > 1; update migration set version = 0, serves = 0")
    error = await refusal(check_schema(connection))

    assert error.code == "schema-too-old"
    assert str(error) == f"The schema is at migration 0; this program needs {NEWEST}. Run: mainspring migrate"


async def test_a_schema_that_no_longer_serves_the_program_is_refused(connection: Connection) -> None:
    await connection.execute(
        "insert into migration (version, name, serves, checksum) values ($1, 'next', $1, '')", NEXT
    )
    error = await refusal(check_schema(connection))

    assert error.code == "program-too-old"
    assert str(error) == (
        f"The schema no longer serves this program: it needs one that knows migration {NEXT},"
        f" and this one knows {NEWEST}."
        " Upgrade the mainspring package."
    )


async def test_a_newer_schema_that_still_serves_the_program_is_fine(connection: Connection) -> None:
    await connection.execute("insert into migration (version, name, serves, checksum) values ($1, 'next', 1, '')", NEXT)

    assert await check_schema(connection) == 8


async def test_an_application_refuses_a_database_that_was_not_migrated(empty_url: str) -> None:
    error = await refusal(wiring.open_store(wiring.DatabaseLocation(url=empty_url)))

    assert error.code == "schema-missing"


# ── unsuitable servers ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_read_only_database_is_named_as_such(empty: Connection) -> None:
    await empty.execute("set default_transaction_read_only = on")
    error = await refusal(migrate(empty))

    assert (type(error), error.code) == (DatabaseUnsuitable, "database-read-only")
    assert "target_session_attrs=read-write" in str(error)


async def test_a_server_that_is_too_old_is_named_as_such() -> None:
    old = SimpleNamespace(get_server_version=lambda: SimpleNamespace(major=14))
    error = await refusal(migrate(cast("Connection", old)))

    assert (type(error), error.code) == (DatabaseUnsuitable, "server-too-old")
    assert str(error).startswith("The server is PostgreSQL 14; Mainspring needs 15 or newer.")


async def test_a_user_who_may_not_create_the_schema_is_told_what_to_ask_for(empty: Connection) -> None:
    await empty.execute("create role nobody_in_particular; set role nobody_in_particular")
    try:
        error = await refusal(migrate(empty))
    finally:
        await empty.execute("reset role; drop role nobody_in_particular")

    assert (type(error), error.code) == (DatabaseUnsuitable, "permission-missing")
    assert "GRANT CREATE ON DATABASE" in str(error)


# ── a program one version older ─────────────────────────────────────────────────────────────────────────────────

COLUMNS = """
    id uuid, tenant_id int, job_id int, job_version int, line_id int, priority smallint, attempt smallint, fence int,
    crashes smallint, revision int, due_at timestamptz, expires_at timestamptz, codec smallint, payload bytea,
    headers jsonb, tags text[], idempotency_key text, submitted_by text, submitted_at timestamptz, ready_at timestamptz,
    retry_until timestamptz, first_started_at timestamptz, overrides jsonb
"""
NAMES = ", ".join(column.split()[0] for column in COLUMNS.split(","))

# Runs get a colour. Programs that have never heard of it call the old run_of; the next one will call the new.
WIDER_RUNS = f"""-- Give runs a colour.
-- serves: 1
alter type run_row add attribute colour text;
alter table ready add column colour text;
alter table later add column colour text;
alter table held add column colour text;
alter table dead add column colour text;
create or replace function run_of({COLUMNS}) returns run_row language sql immutable parallel safe
    as $$ select row ({NAMES}, null)::mainspring.run_row $$;
create function run_of({COLUMNS}, colour text) returns run_row language sql immutable parallel safe
    as $$ select row ({NAMES}, colour)::mainspring.run_row $$;
"""


@asynccontextmanager
async def working(app: Mainspring) -> AsyncIterator[Any]:
    """A worker of the present program, with its keeper. Nobody beats for it, so its lease time is long."""
    store = (await app.services()).store
    settings = WorkerSettings(slots=100, lease_time=600.0, heartbeat_interval=5.0)
    worker = await wiring.start_worker(store, app.registry, settings)
    try:
        yield worker
    finally:
        await worker.drain(grace=10)


class Programme:
    """Jobs that go every way a run can go."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.tries: Counter[int] = Counter()
        self.gate = asyncio.Event()
        self.all_started = asyncio.Event()
        self.awaited = 0
        soon = RetryPolicy(max_attempts=2, first_delay=RetryPolicy().first_delay * 0)
        self.work: Job[..., int] = app.job(name="work", retry=soon)(self._work)

    async def _work(self, n: int, fails: int = 0) -> int:
        self.tries[n] += 1
        if len(self.tries) == self.awaited:
            self.all_started.set()
        await self.gate.wait()
        if self.tries[n] <= fails:
            raise ValueError("not yet")
        return n

    async def every_way(self, base: int) -> None:
        """Submit, promote, claim, complete, retry, bury, change, cancel: on connections that live on."""
        work = self.work
        plain = await work.submit_many([{"n": base + n} for n in range(20)])
        delayed = await work.options(delay=0.01).submit(n=base + 20)
        keyed = await work.options(key=f"key {base}").submit(n=base + 21)
        retried = await work.submit(n=base + 22, fails=1)
        buried = await work.submit(n=base + 23, fails=2)
        changed = await work.options(delay=3600).submit(n=base + 24)
        cancelled = await work.options(delay=3600).submit(n=base + 25)

        assert await work.options(key=f"key {base}").submit(n=base + 21) == keyed
        await self.app.runs.change(changed.id, priority=1, at=(await changed.find()).submitted_at)
        assert await cancelled.cancel() == "cancelled"
        succeeding = [*plain, delayed, keyed, retried, changed]
        assert [await handle.result(20) for handle in succeeding] == [*range(base, base + 23), base + 24]
        with pytest.raises(RunFailed, match="not yet"):
            await buried.result(20)
        assert (await retried.find()).attempts_spent == 2


async def test_a_program_one_version_older_works_on_after_the_next_migration(
    app: Mainspring, connection: Connection, tmp_path: Path
) -> None:
    programme = Programme(app)
    with capture_logs() as logs:
        async with working(app):
            programme.gate.set()
            await programme.every_way(1_000)  # now every statement has its plan

            programme.gate.clear()
            programme.tries.clear()
            programme.awaited = 50
            under_way = await programme.work.submit_many([{"n": n, "fails": n % 2} for n in range(50)])
            await programme.all_started.wait()
            await migrate(connection, migrations=written(tmp_path, f"{NEXT:04}_give_runs_a_colour.sql", WIDER_RUNS))
            programme.gate.set()

            assert [await handle.result(20) for handle in under_way] == list(range(50))
            await programme.every_way(2_000)

    assert await check_schema(connection) == 8
    assert [log for log in logs if log["log_level"] == "error" and log["event"] != "a run is dead"] == []
    assert await connection.fetchval("select count(*) from lease") == 0
    assert await connection.fetchval("select count(*) from stale") == 0


async def test_a_lease_from_before_the_migration_is_rescued_after_it(
    app: Mainspring, connection: Connection, tmp_path: Path
) -> None:
    programme = Programme(app)
    async with working(app) as worker:
        programme.awaited = 20
        handles = await programme.work.submit_many([{"n": n} for n in range(20)])
        await programme.all_started.wait()
        await migrate(connection, migrations=written(tmp_path, f"{NEXT:04}_give_runs_a_colour.sql", WIDER_RUNS))

        assert await workers.lose_if_silent(connection, worker.id, None)
        assert (await workers.rescue_all(connection, 8, worker.id)).rescued == 20
        assert {(await handle.find()).state for handle in handles} == {"ready"}
        programme.gate.set()
