"""Opening the database: what is checked before anyone works on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.migrate import check_schema, installation_of, migrate

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.wiring.location import DatabaseLocation


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


def say_nothing(sentence: str) -> None:
    """Nobody listens."""


async def open_database(location: DatabaseLocation, say: Callable[[str], None] = say_nothing) -> Store:
    """Reach the database; an embedded server is started. Its schema is not looked at yet."""
    if location.url is not None:
        return Store(Database(location.url), 0, None)
    assert location.data_directory is not None
    server = await asyncio.to_thread(EmbeddedServer.acquire, location.data_directory, say=say)
    return Store(Database(server.dsn, revive=server.ensure_running), 0, server)


async def open_store(location: DatabaseLocation, say: Callable[[str], None] = say_nothing) -> Store:
    """Open the database for work. The embedded one is migrated by whoever opens it; a server only on command."""
    store = await open_database(location, say)
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
