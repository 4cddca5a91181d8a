"""One PostgreSQL: how to reach it, what may go wrong on the way, and what COMMIT means.

A connection that breaks leaves every unanswered COMMIT *unknown*. Nothing here ever cancels one: whoever loses
patience aborts the connection instead (`patience`), and the owner of the transaction finds out what became of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from mainspring.errors import DatabaseUnreachable, DatabaseUnsuitable, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from asyncpg.pool import PoolConnectionProxy

    Connection = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]

T = TypeVar("T")

SCHEMA = "mainspring"
CONNECT_SECONDS = 10.0

# Lasting connections plan each statement once, and keep the plan while tables grow from nothing to millions. One made
# while a queue was empty would scan and sort the whole backlog, so here only the indexes made for it are considered.
# Before PostgreSQL 17 `id = any (…)` could still become a scan of the whole lane: there, each use is planned anew.
KEEPS_GOOD_PLANS = 17
STEADY_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}

# What a broken, restarting or failed-over server looks like from here.
CONNECTION_ERRORS: tuple[type[BaseException], ...] = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg says when an operation broke off half-way
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,  # its victim did nothing, and may just do it again
    asyncpg.DiskFullError,  # nothing was done; some space will be made, or the server stops
    OSError,
    TimeoutError,
    DatabaseUnreachable,
    OutcomeUnknown,
)


class Database:
    """Where the store is. `revive` is called before each attempt to connect: it restarts an embedded server."""

    def __init__(self, url: str, *, revive: Callable[[], None] | None = None) -> None:
        self.url = url
        self._revive = revive
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._pool_opening = asyncio.Lock()

    async def connect(self, name: str = "client", *, raw_time: bool = False) -> asyncpg.Connection[asyncpg.Record]:
        """A connection of one's own. With `raw_time`, instants are `(microseconds since 2000,)`: no conversions."""
        if self._revive is not None:
            await asyncio.to_thread(self._revive)
        try:
            connection = await asyncpg.connect(
                self.url, timeout=CONNECT_SECONDS, server_settings=_settings(name) | STEADY_PLANS
            )
        except Exception as error:
            raise _as_connect_error(error) from error
        if connection.get_server_version().major < KEEPS_GOOD_PLANS:
            await connection.execute("set plan_cache_mode = force_custom_plan")
        if raw_time:
            await connection.set_type_codec(
                "timestamptz", schema="pg_catalog", encoder=tuple, decoder=tuple, format="tuple"
            )
        return connection

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection for a moment, from a pool of two that closes what lies idle."""
        pool = self._pool or await self._open_pool()
        try:
            connection = await pool.acquire(timeout=CONNECT_SECONDS)
        except Exception as error:
            raise _as_connect_error(error) from error
        try:
            yield connection
        finally:
            await pool.release(connection)

    async def _open_pool(self) -> asyncpg.Pool[asyncpg.Record]:
        async with self._pool_opening:
            if self._pool is None:
                self._pool = asyncpg.create_pool(
                    self.url,
                    min_size=0,
                    max_size=2,
                    max_inactive_connection_lifetime=30.0,
                    connect=self._connect_for_pool,
                )
                await self._pool
            return self._pool

    async def _connect_for_pool(self, *arguments: Any, **settings: Any) -> asyncpg.Connection[asyncpg.Record]:
        if self._revive is not None:
            await asyncio.to_thread(self._revive)
        return await asyncpg.connect(
            *arguments, **(settings | {"timeout": CONNECT_SECONDS, "server_settings": _settings("client")})
        )

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            try:
                async with asyncio.timeout(5):
                    await pool.close()
            except CONNECTION_ERRORS:
                pool.terminate()


def _settings(name: str) -> dict[str, str]:
    return {
        "search_path": SCHEMA,
        "application_name": f"mainspring {name}",
        "idle_in_transaction_session_timeout": "60s",
        "timezone": "UTC",
        # On Citus, or its hiding of shards makes each look into the catalog slow; elsewhere it means nothing.
        "citus.override_table_visibility": "off",
    }


def _as_connect_error(error: BaseException) -> BaseException:
    """What a person should read when a connection cannot be had."""
    if isinstance(error, (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)):
        return DatabaseUnsuitable(
            f"PostgreSQL refused the user: {error}.",
            code="database-login-refused",
            hint="Check user and password in MAINSPRING_DATABASE_URL.",
        )
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return DatabaseUnsuitable(
            f"{error}.",
            code="database-missing",
            hint="Create the database, or correct MAINSPRING_DATABASE_URL.",
        )
    if isinstance(error, (*CONNECTION_ERRORS, asyncpg.TargetServerAttributeNotMatched)):
        reason = str(error) or type(error).__name__
        return DatabaseUnreachable(
            f"PostgreSQL cannot be reached: {reason}.",
            hint="Check that the server runs and that MAINSPRING_DATABASE_URL names it.",
        )
    return error


def read_only_error() -> DatabaseUnsuitable:
    return DatabaseUnsuitable(
        "The server accepts no writes (it is a standby, or read-only).",
        code="database-read-only",
        hint="Connect to the primary: add target_session_attrs=read-write to MAINSPRING_DATABASE_URL.",
    )


def disk_full_error() -> DatabaseUnsuitable:
    return DatabaseUnsuitable(
        "The disk of PostgreSQL is full; nothing was accepted.",
        code="database-disk-full",
        hint="Make room on that disk; what waits goes on by itself.",
    )


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncIterator[None]:
    """BEGIN … COMMIT, where a COMMIT without an answer is `OutcomeUnknown` and never anything else."""
    frame = connection.transaction()
    await frame.start()
    try:
        yield
    except BaseException:
        with contextlib.suppress(*CONNECTION_ERRORS):  # a broken connection has rolled back by itself
            await frame.rollback()
        raise
    try:
        await frame.commit()
    except CONNECTION_ERRORS as error:
        raise OutcomeUnknown(
            f"The answer to COMMIT was lost ({error}).",
            hint="Look whether the change is there before repeating it.",
        ) from error


async def uncancelled(work: Awaitable[T]) -> T:
    """Finish `work` even if the caller is cancelled meanwhile: a cancelled caller must not cancel a COMMIT."""
    return await asyncio.shield(asyncio.ensure_future(work))


@contextmanager
def patience(connection: Connection, seconds: float) -> Iterator[None]:
    """Abort the connection if what happens inside takes too long: a half-open one would wait for ever."""
    timer = asyncio.get_running_loop().call_later(seconds, connection.terminate)
    try:
        yield
    finally:
        timer.cancel()
