"""A few connections that are lent for a moment. What does not answer is dropped, what lies idle is closed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mainspring.errors import DatabaseBusy
from mainspring.store.connection import patience
from mainspring.store.failures import DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring.store.connection import Connection

TURN_SECONDS = 60.0  # how long to wait for others to give a connection back; each of their statements is bounded
FRESH_SECONDS = 1.0  # a connection that answered so lately answers now
PING_SECONDS = 2.0
IDLE_SECONDS = 30.0


class Pool:
    """Lends up to `size` connections, each to one user at a time."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._turns = asyncio.Semaphore(size)
        self._free: list[Connection] = []
        self._is_closed = False
        self._closers: dict[Connection, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        await self._take_turn()
        try:
            connection = await self._answering() or await self._connect()
            try:
                yield connection
            except asyncio.CancelledError:
                connection.give_up()  # whatever it was doing is not waited for
                raise
            finally:
                self._give_back(connection)
        finally:
            self._turns.release()

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise DatabaseBusy(
                f"All {self._size} connections of this process have been in use for {TURN_SECONDS:g} s.",
                hint="Look what holds the database up: mainspring doctor",
            ) from None

    async def _answering(self) -> Connection | None:
        """A free connection that answers; those that do not are ended on the way."""
        while self._free:
            connection = self._free.pop()
            self._closers.pop(connection).cancel()
            if await _answers(connection):
                return connection
        return None

    def _give_back(self, connection: Connection) -> None:
        if self._is_closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
            return
        self._free.append(connection)
        self._closers[connection] = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_idle, connection)

    def _close_idle(self, connection: Connection) -> None:
        if self._closers.pop(connection, None) is not None:
            self._free.remove(connection)
            connection.terminate()

    async def close(self) -> None:
        """Close what is free. What is in use is its user's to give back, and closed then."""
        self._is_closed = True
        free, self._free = self._free, []
        for connection in free:
            self._closers.pop(connection).cancel()
            await connection.close()


async def _answers(connection: Connection) -> bool:
    if connection.is_closed():
        return False
    if asyncio.get_running_loop().time() - connection.answered_at < FRESH_SECONDS:
        return True
    try:
        with patience(connection, PING_SECONDS):
            await connection.execute("select 1")
    except BaseException as error:  # whoever asked may be cancelled meanwhile: nobody would have it then
        connection.give_up()
        if not isinstance(error, DATABASE_ERRORS):
            raise
    return not connection.is_closed()
