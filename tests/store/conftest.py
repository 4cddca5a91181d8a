"""An application on a fresh database whose time stands still, a database with nothing in it, and a Citus cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest
import uvloop
from tests.databases import NEW_YEAR

from mainspring import Mainspring
from mainspring.store.database import Database
from mainspring.store.distribute import MOVING
from mainspring.store.migrate import LANES_ON_CITUS, check_schema, migrate
from mainspring.testing import FrozenClock

from .citus import CITUS_URL
from .racing import Party, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer


CITUS_SECONDS = 85.0  # to empty or drop some hundred shards takes its time where others work, too


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NEW_YEAR)


@pytest.fixture
async def frozen_app(url: str, clock: FrozenClock) -> AsyncIterator[Mainspring]:
    app = Mainspring(url, clock=clock, submitted_by="tester")
    await clock.freeze(app)
    yield app
    await app.close()


@pytest.fixture
async def empty_url(server: EmbeddedServer) -> AsyncIterator[str]:
    """The URL of a database that has not been migrated."""
    name = f"empty_{uuid4().hex[:12]}"
    admin = await asyncpg.connect(server.dsn)
    await admin.execute(f"create database {name}")
    yield server.dsn_for(name)
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def stage(frozen_app: Mainspring, clock: FrozenClock, database: Database) -> AsyncIterator[Stage]:
    """Two parties that meet at any statement, a third, and somebody who looks."""
    services = await frozen_app.services()
    connections = [await database.connect(f"party {number}") for number in range(4)]
    parties = [Party(each, services, clock) for each in connections[1:]]
    async with clock.travelling():  # each meeting sets the clock, and nothing is to be planned anew for that
        yield Stage(frozen_app, clock, connections[0], parties)
    for each in connections:
        await each.close()


# ── on a Citus cluster ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def cluster() -> None:
    """The schema, made anew and distributed. It takes a while, so all tests share it."""

    async def prepare() -> None:
        connection = await Database(CITUS_URL).connect("test")
        connection.answer_seconds = CITUS_SECONDS
        await connection.execute("create extension if not exists citus; drop schema if exists mainspring cascade")
        await migrate(connection)
        await connection.close()

    uvloop.run(prepare())


@pytest.fixture
async def coordinator(cluster: None) -> AsyncIterator[Connection]:
    database = Database(CITUS_URL)
    connection = await database.connect("test")
    connection.answer_seconds = CITUS_SECONDS
    yield connection
    await connection.close()
    await database.close()  # who keeps the house sends wake-ups, over a connection of their own


@pytest.fixture
async def citus_app(coordinator: Connection) -> AsyncIterator[Mainspring]:
    await coordinator.execute(f"truncate {', '.join(table for table in MOVING if table != 'lane')}")
    assert await check_schema(coordinator) == LANES_ON_CITUS
    app = Mainspring(CITUS_URL, submitted_by="tester")
    yield app
    await app.close()
