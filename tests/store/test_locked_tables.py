"""Somebody locks a table of ours: whoever waits for it is told so, and nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.switches import hurry
from tests.system.machinery import eventually

from mainspring.errors import StoreError

if TYPE_CHECKING:
    import asyncpg

    from mainspring import Mainspring
    from mainspring.app.job import Job

    Connection = asyncpg.Connection[asyncpg.Record]


def seller(app: Mainspring) -> Job[Any, None]:
    @app.job
    async def sell() -> None: ...

    return sell


OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "keyed": {"key": "order 17"}, "overridden": {"max_age": 3600.0}}


@pytest.mark.parametrize("kind", OPTIONS)
async def test_a_submission_behind_a_locked_table_says_that_the_database_is_busy(
    app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """No key is in use, and nothing was committed whose outcome could be unknown."""
    hurry(monkeypatch)
    sell = seller(app)
    await sell.submit()
    async with connection.transaction():
        await connection.execute("lock table ready in share mode")
        with pytest.raises(StoreError) as caught:
            await sell.options(**OPTIONS[kind]).submit()
    assert caught.value.code == "database-busy"
    assert await connection.fetchval("select count(*) from ready") == 1


@pytest.mark.parametrize("kind", OPTIONS)
async def test_a_submission_that_waits_for_a_table_is_accepted_when_the_lock_is_gone(
    app: Mainspring, connection: Connection, kind: str
) -> None:
    sell = seller(app)
    await sell.submit()
    async with connection.transaction():
        await connection.execute("lock table ready in share mode")
        submitting = asyncio.ensure_future(sell.options(**OPTIONS[kind]).submit())
        assert await eventually(lambda: _somebody_waits(connection))
    await submitting
    assert await connection.fetchval("select count(*) from ready") == 2


async def _somebody_waits(connection: Connection) -> bool:
    return bool(
        await connection.fetchval(
            "select exists (select from pg_locks where not granted and relation = 'ready'::regclass)"
        )
    )
