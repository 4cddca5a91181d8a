"""Programs may connect to any node of a Citus cluster, not only to its coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest

from mainspring import Mainspring
from mainspring.errors import DatabaseUnsuitable
from mainspring.store import history, jobs
from mainspring.store.database import Database
from mainspring.store.migrate import migrate
from mainspring.testing import run_until_idle

from .citus import CITUS_URL, on_citus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.connection import Connection

pytestmark = on_citus


@pytest.fixture
async def elsewhere(coordinator: Connection) -> str:
    """The URL of a worker node."""
    node = await coordinator.fetchval(
        "select nodename || ':' || nodeport from pg_dist_node where groupid <> 0 order by groupid limit 1"
    )
    parts = urlsplit(CITUS_URL)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(parts._replace(netloc=f"{login}{node}"))


@pytest.fixture
async def node(elsewhere: str) -> AsyncIterator[Connection]:
    database = Database(elsewhere)
    connection = await database.connect("test")
    yield connection
    await connection.close()
    await database.close()


async def test_jobs_and_queues_are_registered_through_any_node(citus_app: Mainspring, elsewhere: str) -> None:
    app = Mainspring(elsewhere, submitted_by="tester")
    name = uuid4().hex[:8]

    @app.job(name=f"add_{name}", queue=f"queue-{name}")
    async def add(a: int, b: int) -> int:
        return a + b

    handles = await add.submit_many([{"a": n, "b": 1} for n in range(100)])
    keyed = await add.options(key="once").submit(a=1, b=2)
    assert await add.options(key="once").submit(a=1, b=2) == keyed

    assert await run_until_idle(app) == {"succeeded": 101}
    assert [await handle.result() for handle in handles] == list(range(1, 101))
    await app.close()


async def test_two_nodes_and_the_coordinator_agree_on_a_jobs_number(coordinator: Connection, node: Connection) -> None:
    name = f"job_{uuid4().hex[:8]}"
    there = await jobs.register(node, name, {"a": 1}, actor="tester", tenant_id=1)

    assert await jobs.register(coordinator, name, {"a": 1}, actor="tester", tenant_id=1) == there
    assert there.id >= 1 << 30, "the sequence never reaches it"


async def test_a_run_submitted_to_one_node_is_executed_through_another(citus_app: Mainspring, elsewhere: str) -> None:
    """Wake-ups do not cross nodes: it is found by a look."""

    async def note(n: int) -> int:
        return n

    citus_app.job(note)
    other = Mainspring(elsewhere, submitted_by="tester")
    async with citus_app.running():
        handle = await other.job(note).submit(n=7)
        assert await handle.result(timeout=30) == 7
    await other.close()


async def test_partitions_are_made_by_the_coordinator(coordinator: Connection, node: Connection) -> None:
    days = await coordinator.fetchval(
        "select count(*) from pg_inherits where inhparent = 'mainspring.attempt'::regclass"
    )

    assert await history.add_partitions(node, int(days)) > 0
    assert await history.add_partitions(node, int(days)) == 0


async def test_a_migration_is_sent_to_the_coordinator(node: Connection) -> None:
    with pytest.raises(DatabaseUnsuitable, match="its schema is changed on the coordinator, ") as refused:
        await migrate(node)

    assert refused.value.code == "not-the-coordinator"
