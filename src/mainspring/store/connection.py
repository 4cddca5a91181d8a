"""A connection of ours: every wait has a bound, every error its meaning, and wake-ups leave after COMMIT.

Whoever loses patience ends the connection; no statement is ever cancelled, because the cancel could hit a COMMIT.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from mainspring.errors import DatabaseUnreachable, NodeUnreachable, OutcomeUnknown
from mainspring.store.failures import DATABASE_ERRORS, translated, unreachable
from mainspring.store.reach import Reach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from asyncpg.transaction import Transaction

    from mainspring.store.notify import WakeUp

    _Base = asyncpg.Connection[asyncpg.Record]
else:
    _Base = asyncpg.Connection  # which has no parameters at run time

T = TypeVar("T")

Record = asyncpg.Record

ANSWER_SECONDS = 30.0  # how long an answer may take
CLOSE_SECONDS = 5.0  # how long a good-bye may take
# A peer that vanished without a word is noticed by the kernel: after so long without an acknowledgement.
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 10, 5, 3
UNACKNOWLEDGED_SECONDS = 20
# How the server says, among other things, that somebody cancelled a COMMIT's wait for the standby (pg_cancel_backend);
# the COMMIT then answers as if all were well.
_WARNING = "01000"
CONFIRM = "select pg_logical_emit_message(true, 'mainspring', '')"


class Connection(_Base):
    """As asyncpg's, with our bounds and errors."""

    _loop: asyncio.AbstractEventLoop
    _transport: asyncio.Transport

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.answer_seconds = ANSWER_SECONDS
        self.answered_at = self._loop.time()
        self.reach = Reach()
        self.is_distributed = False  # whether the database is spread over the nodes of a Citus cluster
        self.begin_with = ""  # what each transaction sets for itself, where a pooler hands sessions around
        self.send: Callable[[Iterable[WakeUp]], None] | None = None
        self.given_up: Callable[[], None] | None = None  # to be told that its server's side may live on
        self._wake_ups: list[WakeUp] = []
        self._question = 0  # odd while one waits for its answer
        self._has_given_up = False
        self._was_warned = False
        _mind_silent_peer(self._transport)

    # ── bounded and translated ──────────────────────────────────────────────────────────────────────────────

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        if self.begin_with and query.startswith("BEGIN"):
            return await self._answered(super().execute(query + self.begin_with))
        if self.begin_with and query.startswith(("COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")):
            return await self._answered(super().execute(query))
        return await self._perform(partial(super().execute, query, *args))

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        return await self._perform(partial(super().fetch, query, *args, **options))

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._perform(partial(super().fetchrow, query, *args, **options))

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._perform(partial(super().fetchval, query, *args, **options))

    async def copy_records_to_table(self, table_name: str, **options: Any) -> str:
        return await self._perform(partial(super().copy_records_to_table, table_name, **options))

    async def add_listener(self, channel: str, callback: Any) -> None:
        with _translated():
            await super().add_listener(channel, callback)

    async def set_type_codec(self, typename: str, **options: Any) -> None:
        await self._answered(super().set_type_codec(typename, **options))

    async def _perform(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Behind a pooler each statement is a transaction that brings its own settings."""
        if self.begin_with and not self.is_in_transaction():
            async with transaction(self):
                return await self._answered(operation())
        return await self._answered(operation())

    async def _answered(self, operation: Awaitable[T]) -> T:
        self._question += 1
        began = self._loop.time()
        timer = self._loop.call_later(self.answer_seconds, self._lose_patience, self._question)
        try:
            answer = await operation
            if self._was_warned:
                await self._confirm()
        except Exception as error:
            if self._has_given_up:
                raise unreachable(f"it did not answer within {self.answer_seconds:g} s") from error
            meaning = translated(error)
            if meaning is error:
                raise
            if isinstance(meaning, NodeUnreachable):
                meaning.asked_at, meaning.failed_at = began, self._loop.time()
            raise meaning from error
        finally:
            timer.cancel()
            self._question += 1
        self.answered_at = self._loop.time()
        return answer

    def _lose_patience(self, question: int) -> None:
        """Perhaps it was us who could not listen, and the answer is here by now: it goes first."""
        self._loop.call_soon(self._give_up, question)

    def _give_up(self, question: int) -> None:
        if question == self._question:
            self._has_given_up = True
            self.give_up()

    def give_up(self) -> None:
        """End the connection here and now; whoever connects next ends its server's side, which may not know."""
        if not self.is_closed() and self.given_up is not None:
            self.given_up()
        self.terminate()

    async def close(self, *, timeout: float | None = None) -> None:
        """Say good-bye to the server, or leave without a word if it does not listen."""
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await super().close()
        self.terminate()

    def get_reset_query(self) -> str:
        return ""  # what a user of the pool sets is set for its transaction only

    # ── COMMIT that did not wait ────────────────────────────────────────────────────────────────────────────

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        super()._process_log_message(fields, last_query)  # type: ignore[misc]
        if fields.get("C") == _WARNING:
            self._was_warned = True

    async def _confirm(self) -> None:
        """The server warned: perhaps that it answers before the standby has what was committed. Write after it."""
        self._was_warned = False
        if self.is_in_transaction():
            return  # its COMMIT is still to come
        await super().execute(CONFIRM)
        if self._was_warned:
            raise OutcomeUnknown(
                "A wait for the standby was cancelled on the server.", hint="Look whether the change is there."
            )

    # ── wake-ups ────────────────────────────────────────────────────────────────────────────────────────────

    def wake_after_commit(self, wake_ups: Iterable[WakeUp]) -> None:
        """Send these when the open transaction has committed; at once if none is open."""
        self._wake_ups.extend(wake_ups)
        if not self.is_in_transaction():
            self.send_wake_ups()

    def send_wake_ups(self) -> None:
        wake_ups, self._wake_ups = self._wake_ups, []
        if wake_ups and self.send is not None:
            self.send(wake_ups)

    def forget_wake_ups(self) -> None:
        self._wake_ups.clear()


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncIterator[None]:
    """BEGIN … COMMIT, where a COMMIT without an answer is `OutcomeUnknown` and never anything else."""
    with _translated():
        frame = connection.transaction()
        await frame.start()
    try:
        yield
    except BaseException:
        connection.forget_wake_ups()
        await _roll_back(frame)
        raise
    try:
        with _translated():
            await frame.commit()
    except OutcomeUnknown:
        connection.forget_wake_ups()
        raise
    except DatabaseUnreachable as error:
        connection.forget_wake_ups()
        raise OutcomeUnknown(
            f"The answer to COMMIT was lost ({error.message}).",
            hint="Look whether the change is there before repeating it.",
        ) from error
    connection.send_wake_ups()


@asynccontextmanager
async def snapshot(connection: Connection) -> AsyncIterator[None]:
    """One view of everything, for reading only."""
    with _translated():
        frame = connection.transaction(isolation="repeatable_read", readonly=True)
        await frame.start()
    try:
        yield
    finally:
        await _roll_back(frame)


async def _roll_back(frame: Transaction) -> None:
    with contextlib.suppress(*DATABASE_ERRORS), _translated():  # a broken connection has rolled back by itself
        await frame.rollback()


@contextmanager
def _translated() -> Iterator[None]:
    """For what asyncpg says before it asks the server anything: that the connection is closed, or busy."""
    try:
        yield
    except asyncpg.InterfaceError as error:
        raise translated(error) from error


async def uncancelled(work: Awaitable[T]) -> T:
    """Finish `work` even if the caller is cancelled meanwhile: a cancelled caller must not cancel a COMMIT."""
    return await asyncio.shield(asyncio.ensure_future(work))


@contextmanager
def patience(connection: Connection, seconds: float) -> Iterator[None]:
    """Give every answer inside so long, instead of what answers usually have."""
    usual, connection.answer_seconds = connection.answer_seconds, seconds
    try:
        yield
    finally:
        connection.answer_seconds = usual


def _mind_silent_peer(transport: asyncio.BaseTransport) -> None:
    """Let the kernel end a connection whose other side no longer acknowledges anything."""
    inside = transport.get_extra_info("socket")
    if inside is None or inside.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(inside.fileno())) as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
            ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
            ("TCP_KEEPCNT", KEEPALIVE_COUNT),
            ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_SECONDS * 1_000),
        ):
            if hasattr(socket, name):  # not every system has all of them
                ours.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
