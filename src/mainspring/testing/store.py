"""A private PostgreSQL for a test run, and a clean store for every test in it.

A store is cleaned by deleting what moves: that takes a few milliseconds, where a new database would take fifty.
Definitions (jobs and queues) stay: an application that is used by many tests registers them once.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from mainspring import wiring
from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from mainspring.app.mainspring import Mainspring
    from mainspring.testing.frozen import FrozenClock

T = TypeVar("T")

# Every table of ours but those with definitions. Only what has rows is touched.
_CLEAN = """
do $$
declare
    name text;
begin
    for name in
        select relname from pg_class
        where relnamespace = 'mainspring'::regnamespace and relkind in ('r', 'p') and not relispartition
          and relname <> all ('{migration,setting,tenant,lane,job,job_version,line}')
    loop
        execute format('delete from mainspring.%I', name);
    end loop;
end $$
"""


class TestStore:
    """One database on a server of its own, for one test process. Not durable, so fast."""

    __test__ = False  # pytest, this is not a test

    def __init__(self, directory: Path) -> None:
        self._server = EmbeddedServer.acquire(directory, unsafe_for_tests=True, settings={"max_connections": "300"})
        name = f"test_{os.getpid()}"
        self.url = self._server.dsn_for(name)
        _elsewhere(_make(self._server.dsn, name, self.url))

    def clean(self) -> None:
        """Forget every run, and whatever else is not a definition."""
        _elsewhere(_execute(self.url, _CLEAN))

    def lend(self, app: Mainspring, clock: FrozenClock) -> None:
        """Let an application use this store and this clock."""
        app.use(wiring.DatabaseLocation(url=self.url))
        app.clock = clock
        clock.govern(app)
        _elsewhere(_freeze(self.url, clock))

    def close(self) -> None:
        self._server.release()


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop and a thread of its own: whatever the tests use for their loops is not disturbed."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _make(server: str, name: str, url: str) -> None:
    await _execute(server, f'create database "{name}"')  # a name of our own making
    connection = await Database(url).connect("tests")
    try:
        await migrate(connection)
    finally:
        await connection.close()


async def _execute(url: str, sql: str) -> None:
    connection = await Database(url).connect("tests")
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def _freeze(url: str, clock: FrozenClock) -> None:
    connection = await Database(url).connect("tests")
    try:
        await clock.tell(connection)
    finally:
        await connection.close()
