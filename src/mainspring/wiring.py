"""The one place where concrete things are constructed and tied together."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mainspring.clock import Clock, SystemClock
from mainspring.control.dead import DeadLetters
from mainspring.control.definitions import Definitions
from mainspring.control.jobs import Jobs
from mainspring.control.lists import Lists
from mainspring.control.operations import Operations
from mainspring.control.queues import Queues, Workers
from mainspring.control.restored import Restoration
from mainspring.control.results import Results
from mainspring.control.retries import Retries
from mainspring.control.runs import Runs
from mainspring.control.submitter import Submitter
from mainspring.control.watching import Watching
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.keeper import Keeper
from mainspring.keeper.partitioner import Partitioner
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.pruner import Pruner
from mainspring.keeper.rescuer import Rescuer
from mainspring.keeper.sampler import Sampler
from mainspring.keeper.sweeper import Sweeper
from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer, default_data_directory
from mainspring.store.link import Link
from mainspring.store.migrate import check_schema, check_server, installation_of, migrate
from mainspring.worker.charge import Command
from mainspring.worker.isolation.isolation import Isolation
from mainspring.worker.isolation.starter import Starter
from mainspring.worker.process import WorkerProcess
from mainspring.worker.settings import WorkerSettings  # noqa: TC001  msgspec reads ChildConfiguration's annotations
from mainspring.worker.supervisor import Supervisor, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.worker.registry import Registry

VERSION = version("mainspring")
URL_VARIABLE = "MAINSPRING_DATABASE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which database to use: a server by URL, or the embedded one in a directory."""

    url: str | None = None
    data_directory: Path | None = None

    @classmethod
    def chosen(cls, url: str | None = None, data_directory: Path | str | None = None) -> Place:
        """What was asked for, else what the environment says, else the embedded server's usual directory."""
        if url is None and data_directory is None:
            url = os.environ.get(URL_VARIABLE) or None
        if url is not None:
            return cls(url=url)
        return cls(data_directory=Path(data_directory) if data_directory else default_data_directory())


class Store:
    """An open database: how many lanes it has, and which installation it is."""

    def __init__(self, database: Database, lanes: int, server: EmbeddedServer | None) -> None:
        self.database = database
        self.lanes = lanes
        self.server = server
        self.installation = ""

    async def close(self) -> None:
        await self.database.close()
        if self.server is not None:
            await asyncio.to_thread(self.server.release)


def _say_nothing(sentence: str) -> None:
    """Nobody listens."""


async def open_database(place: Place, say: Callable[[str], None] = _say_nothing) -> Store:
    """Reach the database; an embedded server is started. Its schema is not looked at yet."""
    if place.url is not None:
        return Store(Database(place.url), 0, None)
    assert place.data_directory is not None
    server = await asyncio.to_thread(EmbeddedServer.acquire, place.data_directory, say=say)
    return Store(Database(server.dsn, revive=server.ensure_running), 0, server)


async def open_store(place: Place, say: Callable[[str], None] = _say_nothing) -> Store:
    """Open the database for work. The embedded one is migrated by whoever opens it; a server only on command."""
    store = await open_database(place, say)
    try:
        connection = await store.database.connect("start")
        try:
            if store.server is not None:
                await migrate(connection, say=say)
            store.lanes = await check_schema(connection)
            store.installation = await installation_of(connection)
        finally:
            await connection.close()
    except BaseException:
        await store.close()
        raise
    return store


@dataclass(slots=True)
class Services:
    """What an application uses to talk to its store, within one event loop."""

    store: Store
    definitions: Definitions
    submitter: Submitter
    runs: Runs
    dead: DeadLetters
    lists: Lists
    jobs: Jobs
    retries: Retries
    operations: Operations
    results: Results
    queues: Queues
    workers: Workers
    watching: Watching
    restoration: Restoration

    async def close(self) -> None:
        await self.results.close()
        await self.submitter.close()
        await self.store.close()


def services(store: Store, clock: Clock) -> Services:
    runs = Runs(database=store.database, lanes=store.lanes)
    dead = DeadLetters(database=store.database, runs=runs)
    lists = Lists(database=store.database, lanes=store.lanes)
    retries = Retries(database=store.database, clock=clock, runs=runs, dead=dead)
    definitions = Definitions(database=store.database, lanes=store.lanes, installation=store.installation)
    return Services(
        store=store,
        definitions=definitions,
        submitter=Submitter(database=store.database, clock=clock, lanes=store.lanes),
        runs=runs,
        dead=dead,
        lists=lists,
        jobs=Jobs(database=store.database, lanes=store.lanes),
        retries=retries,
        operations=Operations(database=store.database, lists=lists, runs=runs, retries=retries),
        results=Results(database=store.database, clock=clock),
        queues=Queues(database=store.database, lanes=store.lanes),
        workers=Workers(database=store.database),
        watching=Watching(database=store.database, clock=clock, runs=runs),
        restoration=Restoration(database=store.database, clock=clock, lanes=store.lanes),
    )


def worker_process(
    store: Store,
    registry: Registry,
    settings: WorkerSettings,
    *,
    clock: Clock | None = None,
    worker_id: UUID | None = None,
    isolation: Isolation | None = None,
) -> WorkerProcess:
    """A worker, with a keeper beside it if its settings say so. Without `isolation` no run has its own process."""
    clock = clock or SystemClock()
    promoter = Promoter(lanes=store.lanes, clock=clock)
    keeper = Keeper(
        link=Link(store.database, clock, "keeper"),
        clock=clock,
        duties=[
            Partitioner(),
            promoter,
            Rescuer(lanes=store.lanes, clock=clock),
            Expirer(lanes=store.lanes),
            Sampler(),
            Sweeper(lanes=store.lanes),
            Pruner(lanes=store.lanes),
        ],
    )
    return WorkerProcess(
        database=store.database,
        registry=registry,
        settings=settings,
        clock=clock,
        lanes=store.lanes,
        version=VERSION,
        worker_id=worker_id,
        background=keeper.run if settings.keeper else None,
        heard_of_later=lambda: keeper.wake(promoter),
        isolation=isolation,
    )


# ── supervised workers ──────────────────────────────────────────────────────────────────────────────────────────

CHILD_MODULE = "mainspring.app.child"
CHILD_VARIABLE = "MAINSPRING_CHILD"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConfiguration:
    """What any process of ours tells one that it starts to work for an application."""

    app: str
    url: str | None
    data_directory: str | None
    channel: int

    @property
    def place(self) -> Place:
        return Place(url=self.url, data_directory=Path(self.data_directory) if self.data_directory else None)

    def command(self, module: str, variable: str) -> Command:
        # In the environment, which only its owner may read: a URL can hold a password, and arguments are public.
        environment = os.environ | {variable: msgspec.json.encode(self).decode()}
        return Command([sys.executable, "-m", module], environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildConfiguration(ProcessConfiguration):
    """What a supervisor tells the child it starts."""

    settings: WorkerSettings
    worker_id: str


# ── isolated runs ───────────────────────────────────────────────────────────────────────────────────────────────

ZYGOTE_MODULE = "mainspring.app.zygote"
ZYGOTE_VARIABLE = "MAINSPRING_ZYGOTE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteConfiguration(ProcessConfiguration):
    """What a worker process tells the zygote it starts."""

    preload: bool = True  # import the application before forking


def isolation(app_path: str, place: Place) -> Isolation:
    """Processes of their own for the runs of the application at `app_path`."""

    def command(channel: int) -> Command:
        directory = str(place.data_directory) if place.data_directory else None
        configuration = ZygoteConfiguration(app=app_path, url=place.url, data_directory=directory, channel=channel)
        return configuration.command(ZYGOTE_MODULE, ZYGOTE_VARIABLE)

    return Isolation(Starter(command))


def supervisor(
    store: Store, place: Place, app_path: str, settings: WorkerSettings, *, say: Callable[[str], None] = _say_nothing
) -> Supervisor:
    """A supervisor whose children run the application at `app_path`."""

    def command(worker_id: UUID, channel: int) -> Command:
        configuration = ChildConfiguration(
            app=app_path,
            url=place.url,
            data_directory=str(place.data_directory) if place.data_directory else None,
            settings=settings,
            worker_id=str(worker_id),
            channel=channel,
        )
        return configuration.command(CHILD_MODULE, CHILD_VARIABLE)

    clock = SystemClock()
    return Supervisor(
        database=store.database,
        # A database that is back must hear from us well before anyone may wonder whether we live; and a beat that is
        # lost with a server is followed by another: it waits for no standby.
        link=Link(
            store.database,
            clock,
            "supervisor",
            longest_pause=settings.beat_every,
            settings={"synchronous_commit": "off"},
        ),
        clock=clock,
        lanes=store.lanes,
        settings=settings,
        command=command,
        say=say,
    )


async def _check_writable(database: Database) -> None:
    connection = await database.connect("start")
    try:
        await database.check_sessions()
        await check_server(connection)
    finally:
        await connection.close()


async def supervise(
    place: Place, app_path: str, settings: WorkerSettings, *, say: Callable[[str], None] = _say_nothing
) -> int:
    """Run workers until a signal stops them; answers with an exit code."""
    store = await open_store(place, say)
    try:
        await _check_writable(store.database)
        supervising = supervisor(store, place, app_path, settings, say=say)
        stop_on_signals(supervising)
        return await supervising.run()
    finally:
        await store.close()
