"""Programs with a database connection of their own: every library that `options(connection=…)` takes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

BLOCKING = ("psycopg", "sqlalchemy", "sqlalchemy session")
ASYNC = ("asyncpg", "asyncpg pool", "async psycopg", "async sqlalchemy on asyncpg", "async sqlalchemy on psycopg")
ALL = (*ASYNC, *BLOCKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A connection in an open transaction, and how to end that."""

    connection: Any
    commit: Callable[[], Awaitable[None]]
    rollback: Callable[[], Awaitable[None]]


@asynccontextmanager
async def caller(library: str, url: str) -> AsyncIterator[Caller]:
    opened = _ASYNC.get(library)
    if opened is not None:
        async with opened(url) as one:
            yield one
        return
    with _BLOCKING[library](url) as connection:
        yield Caller(connection=connection, commit=_later(connection.commit), rollback=_later(connection.rollback))


def _later(call: Callable[[], Any]) -> Callable[[], Awaitable[None]]:
    async def ended() -> None:
        call()

    return ended


async def until_someone_waits_for_a_lock(connection: asyncpg.Connection[Any]) -> None:
    """In this database: others have tests of their own."""
    query = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    while not await connection.fetchval(query):
        await connection.execute("select pg_stat_clear_snapshot()")  # else a transaction sees the same again and again


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield Caller(connection=connection, commit=transaction.commit, rollback=transaction.rollback)
    await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Caller(connection=connection, commit=transaction.commit, rollback=transaction.rollback)


@asynccontextmanager
async def _async_psycopg(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Caller(connection=connection, commit=connection.commit, rollback=connection.rollback)


@asynccontextmanager
async def _async_sqlalchemy(url: str, driver: str) -> AsyncIterator[Caller]:
    pytest.importorskip("greenlet", reason="SQLAlchemy's asyncio needs greenlet")
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(engine_url(url, driver), poolclass=sqlalchemy.NullPool)
    async with engine.connect() as connection:
        yield Caller(connection=connection, commit=connection.commit, rollback=connection.rollback)


def engine_url(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)


def _sqlalchemy_engine(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(engine_url(url, "psycopg"), poolclass=sqlalchemy.NullPool)


_ASYNC: dict[str, Callable[[str], Any]] = {
    "asyncpg": _asyncpg,
    "asyncpg pool": _asyncpg_pool,
    "async psycopg": _async_psycopg,
    "async sqlalchemy on asyncpg": lambda url: _async_sqlalchemy(url, "asyncpg"),
    "async sqlalchemy on psycopg": lambda url: _async_sqlalchemy(url, "psycopg_async"),
}
_BLOCKING: dict[str, Callable[[str], Any]] = {
    "psycopg": psycopg.connect,
    "sqlalchemy": lambda url: _sqlalchemy_engine(url).connect(),
    "sqlalchemy session": lambda url: Session(_sqlalchemy_engine(url)),
}
