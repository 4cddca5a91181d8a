"""Through PgBouncer: clients in either mode, workers where sessions are kept. Where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE, eventually

from mainspring import Mainspring
from mainspring.errors import DatabaseUnsuitable, IdempotencyConflict
from mainspring.store.database import Database
from mainspring.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.system.replicas import Server

    from .machinery import System

USER = "tester"
PGBOUNCER = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
pytestmark = pytest.mark.skipif(shutil.which(PGBOUNCER) is None, reason="pgbouncer is not installed")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(params=["transaction", "session"])
async def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def bouncer(lone: Server, mode: str, shared_directory: Path) -> AsyncIterator[str]:
    """The URL of a PgBouncer in front of a server."""
    port = _free_port()
    configuration = shared_directory / f"pgbouncer-{port}.ini"
    configuration.write_text(
        f"""[databases]
* = host=127.0.0.1 port={lone.port} user={USER}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {2 if mode == "transaction" else 40}
max_client_conn = 200
"""
    )
    configuration.chmod(0o644)
    process = subprocess.Popen(
        [PGBOUNCER, "-q", "-u", "nobody", str(configuration)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await asyncio.to_thread(_until_it_listens, port)
        yield lone.url.replace(f":{lone.port}", f":{port}")
    finally:
        process.terminate()
        process.wait()


def _until_it_listens(port: int) -> None:
    def does_listen() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    assert eventually(does_listen), "pgbouncer does not listen"


@pytest.fixture
async def shop(bouncer: str) -> AsyncIterator[Mainspring]:
    app = Mainspring(bouncer, submitted_by="tester")
    yield app
    await app.close()


async def test_runs_are_submitted_found_changed_and_cancelled_through_it(shop: Mainspring, lone: Server) -> None:
    """More clients at once than it has connections to the server, so that these are handed around."""

    @shop.job
    async def sell(n: int) -> int:
        return n

    handles = await asyncio.gather(*(sell.submit(n=n) for n in range(100)))
    keyed = await asyncio.gather(*(sell.options(key=f"k{n % 10}").submit(n=n % 10) for n in range(50)))
    later = await sell.options(delay=3_600).submit(n=0)
    many = await sell.submit_many([{"n": n} for n in range(2_500)])

    assert len({handle.id for handle in keyed}) == 10
    assert (await handles[0].find()).state == "ready"
    assert (await shop.runs.change(later.id, priority=1)).priority == 1
    assert await later.cancel(reason="not wanted") == "cancelled"
    assert len((await shop.runs.list(limit=100)).runs) == 100
    assert await lone.ask("select count(*) from ready") == 100 + 10 + len(many)
    with pytest.raises(IdempotencyConflict):
        await sell.options(key="k1").submit(n=2)


async def test_what_we_set_does_not_stay_behind_for_others(shop: Mainspring, bouncer: str, mode: str) -> None:
    @shop.job
    async def sell(n: int) -> int:
        return n

    await asyncio.gather(*(sell.submit(n=n) for n in range(20)))
    if mode == "session":
        await shop.close()
    database = Database(bouncer)
    other = await database._hosts.connect(server_settings={}, statement_cache_size=0)
    await other.execute("begin")

    assert await other.fetchval("show search_path") != "mainspring"
    assert await other.fetchval("show statement_timeout") == "0"
    await other.execute("rollback")
    await other.close()


async def test_workers_want_sessions_that_are_kept(
    shop: Mainspring, bouncer: str, mode: str, system: System, jobs: Any
) -> None:
    tree = system.start(url=bouncer)
    if mode == "transaction":
        assert await asyncio.to_thread(tree.process.wait, PATIENCE) != 0
        with pytest.raises(DatabaseUnsuitable) as refused:
            await _check_sessions(bouncer)
        assert refused.value.code == "sessions-pooled"
        return
    handles = await shop.job(jobs.quick.handler.function).submit_many([{"number": n} for n in range(20)])
    assert [await handle.result(PATIENCE) for handle in handles] == list(range(20))


async def _check_sessions(url: str) -> None:
    database = Database(url)
    connection = await database.connect("start")
    try:
        await database.check_sessions()
    finally:
        await connection.close()


async def test_a_migration_wants_a_session_of_its_own(bouncer: str, mode: str) -> None:
    connection = await Database(bouncer).connect("migrate")
    if mode == "session":
        assert await migrate(connection) == []
    else:
        with pytest.raises(DatabaseUnsuitable) as refused:
            await migrate(connection)
        assert refused.value.code == "sessions-pooled"
    await connection.close()
