"""The keeper's own connection, and what becomes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.waiting import HANGS, until

from mainspring.clock import SystemClock
from mainspring.keeper.keeper import Keeper
from mainspring.store.link import Link

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.database import Database

    Connection = asyncpg.Connection[asyncpg.Record]


class SlowDuty:
    """Something the database takes long for."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def step(self, connection: Connection) -> float:
        self.has_begun.set()
        await connection.execute(HANGS)
        return 60.0

    def forget(self) -> None: ...


async def test_a_keeper_that_ends_in_the_middle_of_a_statement_leaves_no_connection_behind(
    database: Database, connection: Connection
) -> None:
    """An event loop that ends with one left open in this state may wait for it for ever."""
    clock, duty = SystemClock(), SlowDuty()
    keeping = asyncio.create_task(Keeper(link=Link(database, clock, "keeper"), clock=clock, duties=[duty]).run())
    await duty.has_begun.wait()
    assert await keepers(connection) == 1

    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)

    await until(lambda: has_none(connection))


async def has_none(connection: Connection) -> bool:
    return not await keepers(connection)


async def keepers(connection: Connection) -> int:
    """How many connections of keepers this database has."""
    found: int = await connection.fetchval(
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and application_name like 'mainspring keeper%'"
    )
    return found
