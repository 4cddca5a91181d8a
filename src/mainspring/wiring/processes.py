"""Processes that work for an application: supervised workers, and the zygote that isolated runs are forked from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mainspring.clock import SystemClock
from mainspring.store.migrate import check_server
from mainspring.wiring.heartbeats import heartbeat_link
from mainspring.wiring.location import DatabaseLocation
from mainspring.wiring.store import open_store, say_nothing
from mainspring.worker.isolation.isolation import Isolation
from mainspring.worker.isolation.pool import ChildPool
from mainspring.worker.settings import WorkerSettings  # noqa: TC001  msgspec reads ChildConfiguration's annotations
from mainspring.worker.supervised import ProcessCommand
from mainspring.worker.supervisor import Supervisor, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.store.database import Database
    from mainspring.wiring.store import Store

CHILD_MODULE = "mainspring.app.child"
CHILD_VARIABLE = "MAINSPRING_CHILD"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConfiguration:
    """What any process of ours tells one that it starts to work for an application."""

    app: str
    url: str | None = field(repr=False)  # it may hold a password
    data_directory: str | None
    channel: int

    @property
    def location(self) -> DatabaseLocation:
        return DatabaseLocation(url=self.url, data_directory=Path(self.data_directory) if self.data_directory else None)

    def command(self, module: str, variable: str) -> ProcessCommand:
        # In the environment, which only its owner may read: a URL can hold a password, and arguments are public.
        environment = os.environ | {variable: msgspec.json.encode(self).decode()}
        return ProcessCommand([sys.executable, "-m", module], environment)


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


def isolation(app_path: str, location: DatabaseLocation) -> Isolation:
    """Processes of their own for the runs of the application at `app_path`."""

    def command(channel: int) -> ProcessCommand:
        directory = str(location.data_directory) if location.data_directory else None
        configuration = ZygoteConfiguration(app=app_path, url=location.url, data_directory=directory, channel=channel)
        return configuration.command(ZYGOTE_MODULE, ZYGOTE_VARIABLE)

    return Isolation(ChildPool(command))


def supervisor(
    store: Store,
    location: DatabaseLocation,
    app_path: str,
    settings: WorkerSettings,
    *,
    say: Callable[[str], None] = say_nothing,
) -> Supervisor:
    """A supervisor whose children run the application at `app_path`."""

    def command(worker_id: UUID, channel: int) -> ProcessCommand:
        configuration = ChildConfiguration(
            app=app_path,
            url=location.url,
            data_directory=str(location.data_directory) if location.data_directory else None,
            settings=settings,
            worker_id=str(worker_id),
            channel=channel,
        )
        return configuration.command(CHILD_MODULE, CHILD_VARIABLE)

    clock = SystemClock()
    return Supervisor(
        database=store.database,
        link=heartbeat_link(store.database, clock, settings),
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
    location: DatabaseLocation, app_path: str, settings: WorkerSettings, *, say: Callable[[str], None] = say_nothing
) -> int:
    """Run workers until a signal stops them; answers with an exit code."""
    store = await open_store(location, say)
    try:
        await _check_writable(store.database)
        supervising = supervisor(store, location, app_path, settings, say=say)
        stop_on_signals(supervising)
        return await supervising.run()
    finally:
        await store.close()
