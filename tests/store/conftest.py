"""An application on a fresh database whose time stands still, and a database with nothing in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest

from mainspring import Mainspring
from mainspring.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.embedded import EmbeddedServer

NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)


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
