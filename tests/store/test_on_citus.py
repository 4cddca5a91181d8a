"""The same life of a run on a Citus cluster: claims, rescues, retries and ends, distributed by lane.

These run only where MAINSPRING_CITUS_URL names a database on a Citus coordinator that may be emptied: the schema
`mainspring` in it is dropped and made anew.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import RunFailed
from mainspring.model.run import PRIORITIES
from mainspring.store import leases, workers
from mainspring.store.database import Database
from mainspring.store.distribute import MOVING, SHARED
from mainspring.store.migrate import LANES_ON_CITUS, check_schema, migrate
from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    import asyncpg

    Connection = asyncpg.Connection[asyncpg.Record]

CITUS_URL = os.environ.get("MAINSPRING_CITUS_URL", "")

pytestmark = [
    pytest.mark.citus,
    pytest.mark.skipif(not CITUS_URL, reason="MAINSPRING_CITUS_URL names no Citus coordinator"),
    pytest.mark.xdist_group("citus"),
]


@pytest.fixture
async def coordinator() -> AsyncIterator[Connection]:
    connection = await Database(CITUS_URL).connect("test")
    await connection.execute("create extension if not exists citus; drop schema if exists mainspring cascade")
    await migrate(connection)
    yield connection
    await connection.close()


@pytest.fixture
async def citus_app(coordinator: Connection) -> AsyncIterator[Mainspring]:
    assert await check_schema(coordinator) == LANES_ON_CITUS
    app = Mainspring(CITUS_URL, submitted_by="tester")
    yield app
    await app.close()


async def test_moving_tables_are_distributed_by_lane_side_by_side_and_shared_ones_are_everywhere(
    coordinator: Connection,
) -> None:
    placed = await coordinator.fetch(
        "select table_name::text, citus_table_type::text, distribution_column, colocation_id from citus_tables"
    )
    moving = {row["table_name"].rpartition(".")[2]: row for row in placed if row["citus_table_type"] == "distributed"}

    assert set(moving) >= set(MOVING)
    assert {row["distribution_column"] for row in moving.values()} == {"lane"}
    assert len({row["colocation_id"] for row in moving.values()}) == 1
    assert {row["table_name"].rpartition(".")[2] for row in placed} >= set(SHARED)


async def test_runs_are_accepted_claimed_and_completed(citus_app: Mainspring) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    plain = await add.submit_many([{"a": n, "b": 1} for n in range(500)])
    keyed = await add.options(key="once").submit(a=1, b=2)
    assert await add.options(key="once").submit(a=1, b=2) == keyed

    assert await run_until_idle(citus_app) == {"succeeded": 501}
    assert [await handle.result() for handle in [*plain, keyed]] == [*range(1, 501), 3]


async def test_failures_are_retried_and_buried(citus_app: Mainspring) -> None:
    @citus_app.job(retry=RetryPolicy(max_attempts=3, first_delay=RetryPolicy().first_delay * 0))
    async def fail() -> None:
        raise ValueError("never works")

    handle = await fail.submit()

    assert await run_until_idle(citus_app) == {"failed": 3}
    with pytest.raises(RunFailed, match="never works"):
        await handle.result()


async def test_waiting_runs_are_found_changed_and_cancelled(citus_app: Mainspring) -> None:
    @citus_app.job
    async def nothing() -> None: ...

    handle = await nothing.options(delay=3600).submit()

    assert (await handle.find()).state == "scheduled"
    assert (await citus_app.change(handle.id, priority=1, at=datetime.now(UTC))).state == "ready"
    assert await handle.cancel("not needed") == "cancelled"
    assert (await handle.find()).state == "cancelled"


async def test_the_runs_of_a_lost_worker_are_rescued(citus_app: Mainspring, coordinator: Connection) -> None:
    @citus_app.job
    async def nothing() -> None: ...

    handles = await nothing.submit_many([{}] * 20)
    worker_id = uuid4()
    await workers.register(
        coordinator,
        worker_id=worker_id,
        host="here",
        pid=1,
        queues=["default"],
        handlers=["nothing"],
        slots=20,
        lease_seconds=30.0,
        version="test",
    )
    claimed = [await claim(coordinator, lane, worker_id) for lane in range(LANES_ON_CITUS)]
    assert sum(claimed) == 20

    assert await workers.lose_if_silent(coordinator, worker_id, None)
    assert (await workers.rescue_all(coordinator, LANES_ON_CITUS, worker_id)).rescued == 20
    assert await run_until_idle(citus_app) == {"succeeded": 20}
    assert {(await handle.find()).fence for handle in handles} == {2}


async def claim(connection: Connection, lane: int, worker_id: UUID) -> int:
    rows = await leases.claim(
        connection,
        lane=lane,
        line=1,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=100,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    return len(rows)
