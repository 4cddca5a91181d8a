"""One PostgreSQL: how to reach it, and with which settings.

A connection that breaks leaves every unanswered COMMIT *unknown*. Nothing here ever cancels one: whoever loses
patience ends the connection instead (`connection.py`), and the owner of the transaction finds out what became of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mainspring.errors import DatabaseUnsuitable, PartitionMissing
from mainspring.store import history, pooler
from mainspring.store.connection import patience
from mainspring.store.failures import DATABASE_ERRORS, unreachable
from mainspring.store.hosts import CONNECT_SECONDS, Hosts, StartupRefused
from mainspring.store.notify import Waker
from mainspring.store.pool import Pool
from mainspring.store.reach import Reach
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from mainspring.errors import NodeUnreachable
    from mainspring.store.connection import Connection

T = TypeVar("T")

SCHEMA = "mainspring"
POOL_SIZE = 2

# Lasting connections plan each statement once, and keep the plan while tables grow from nothing to millions. One made
# while a queue was empty would scan and sort the whole backlog, so here only the indexes made for it are considered.
# Before PostgreSQL 17 `id = any (…)` could still become a scan of the whole lane: there, and on Citus, each use is
# planned anew.
KEEPS_GOOD_PLANS = 17
STEADY_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}

# What roles and databases may have been told otherwise. Our own bounds are shorter: these only clear away on the
# server what its client gave up.
SETTINGS = {
    "search_path": SCHEMA,
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
    "client_min_messages": "warning",  # how a COMMIT says that it did not wait for the standby
    "statement_timeout": "90s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# On Citus, or its hiding of shards makes each look into the catalog slow, and each look at many lanes opens connections
# to nodes that it does not keep; elsewhere they mean nothing.
CITUS_SETTINGS = {"citus.override_table_visibility": "off", "citus.max_adaptive_executor_pool_size": "1"}
HAS_TRANSACTION_TIMEOUT = 17


class SessionMode(Enum):
    """Whether what we set for a connection stays set."""

    OURS = "ours"  # PostgreSQL itself answers
    KEPT = "kept"  # a pooler in session mode
    HANDED_AROUND = "handed around"  # a pooler in transaction mode


class Database:
    """Where the store is. `revive` is called before each attempt to connect: it restarts an embedded server."""

    def __init__(self, url: str, *, revive: Callable[[], None] | None = None) -> None:
        self.url = url
        self._revive = revive
        self._hosts = Hosts(url)
        self._abandoned: set[str] = set()  # names of connections whose server's side may live on
        self._session_mode = SessionMode.OURS
        self.reach = Reach()
        self._pool = Pool(self._connect_for_pool, POOL_SIZE)
        self.waker = Waker(self._connect_for_waking)

    async def connect(
        self, name: str = "client", *, raw_time: bool = False, settings: Mapping[str, str] | None = None
    ) -> Connection:
        """A connection of one's own. With `raw_time`, instants are `(microseconds since 2000,)`: no conversions."""
        connection = await self._reach(name, STEADY_PLANS | dict(settings or {}))
        if raw_time:
            with _ended_unless_ready(connection), patience(connection, CONNECT_SECONDS):
                await connection.set_type_codec(
                    "timestamptz", schema="pg_catalog", encoder=tuple, decoder=tuple, format="tuple"
                )
        return connection

    def acquire(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for a moment, from a small pool that closes what lies idle."""
        return self._pool.acquire()

    async def check_sessions(self) -> None:
        """Refuse a pooler that hands sessions around: workers listen, and keep settings and plans in theirs."""
        if self._session_mode is SessionMode.HANDED_AROUND:
            raise DatabaseUnsuitable(
                "A pooler is between this worker and PostgreSQL, and gives each transaction another session.",
                code="sessions-pooled",
                hint="Give workers a direct connection, or one through a pooler in session mode. Clients may stay.",
            )

    async def _connect_for_pool(self) -> Connection:
        return await self._reach(f"client {secrets.token_hex(4)}", {})

    async def _connect_for_waking(self) -> Connection:
        # What is lost with it is a hint: nobody waits for a disk or a standby.
        return await self._reach(f"wake {secrets.token_hex(4)}", {"synchronous_commit": "off"})

    async def _reach(self, name: str, settings: Mapping[str, str]) -> Connection:
        if self._revive is not None:
            await asyncio.to_thread(self._revive)
        full_name = f"mainspring {name}"
        connection = await self._connect(full_name, SETTINGS | CITUS_SETTINGS | dict(settings))
        connection.send = self.waker.wake
        connection.reach = self.reach
        connection.given_up = partial(self.abandon, full_name)
        with _ended_unless_ready(connection):
            await self._end_abandoned(connection)
            if connection.is_closed():
                raise unreachable("it let us in and ended the connection")
        return connection

    async def _connect(self, full_name: str, settings: dict[str, str]) -> Connection:
        names = {"application_name": full_name}
        if self._session_mode is SessionMode.OURS:
            try:
                return await self._connect_directly(settings | names)
            except StartupRefused:
                self._session_mode = await self._sessions_of_pooler(names)
        return await self._connect_through_pooler(names, settings)

    async def _connect_directly(self, settings: dict[str, str]) -> Connection:
        connection = await self._hosts.connect(server_settings=settings)
        with _ended_unless_ready(connection):
            await _complete_settings(connection)
            if await connection.fetchval("show search_path") != SCHEMA:
                raise StartupRefused  # a pooler that was told to ignore what it does not know
        return connection

    async def _connect_through_pooler(self, names: dict[str, str], settings: dict[str, str]) -> Connection:
        if self._session_mode is SessionMode.HANDED_AROUND:
            connection = await self._hosts.connect(server_settings=names, statement_cache_size=0)
            has_limit = connection.get_server_version().major >= HAS_TRANSACTION_TIMEOUT
            limits = {"transaction_timeout": "0"} if has_limit else {}
            connection.begin_with = pooler.for_transaction(settings | limits)
            return connection
        connection = await self._hosts.connect(server_settings=names)
        with _ended_unless_ready(connection):
            await connection.execute(pooler.for_session(settings))
            await _complete_settings(connection)
        return connection

    async def _sessions_of_pooler(self, names: dict[str, str]) -> SessionMode:
        one = await self._hosts.connect(server_settings=names, statement_cache_size=0)
        other = await self._hosts.connect(server_settings=names, statement_cache_size=0)
        try:
            return SessionMode.KEPT if await pooler.keeps_sessions(one, other) else SessionMode.HANDED_AROUND
        finally:
            one.terminate()
            other.terminate()

    def abandon(self, full_name: str) -> None:
        """A connection of this name was given up: whoever connects next ends what is left of it on the server."""
        self._abandoned.add(full_name)

    async def _end_abandoned(self, connection: Connection) -> None:
        names, self._abandoned = self._abandoned, set()
        if names:
            try:
                await end_connections(connection, names)
            except DATABASE_ERRORS:
                self._abandoned |= names  # for the next one: one that waits for a standby waits without a bound

    async def repaired(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do something, and once more if what was in its way could be removed."""
        try:
            return await act()
        except PartitionMissing as error:
            if not await self.has_repaired(error):
                raise
            return await act()

    async def has_repaired(self, error: BaseException) -> bool:
        """Remove the cause of an error if that is in our power: then the same may be tried again at once."""
        if not isinstance(error, PartitionMissing):
            return False
        with contextlib.suppress(*DATABASE_ERRORS):  # the clock may have stepped over days for which nobody made any
            async with self.acquire() as connection:
                return await history.add_partitions(connection) > 0
        return False

    async def leave_out(self, error: NodeUnreachable) -> bool:
        """Leave out the lanes of a node that is down; answers whether that is news: then others may go on at once."""
        with contextlib.suppress(*DATABASE_ERRORS):
            async with self.acquire() as connection:
                return await self.reach.leave_out(connection, error)
        return False

    async def close(self) -> None:
        await self.waker.close()
        await self._pool.close()


@contextlib.contextmanager
def _ended_unless_ready(connection: Connection) -> Iterator[None]:
    """A connection that is not made ready is not kept."""
    try:
        yield
    except BaseException:
        connection.give_up()
        raise


async def _complete_settings(connection: Connection) -> None:
    """What depends on the version of the server."""
    major = connection.get_server_version().major
    with patience(connection, CONNECT_SECONDS):
        if major >= HAS_TRANSACTION_TIMEOUT:
            await connection.execute("set transaction_timeout = 0")
        # On Citus, a kept plan of a function's call is one that does not know its lane: it stays on the coordinator.
        connection.is_distributed = await connection.fetchval(
            "select exists (select from pg_catalog.pg_extension where extname = 'citus')"
        )
        if major < KEEPS_GOOD_PLANS or connection.is_distributed:
            await connection.execute(
                "select set_config('plan_cache_mode', 'force_custom_plan', false)"
                " where current_setting('plan_cache_mode') = 'force_generic_plan'"
            )


async def end_connections(connection: Connection, full_names: Iterable[str], *, wait: float = 0.0) -> bool:
    """End connections that we lost; answers whether all are gone, so that none can commit any more."""
    names = list(full_names)
    await load("connections/end").fetch(connection, names=names, wait_millis=int(wait * 1_000))
    return int(await load("connections/living").fetchval(connection, names=names)) == 0
