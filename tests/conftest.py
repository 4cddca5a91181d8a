"""One embedded PostgreSQL for the whole test run, a migrated template in it, and a fresh copy for each test."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import shutil
import signal
import sys
import uuid
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest
import uvloop
from hypothesis import HealthCheck, settings
from tests.databases import FROZEN_TEMPLATE, NEW_YEAR, TEMPLATE, fresh_database
from tests.switches import SWITCHES
from tests.system.replicas import lone_server, make_folder, make_template, replicated

from mainspring import Mainspring
from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.grants import statements
from mainspring.store.migrate import migrate
from mainspring.testing import FrozenClock
from mainspring.testing.scratch import PREFIX, claim_scratch, scratch_root, sweep_scratch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.system.replicas import Replicas, Server

    from mainspring.store.connection import Connection
    from mainspring.store.embedded.locks import FileLock
    from mainspring.store.grants import RoleKind

DISK = Path("/tmp")
CLAIMS: list[FileLock] = []
SETTINGS = {
    "max_connections": "300",
    "shared_buffers": "64MB",  # small databases that come and go: each that goes is looked for in all of it
    "autovacuum_naptime": "1min",  # each database is visited so often, and there are a dozen at any time
}

# How long an example takes says more about the machine than about what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


def pytest_configure(config: pytest.Config) -> None:
    """Name this run before the test processes are started, so that the process that starts them can clean up.

    What killed runs left behind is cleaned up here too. A run in the background of a shell ignores Ctrl-C, and so would
    every program that is interrupted here.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.dont_write_bytecode:
        _keep_bytecode(config.rootpath / ".pytest_cache" / "bytecode")
    if not hasattr(config, "workerinput"):
        config.option.testrunuid = getattr(config.option, "testrunuid", None) or uuid.uuid4().hex
        for root in {scratch_root(), DISK}:
            sweep_scratch(root)


def _keep_bytecode(folder: Path) -> None:
    """Apart from the sources, beside which nothing is to be written: else each of a thousand programs compiles anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        for root in {scratch_root(), DISK}:
            shutil.rmtree(_directory_of(config.option.testrunuid, root), ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let test processes mix tests that wait with tests that compute, and begin the longest first: nobody idles.

    Those that look at the same thing, which is costly to make, stay together.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.get_closest_marker("long") is None, md5(_neighbours(item).encode()).digest()))


def _neighbours(item: pytest.Item) -> str:
    shared = item.get_closest_marker("shares")
    return str(shared.args[0]) if shared else item.nodeid


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


def _directory_of(run: str, root: Path) -> Path:
    return root / f"{PREFIX}{run[:12]}"


@pytest.fixture(scope="session")
def shared_directory(pytestconfig: pytest.Config) -> Path:
    """A directory that all test processes of this run share, and that any account can reach."""
    return _claimed(pytestconfig, scratch_root())


@pytest.fixture(scope="session")
def executable_directory(pytestconfig: pytest.Config) -> Path:
    """The same, where programs can be copied to, and executed."""
    root = scratch_root()
    return _claimed(pytestconfig, DISK if os.statvfs(root).f_flag & os.ST_NOEXEC else root)


def _claimed(config: pytest.Config, root: Path) -> Path:
    """The lock stays open as long as this process lives: until then, nobody else sweeps the directory."""
    directory = _directory_of(os.environ.get("PYTEST_XDIST_TESTRUNUID", config.option.testrunuid), root)
    CLAIMS.append(claim_scratch(directory))
    return directory


@pytest.fixture(scope="session")
def server(shared_directory: Path) -> Iterator[EmbeddedServer]:
    """The server of this test run. Fast, not durable: the tests of durability start their own."""
    with EmbeddedServer.acquire(shared_directory / "data", unsafe_for_tests=True, settings=SETTINGS) as server:
        uvloop.run(_make_template(server))
        yield server


async def _make_template(server: EmbeddedServer) -> None:
    """Migrate once per run; the other test processes wait for it, and copy."""
    admin = await asyncpg.connect(server.dsn)
    try:
        await admin.execute("select pg_advisory_lock(7)")
        await _make_once(admin, server, TEMPLATE, migrate)
        await _make_once(admin, server, FROZEN_TEMPLATE, FrozenClock(NEW_YEAR).tell, f"template {TEMPLATE}")
        await admin.execute("select pg_advisory_unlock(7)")
    finally:
        await admin.close()


async def _make_once(
    admin: asyncpg.Connection[asyncpg.Record],
    server: EmbeddedServer,
    name: str,
    prepare: Callable[[Connection], Awaitable[object]],
    options: str = "",
) -> None:
    """A database that has its name when it is complete."""
    if await admin.fetchval("select exists (select from pg_database where datname = $1)", name):
        return
    await admin.execute(f"create database {name}_new {options}")
    connection = await Database(server.dsn_for(f"{name}_new")).connect()
    try:
        await prepare(connection)
    finally:
        await connection.close()  # an event loop with an open connection would wait for ever when it closes
    await admin.execute(f"alter database {name}_new rename to {name}")


@pytest.fixture
async def url(server: EmbeddedServer, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The URL of a fresh, migrated database."""
    template = FROZEN_TEMPLATE if "frozen_app" in request.fixturenames else TEMPLATE
    async with fresh_database(server, template) as url:
        yield url


# ── servers of a test's own ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def stopped_server(shared_directory: Path) -> Path:
    """The data of a migrated server that does not run, made once per run of the tests, to be copied."""
    folder = shared_directory / "stopped"
    with (shared_directory / "stopped.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = make_folder(shared_directory)
            uvloop.run(make_template(made))
            made.rename(folder)
    return folder / "template"


@pytest.fixture
async def lone(stopped_server: Path, shared_directory: Path) -> AsyncIterator[Server]:
    """A server of one's own whose COMMITs can be made to wait for a standby that never comes."""
    async with lone_server(stopped_server, shared_directory) as server:
        yield server


@pytest.fixture
async def replicas(stopped_server: Path, shared_directory: Path) -> AsyncIterator[Replicas]:
    """A primary and its synchronous standby."""
    async with replicated(stopped_server, shared_directory) as replicas:
        yield replicas


@pytest.fixture
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The mechanism that is switched off in this test; none if empty. See `tests.switches`."""
    if request.param:
        SWITCHES[request.param](monkeypatch)
    return str(request.param)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    yield database
    await database.close()


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await database.connect("test")
    yield connection
    await connection.close()


@pytest.fixture
async def app(url: str) -> AsyncIterator[Mainspring]:
    """An application on a fresh database."""
    app = Mainspring(url, submitted_by="tester")
    yield app
    await asyncio.shield(app.close())


@pytest.fixture
async def new_role(
    url: str, connection: asyncpg.Connection[asyncpg.Record]
) -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Make a role with what `mainspring grants` gives these kinds, where nobody has anything else; answers its name."""
    roles: list[str] = []
    await connection.execute(
        "revoke all on schema mainspring from public; revoke all on all tables in schema mainspring from public;"
        " revoke all on all functions in schema mainspring from public; revoke all on schema public from public"
    )

    async def new_role(*kinds: RoleKind) -> str:
        roles.append(f"role_{uuid.uuid4().hex[:16]}")
        await connection.execute(f"create role {roles[-1]} login")
        for statement in statements(roles[-1], kinds) if kinds else []:
            await connection.execute(statement)
        return roles[-1]

    yield new_role
    for role in roles:
        await connection.execute(f"reset role; drop owned by {role}; drop role {role}")
