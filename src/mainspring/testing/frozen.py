"""A clock that stands still until told to move: for Python, and for every connection of a test database."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.app.mainspring import Mainspring
from mainspring.clock import EPOCH, SystemClock, instant
from mainspring.model.job import checked_at
from mainspring.model.policy import MICROSECOND
from mainspring.store import history
from mainspring.store.database import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from mainspring.store.connection import Connection

# A literal, and not a look into a table: the planner inlines it like the now() it stands for, and replacing the
# function makes every connection plan anew.
_CLOCK_NOW = "create or replace function mainspring.clock_now() returns timestamptz language sql stable parallel safe"
_FROZEN = _CLOCK_NOW + " as 'select timestamptz ''{}'''"
_RUNNING = _CLOCK_NOW + " as 'select now()'"


class FrozenClock:
    """Give it to `Mainspring(clock=…)`, and `freeze` the test database with it.

    Wall time stands still. Monotonic time goes on, and jumps ahead with every `advance`: what measures spans (the
    duties of a keeper, for instance) finds that they have passed. Nobody who sleeps is woken early.
    """

    def __init__(self, at: datetime | None = None) -> None:
        self._host = SystemClock()
        self.at = checked_at(at) or instant(self._host).replace(microsecond=0)
        self._ahead = timedelta(0)
        self._databases: list[Mainspring | Database | Connection] = []

    def micros(self) -> int:
        return (self.at - EPOCH) // MICROSECOND

    def monotonic(self) -> float:
        return self._host.monotonic() + self._ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        await self._host.sleep(seconds)

    def correct(self, micros: int) -> None:
        """The database follows this clock, not the other way round."""

    async def freeze(self, database: Mainspring | Database | Connection) -> None:
        """From now on the database tells this clock's time, on all its connections. For test databases only."""
        self._databases.append(database)
        await self.tell(database)

    def govern(self, app: Mainspring) -> None:
        """Move the database of this application along from now on, which has been told the time already."""
        self._databases.append(app)

    async def thaw(self) -> None:
        """Give the databases their own clocks back."""
        while self._databases:
            async with _connection_of(self._databases.pop()) as connection:
                await connection.execute(_RUNNING)

    async def advance(self, by: timedelta | float) -> None:
        """Let time pass; a number is seconds."""
        await self.set(self.at + (by if isinstance(by, timedelta) else timedelta(seconds=by)))

    async def set(self, at: datetime) -> None:
        """Move to an instant: also back, as a stepped clock would."""
        before, self.at = self.at, checked_at(at) or self.at
        self._ahead += max(timedelta(0), self.at - before)
        for database in self._databases:
            await self.tell(database)

    async def tell(self, database: Mainspring | Database | Connection) -> None:
        """Set the clock of a database."""
        async with _connection_of(database) as connection:
            await connection.execute(_FROZEN.format(self.at.isoformat()))
            await history.add_partitions(connection, days_ahead=1)


@asynccontextmanager
async def _connection_of(database: Mainspring | Database | Connection) -> AsyncIterator[Connection]:
    if isinstance(database, Mainspring):
        database = (await database.services()).store.database
    if isinstance(database, Database):
        async with database.acquire() as connection:
            yield connection
    else:
        yield database
