"""Opening the database: what is checked before anyone works on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.migrate import check_schema, installation_of, migrate

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.wiring.location import DatabaseLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open database; once its schema was looked at, how many lanes it has, and which installation it is."""

    database: Database
    server: EmbeddedServer | None = None
    lanes: int = 0
    installation: str = ""

    async def close(self) -> None:
        await self.database.close()
        if self.server is not None:
            await asyncio.to_thread(self.server.release)


def say_nothing(sentence: str) -> None:
    """Nobody listens."""


async def open_database(location: DatabaseLocation, say: Callable[[str], None] = say_nothing) -> Store:
    """Reach the database; an embedded server is started. Its schema is not looked at yet."""
    if location.url is not None:
        return Store(database=Database(location.url))
    assert location.data_directory is not None
    server = await asyncio.to_thread(EmbeddedServer.acquire, location.data_directory, say=say)
    return Store(database=Database(server.dsn, revive=server.ensure_running), server=server)


async def open_store(
    location: DatabaseLocation, say: Callable[[str], None] = say_nothing, *, migrates: bool = False
) -> Store:
    """Open the database for work. The embedded one is migrated by whoever opens it; a server only if told to."""
    store = await open_database(location, say)
    try:
        connection = await store.database.connect("start")
        try:
            if migrates or store.server is not None:
                await migrate(connection, say=say)
            lanes, installation = await check_schema(connection), await installation_of(connection)
        finally:
            await connection.close()
    except BaseException:
        await store.close()
        raise
    return replace(store, lanes=lanes, installation=installation)
