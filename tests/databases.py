"""Fresh databases: copies of templates that are made once per run of the tests."""

from __future__ import annotations

import contextlib
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.embedded import EmbeddedServer

TEMPLATE = "mainspring_template"
NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)  # when time stands still, unless a test says otherwise
FROZEN_TEMPLATE = "mainspring_frozen_template"  # at New Year: to make the partitions of its days takes a while


@contextlib.asynccontextmanager
async def fresh_database(server: EmbeddedServer, template: str = TEMPLATE) -> AsyncIterator[str]:
    """A migrated database that nobody has used, by its URL; gone afterwards."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    admin = await asyncpg.connect(server.dsn)
    try:
        await admin.execute(f"create database {name} template {template} strategy file_copy")
        yield server.dsn_for(name)
        with contextlib.suppress(asyncpg.ObjectInUseError):  # a slow one is still leaving, and all go with the server
            await admin.execute(f"drop database {name} with (force)")
    finally:
        await admin.close()
