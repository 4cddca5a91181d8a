"""A clock that stands still until told to move: for Python, and for every connection of a test database."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, timedelta
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
_STATEMENT_NOW = _CLOCK_NOW.replace("clock_now", "statement_now")
_STANDING_STILL = f"; {_STATEMENT_NOW} as 'select mainspring.clock_now()'"
_FROZEN = _CLOCK_NOW + " as 'select timestamptz ''{}'''" + _STANDING_STILL
_RUNNING = (
    f"{_CLOCK_NOW} as 'select now()';"
    f" {_STATEMENT_NOW} as 'select mainspring.clock_now() + (statement_timestamp() - now())'"
)

# A journey has many stops. To plan everything anew at each would be dear, and so would partitions for each day: its
# clock is a row after all, and the days that have no partitions of their own share one.
_DEPART = """
drop table if exists mainspring.journey;
create table mainspring.journey as select timestamptz '{}' as at;
create table if not exists mainspring.attempt_journey partition of mainspring.attempt default;
create table if not exists mainspring.log_journey partition of mainspring.log default;
"""
_TRAVELLING = _CLOCK_NOW + " as 'select at from mainspring.journey'" + _STANDING_STILL  # noqa: S608  all ours
_STOP = "update mainspring.journey set at = '{}'"
_HAS_TRAVELLED = "select to_regclass('mainspring.attempt_journey') is not null"
# Where the clock comes to rest, days have partitions of their own, as if a keeper were there; their rows move to them.
_SETTLE = """
do $$
declare
    parent text;
    since constant timestamptz := date_trunc('day', mainspring.clock_now(), 'UTC') - interval '1 day';
begin
    foreach parent in array array['attempt', 'log'] loop
        execute format('alter table mainspring.%1$I detach partition mainspring.%1$s_journey', parent);
    end loop;
    perform mainspring.add_history_partition((since at time zone 'UTC')::date + day) from generate_series(0, 4) as day;
    foreach parent in array array['attempt', 'log'] loop
        execute format('with moving as (delete from mainspring.%1$s_journey'
                       ' where recorded_at >= %2$L and recorded_at < %3$L returning *)'
                       ' insert into mainspring.%1$I select * from moving', parent, since, since + interval '5 days');
        execute format('alter table mainspring.%1$I attach partition mainspring.%1$s_journey default', parent);
    end loop;
    drop table if exists mainspring.journey;
end $$
"""


class FrozenClock:
    """Give it to `Mainspring(clock=…)`, and `freeze` the test database with it.

    Wall time stands still. Monotonic time goes on, and jumps ahead with every `advance`: what measures spans (the
    duties of a keeper, for instance) finds that they have passed. Nobody who sleeps is woken early.
    """

    def __init__(self, at: datetime | None = None) -> None:
        self._host = SystemClock()
        self.at = _in_utc(at) or instant(self._host).replace(microsecond=0)
        self._ahead = timedelta(0)
        self._databases: list[Mainspring | Database | Connection] = []
        self._is_travelling = False

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
                await _add_partitions(connection)

    async def advance(self, by: timedelta | float) -> None:
        """Let time pass; a number is seconds."""
        await self.set(self.at + (by if isinstance(by, timedelta) else timedelta(seconds=by)))

    async def set(self, at: datetime) -> None:
        """Move to an instant: also back, as a stepped clock would."""
        before, self.at = self.at, _in_utc(at) or self.at
        self._ahead += max(timedelta(0), self.at - before)
        for database in self._databases:
            await (self._execute(database, _STOP) if self._is_travelling else self.tell(database))

    async def tell(self, database: Mainspring | Database | Connection) -> None:
        """Set the clock of a database."""
        await self._execute(database, _FROZEN)
        async with _connection_of(database) as connection:
            await _add_partitions(connection)

    @asynccontextmanager
    async def travelling(self) -> AsyncIterator[None]:
        """While this lasts, moving the clock costs little: for a journey with hundreds of stops."""
        for database in self._databases:
            await self._execute(database, _DEPART + _TRAVELLING)
        self._is_travelling = True
        try:
            yield
        finally:
            self._is_travelling = False
            for database in self._databases:
                await self.tell(database)

    async def _execute(self, database: Mainspring | Database | Connection, sql: str) -> None:
        async with _connection_of(database) as connection:
            await connection.execute(sql.format(self.at.isoformat()))


async def _add_partitions(connection: Connection) -> None:
    if await connection.fetchval(_HAS_TRAVELLED):
        await connection.execute(_SETTLE)
    else:
        await history.add_partitions(connection, days_ahead=1)


def _in_utc(at: datetime | None) -> datetime | None:
    """Within a zone, sums and differences would be of wall time."""
    checked = checked_at(at)
    return None if checked is None else checked.astimezone(UTC)


@asynccontextmanager
async def _connection_of(database: Mainspring | Database | Connection) -> AsyncIterator[Connection]:
    if isinstance(database, Mainspring):
        database = (await database.services()).store.database
    if isinstance(database, Database):
        async with database.acquire() as connection:
            yield connection
    else:
        yield database
