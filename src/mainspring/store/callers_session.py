"""Our statements inside a caller's transaction, whatever driver that has.

Parameters travel as text, as they do in `callers.py`: `$1::uuid` becomes `$1::text::uuid`, or how the driver spells it.
Our tables are found by a search path that ends with the act. An act is done as a whole or not at all: what is refused
is rolled back to a savepoint, with all that it locked, and the caller's transaction goes on.
"""

from __future__ import annotations

import contextlib
import re
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mainspring.store.callers import our_refusals, rows_of
from mainspring.store.database import SCHEMA
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterable

    from mainspring.store.callers import CallersConnection
    from mainspring.store.connection import Connection
    from mainspring.store.notify import WakeUp

T = TypeVar("T")

_PARAMETER = re.compile(r"\$(\d+)::")
PATH = "select current_setting('search_path')"
SET_PATH = "select set_config('search_path', $1::text, true)"
SAVEPOINT, RELEASE = "savepoint mainspring_act", "release savepoint mainspring_act"
ROLL_BACK = "rollback to savepoint mainspring_act"


class CallersSession:
    """As much of a connection as whoever changes schedules needs."""

    def __init__(self, connection: CallersConnection, *, is_blocking: bool) -> None:
        self._connection = connection
        self._is_blocking = is_blocking
        self._wake_ups: dict[WakeUp, None] = {}

    async def fetch(self, query: str, *args: Any) -> list[dict[str, Any]]:
        places = [int(match[1]) for match in _PARAMETER.finditer(query)]
        statement = _PARAMETER.sub("{}::text::", query.replace("{", "{{").replace("}", "}}"))
        values = [as_text(args[place - 1]) for place in places]
        with our_refusals():
            return await rows_of(self._connection.call(statement, *values), is_blocking=self._is_blocking)

    async def fetchrow(self, query: str, *args: Any) -> dict[str, Any] | None:
        return next(iter(await self.fetch(query, *args)), None)

    async def fetchval(self, query: str, *args: Any) -> Any:
        row = await self.fetchrow(query, *args)
        return None if row is None else next(iter(row.values()))

    async def execute(self, query: str, *args: Any) -> None:
        await self.fetch(query, *args)

    def wake_after_commit(self, wake_ups: Iterable[WakeUp]) -> None:
        self._wake_ups.update(dict.fromkeys(wake_ups))

    async def send_wake_ups(self) -> None:
        """Inside: they leave with the caller's COMMIT, if there is one."""
        if self._wake_ups:
            await load("notify/send").execute(
                cast("Connection", self),
                channels=[each.channel for each in self._wake_ups],
                payloads=[each.payload for each in self._wake_ups],
            )


@asynccontextmanager
async def callers_session(connection: CallersConnection, *, is_blocking: bool) -> AsyncIterator[Connection]:
    """For one act inside the open transaction."""
    connection.check_transaction()
    session = CallersSession(connection, is_blocking=is_blocking)
    await session.execute(SAVEPOINT)
    try:
        path = await session.fetchval(PATH)
        await session.execute(SET_PATH, SCHEMA)
        yield cast("Connection", session)
        await session.send_wake_ups()
        await session.execute(SET_PATH, path)
        await session.execute(RELEASE)
    except BaseException:
        with contextlib.suppress(Exception):  # a connection that is gone has rolled back by itself
            await session.execute(ROLL_BACK)  # which sets the path back, too
            await session.execute(RELEASE)
        raise


def as_text(value: Any) -> str | None:
    """A value as PostgreSQL reads it from text."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            return value.isoformat()
        case list() | tuple():
            return f"{{{','.join(_element(as_text(each)) for each in value)}}}"
        case _:
            return str(value)


def _element(text: str | None) -> str:
    if text is None:
        return "NULL"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run in this thread, without an event loop, what awaits nothing that has to be waited for."""
    try:
        work.send(None)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    work.close()
    raise RuntimeError("something waited for an event loop on a blocking connection")
