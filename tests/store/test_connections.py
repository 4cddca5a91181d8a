"""Every wait has a bound, from connecting to COMMIT; what was given up is ended on the server, too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.system.proxy import Mode, Proxy
from tests.waiting import HANGS, SOMEBODY_WAITS, until

from mainspring import Mainspring
from mainspring.errors import DatabaseUnreachable, DatabaseUnsuitable, OutcomeUnknown
from mainspring.store import connection as connections
from mainspring.store import hosts, notify, pool
from mainspring.store.connection import patience, snapshot, transaction
from mainspring.store.database import SETTINGS, Database
from mainspring.store.hosts import Host, hosts_of
from mainspring.store.link import Link
from mainspring.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from tests.system.replicas import Server

    from mainspring.store.connection import Connection

LOCK = "select pg_advisory_lock(1)"
SOON = 0.5
OURS = "select count(*) from pg_stat_activity where datname = current_database() and application_name like $1"


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy


@pytest.fixture
async def behind(proxy: Proxy) -> AsyncIterator[Database]:
    """A database behind a proxy that can hold everything."""
    database = Database(proxy.url)
    yield database
    proxy.open_up()
    await database.close()


# ── bounds ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ask", ["execute", "fetch", "fetchrow", "fetchval", "copy"])
async def test_a_connection_that_falls_silent_is_given_up(proxy: Proxy, behind: Database, ask: str) -> None:
    connection = await behind.connect("silent")
    connection.answer_seconds = SOON
    proxy.hold_everything()

    asked = partial(connection.copy_records_to_table, "setting", records=[("a", "b")])
    with pytest.raises(DatabaseUnreachable, match=r"did not answer within 0\.5 s"):
        await (asked() if ask == "copy" else getattr(connection, ask)("select 1"))

    assert connection.is_closed()


@pytest.mark.invariant(1)
async def test_a_commit_that_falls_silent_is_unknown(proxy: Proxy, behind: Database) -> None:
    connection = await behind.connect("silent")
    connection.answer_seconds = SOON

    async def write() -> None:
        async with transaction(connection):
            await connection.execute("insert into setting values ('a', 'b')")
            proxy.hold_everything()

    with pytest.raises(OutcomeUnknown):
        await write()


async def test_a_server_that_lets_us_in_and_falls_silent_is_given_up(
    proxy: Proxy, behind: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing that is asked after the handshake; it once hung for ever."""
    monkeypatch.setattr("mainspring.store.database.CONNECT_SECONDS", SOON)
    monkeypatch.setattr(connections, "ANSWER_SECONDS", SOON)
    proxy.silent = ""

    with pytest.raises(DatabaseUnreachable):
        await behind.connect("flush", raw_time=True)


async def test_more_time_can_be_given(database: Database, connection: Connection) -> None:
    """Somebody without it, who asked later, has given up before the answer comes."""
    holder, impatient = [await database.connect(name) for name in ("holder", "impatient")]
    connection.answer_seconds = impatient.answer_seconds = SOON
    await holder.execute(LOCK)
    with patience(connection, 60):
        patient = asyncio.create_task(connection.execute(LOCK))
        await until(lambda: holder.fetchval(SOMEBODY_WAITS))
        with pytest.raises(DatabaseUnreachable):
            await impatient.execute(LOCK)
        await holder.close()
        await patient

    assert connection.answer_seconds == SOON


# ── the pool ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pool_drops_what_does_not_answer(
    proxy: Proxy, behind: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both of its connections are half-open: whoever asks next gets an answer all the same."""
    monkeypatch.setattr(pool, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(pool, "PING_SECONDS", SOON)
    async with behind.acquire() as one, behind.acquire() as other:
        await one.execute("select 1")
        await other.execute("select 1")
    for wire in proxy.wires:
        wire.set_mode(Mode.HOLD)

    async with behind.acquire() as connection:
        assert await connection.fetchval("select 1") == 1


async def test_a_pool_lends_each_connection_to_one_at_a_time(database: Database) -> None:
    both_lent = asyncio.Barrier(2)

    async def ask() -> int:
        async with database.acquire() as connection:
            await both_lent.wait()
            await connection.execute("select 1")
            return connection.get_server_pid()

    pids = await asyncio.gather(*(ask() for _ in range(20)))

    assert len(set(pids)) == 2


async def test_a_pool_closes_what_lies_idle(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
    async with database.acquire() as connection:
        await connection.execute("select 1")

    await until(connection.is_closed)


# ── what is given up ────────────────────────────────────────────────────────────────────────────────────────────


async def test_whoever_reconnects_ends_the_former_connection_on_the_server(
    database: Database, connection: Connection
) -> None:
    """One that waits for a lock would stay there, and each that follows beside it."""
    link = Link(database, FrozenClock(), "beat")
    holder = await database.connect("holder")
    async with holder.transaction():
        await holder.execute("lock table worker in share mode")
        for _ in range(5):
            former = await link.get()
            with patience(former, 0.1), pytest.raises(DatabaseUnreachable):
                await former.execute("delete from worker")
            await link.mend()
        await link.get()
        await until(lambda: has_one_left(connection))
    await link.close()
    await holder.close()


async def has_one_left(connection: Connection) -> bool:
    return bool(await connection.fetchval(OURS, "mainspring beat%") == 1)


# ── hosts ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@a/db", [Host("a", None)]),
        ("postgresql://u:p%40x@a:1,b:2/db?sslmode=disable", [Host("a", 1), Host("b", 2)]),
        ("postgresql://[::1]:5432,[fe80::1]/db", [Host("::1", 5432), Host("fe80::1", None)]),
        ("postgresql:///db?host=/var/run&port=5433", [Host("/var/run", 5433)]),
        ("postgresql:///db?host=a,b&port=1,2", [Host("a", 1), Host("b", 2)]),
        ("postgresql:///db?host=a,b&port=1", [Host("a", 1), Host("b", 1)]),
        ("postgresql:///db", []),
    ],
)
def test_the_hosts_of_a_url(url: str, expected: list[Host]) -> None:
    assert hosts_of(url) == expected


async def test_a_host_that_accepts_and_says_nothing_costs_its_short_time_once(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is first in the URL; the one that answered is asked first from then on."""
    monkeypatch.setattr(hosts, "ROUNDS", (0.3, 6.0))
    accepted = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    database = Database(proxy.url.replace("@127.0.0.1", f"@127.0.0.1:{port},127.0.0.1"))
    for _ in range(3):
        connection = await database.connect("client")
        assert await connection.fetchval("select 1") == 1
        await connection.close()

    assert accepted == 1
    silent.close()


async def test_when_no_host_can_be_used_each_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "ROUNDS", (0.3,))

    with pytest.raises(DatabaseUnreachable, match=r"none of 2 hosts .*127\.0\.0\.1:1.*127\.0\.0\.2:1"):
        await Database("postgresql://u@127.0.0.1:1,127.0.0.2:1/db").connect()


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "1ms",
    "transaction_timeout": "5s",  # we lift it by a statement, which has to be over by then
    "default_transaction_isolation": "serializable",
    "search_path": "nowhere",
    "timezone": "Asia/Kathmandu",
    "client_min_messages": "error",
}


async def test_what_a_dba_set_for_the_role_does_not_reach_our_sessions(url: str) -> None:
    admin = await asyncpg.connect(url)
    name = await admin.fetchval("select current_database()")
    await admin.execute("create role hostile login superuser")
    supported = [row["name"] for row in await admin.fetch("select name from pg_settings")]
    try:
        for setting in set(HOSTILE) & set(supported):
            await admin.execute(f"alter role hostile in database {name} set {setting} = '{HOSTILE[setting]}'")
        database = Database(url.replace("mainspring@", "hostile@"))
        connection = await database.connect("client")
        async with database.acquire() as lent:
            for each in (connection, lent):
                told = {setting: await each.fetchval(f"show {setting}") for setting in set(HOSTILE) & set(supported)}
                assert {setting for setting, value in told.items() if value == HOSTILE[setting]} == set()
                assert told["search_path"] == SETTINGS["search_path"]
        await connection.close()
        await database.close()
    finally:
        await admin.execute("drop owned by hostile")
        await admin.execute("drop role hostile")
        await admin.close()


async def test_a_login_that_is_refused_says_so(url: str) -> None:
    with pytest.raises(DatabaseUnsuitable) as refused:
        await Database(url.replace("mainspring@", "nobody_here@")).connect()

    assert refused.value.code == "database-login-refused"


# ── COMMIT that was told not to wait ────────────────────────────────────────────────────────────────────────────


async def test_a_commit_whose_wait_for_the_standby_was_cancelled_is_not_taken_for_done(
    lone: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pg_cancel_backend lets COMMIT answer as if all were well, with a warning: the next write has to be confirmed."""
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 2.0)
    database = Database(lone.url)
    connection = await database.connect("cancelled")

    async def commit() -> None:
        async with transaction(connection):
            await connection.execute("insert into setting values ('a', 'b')")

    async with lone.commits_held():
        committing = asyncio.create_task(commit())
        admin = await asyncpg.connect(lone.url)
        cancel = (
            "select count(pg_cancel_backend(pid)) from pg_stat_activity"
            " where wait_event = 'SyncRep' and application_name = 'mainspring cancelled'"
        )
        await until(lambda: admin.fetchval(cancel))
        with pytest.raises(OutcomeUnknown):
            await committing
        await admin.close()
    await database.close()


# ── what is closed, cancelled or at its end ─────────────────────────────────────────────────────────────────────

OPERATIONS: dict[str, Callable[[Connection], Awaitable[Any]]] = {
    "execute": lambda each: each.execute("select 1"),
    "fetch": lambda each: each.fetch("select 1"),
    "fetchrow": lambda each: each.fetchrow("select 1"),
    "fetchval": lambda each: each.fetchval("select 1"),
    "copy": lambda each: each.copy_records_to_table("setting", records=[("a", "b")]),
    "listen": lambda each: notify.listen(each, lambda channel, payload: None),
    "codec": lambda each: each.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=tuple, decoder=tuple, format="tuple"
    ),
    "transaction": lambda each: _within(transaction(each)),
    "snapshot": lambda each: _within(snapshot(each)),
}


async def _within(frame: AbstractAsyncContextManager[None]) -> None:
    async with frame:
        pass


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_no_error_of_the_driver_comes_from_a_connection_that_is_closed(
    database: Database, operation: str
) -> None:
    connection = await database.connect("closed")
    connection.terminate()

    with pytest.raises(DatabaseUnreachable):
        await OPERATIONS[operation](connection)


async def test_a_connection_that_ends_while_it_is_made_ready_is_not_handed_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of those that were given up are kept for the next one."""

    async def end_oneself(connection: Connection, names: object, **options: object) -> bool:
        await connection.execute("select pg_terminate_backend(pg_backend_pid())")
        raise AssertionError("it is gone")

    database.abandon("mainspring lost")
    with monkeypatch.context() as patched:
        patched.setattr("mainspring.store.database.end_connections", end_oneself)
        with pytest.raises(DatabaseUnreachable):
            await database.connect("client")

    assert database._abandoned >= {"mainspring lost"}


async def test_a_good_bye_to_a_silent_server_takes_no_longer_than_it_may(
    proxy: Proxy, behind: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CLOSE_SECONDS", SOON)
    connection = await behind.connect("silent")
    proxy.hold_everything()

    async with asyncio.timeout(30):
        await connection.close()
    assert connection.is_closed()


async def test_what_a_cancelled_caller_was_doing_is_ended_on_the_server(
    database: Database, connection: Connection
) -> None:
    lingering = "select exists (select from pg_stat_activity where datname = current_database() and query = $1)"

    async def linger() -> None:
        async with database.acquire() as lent:
            await lent.execute(HANGS)

    task = asyncio.create_task(linger())
    await until(lambda: connection.fetchval(lingering, HANGS))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with database.acquire() as lent:
        await lent.fetchval("select 1")
    await until(lambda: connection.fetchval(f"select not ({lingering})", HANGS))


async def test_nobody_is_woken_by_what_is_closed(url: str, connection: Connection) -> None:
    app = Mainspring(url, submitted_by="tester")

    @app.job
    async def sell() -> None: ...

    caller = await asyncpg.connect(url)
    await sell.options(connection=caller).submit()
    await app.close()
    await caller.close()
    waker = (await app.services()).store.database.waker
    await app.close()
    waker.wake([notify.later()])

    assert waker._sending is None or waker._sending.done()
    assert await connection.fetchval(OURS, "mainspring wake%") == 0


async def test_whoever_waits_for_a_turn_waits_no_longer_than_for_the_database(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keyed submissions go one by one; each does not get its own time after all before it had theirs."""
    monkeypatch.setattr("mainspring.control.accepting.ACCEPT_SECONDS", 2.0)
    app = Mainspring(proxy.url, submitted_by="tester")

    @app.job
    async def sell(n: int) -> None: ...

    await sell.options(key="first").submit(n=0)
    proxy.close_down()
    answers = await asyncio.gather(*(sell.options(key=f"k{n}").submit(n=n) for n in range(30)), return_exceptions=True)

    assert {type(answer) for answer in answers} == {DatabaseUnreachable}
    assert sum("it had no turn" in str(answer) for answer in answers) > 20
    proxy.open_up()
    await app.close()
