"""A connection that can be stopped at any statement boundary, under code that knows nothing of it.

What runs without a transaction of its own is given one, so that there is a boundary between the statement and its
COMMIT: PostgreSQL does the same, only out of sight. There is no boundary before BEGIN: it takes neither a snapshot
nor a lock, so the one after it says the same.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from asyncpg.transaction import Transaction

    from mainspring.store.connection import Connection


class Died(Exception):
    """The process that acted died at a boundary: nothing more comes from it, its transaction is rolled back."""


class Gate:
    """Lets statements pass and stops one: the actor waits there until it may go on or must die."""

    def __init__(self, stop_at: int | None = None) -> None:
        self._stop_at = stop_at
        self._dies = False
        self._go_on = asyncio.Event()
        self.passed: list[str] = []
        self.reached = asyncio.Event()

    async def boundary(self, before: str) -> None:
        if self._dies:
            raise Died
        if len(self.passed) == self._stop_at:
            self.reached.set()
            await self._go_on.wait()
        if self._dies:
            raise Died
        self.passed.append(before)

    def go_on(self) -> None:
        self._go_on.set()

    def die(self) -> None:
        self._dies = True
        self._go_on.set()


class SteppedConnection:
    """Looks like an asyncpg connection to the store."""

    def __init__(self, connection: Connection) -> None:
        self.connection = self._connection = connection
        self.gate = Gate()

    def __getattr__(self, name: str) -> Any:
        """Wake-ups and bounds are the connection's own."""
        return getattr(self._connection, name)

    async def close(self) -> None:
        await self._connection.close()

    async def fetch(self, query: str, *arguments: Any) -> Any:
        return await self._statement(query, lambda: self._connection.fetch(query, *arguments))

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        return await self._statement(query, lambda: self._connection.fetchrow(query, *arguments))

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        return await self._statement(query, lambda: self._connection.fetchval(query, *arguments))

    async def execute(self, query: str, *arguments: Any) -> Any:
        return await self._statement(query, lambda: self._connection.execute(query, *arguments))

    async def copy_records_to_table(self, table: str, **options: Any) -> Any:
        copy = self._connection.copy_records_to_table
        return await self._statement(f"copy {table}", lambda: copy(table, **options))

    async def _statement(self, query: str, run: Callable[[], Awaitable[Any]]) -> Any:
        if self._connection.is_in_transaction():
            await self.gate.boundary(_title(query))
            return await run()
        async with self.transaction():
            await self.gate.boundary(_title(query))
            return await run()

    def transaction(self, **options: Any) -> SteppedTransaction:
        return SteppedTransaction(self._connection.transaction(**options), self)


class SteppedTransaction:
    def __init__(self, frame: Transaction, connection: SteppedConnection) -> None:
        self._frame = frame
        self._connection = connection

    async def start(self) -> None:
        await self._frame.start()

    async def commit(self) -> None:
        try:
            await self._connection.gate.boundary("commit")
        except Died:
            await self._frame.rollback()
            raise
        await self._frame.commit()

    async def rollback(self) -> None:
        await self._frame.rollback()

    async def __aenter__(self) -> None:
        await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.commit()
        else:
            await self.rollback()


class OnlyConnection:
    """Stands in for a Database where the store asks for a connection for a moment."""

    def __init__(self, connection: SteppedConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[SteppedConnection]:
        yield self._connection

    async def repaired(self, act: Callable[[], Awaitable[Any]]) -> Any:
        return await act()


def _title(query: str) -> str:
    """Enough of a statement to know it by in a failure."""
    return " ".join(query.split())[:60]
