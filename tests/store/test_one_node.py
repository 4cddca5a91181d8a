"""On a Citus cluster a hot act is one command to the one node that has its lane, and that node asks no other.

From the coordinator it is traced what is sent to nodes. The same act, asked of the node itself, sends nothing at all.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.run import PRIORITIES
from mainspring.store import dead, leases, runs, workers
from mainspring.store.database import Database
from mainspring.store.distribute import MOVING

from .citus import CITUS_URL, on_citus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring.store.connection import Connection

    Act = Callable[[Connection], Awaitable[Any]]

pytestmark = on_citus

LANE, JOB, LINE, RUNS = 7, 1, 1, 20
ACT = dead.Act(DEFAULT_TENANT, "tester", "{}")
WAITING = """
    select id from ready where lane = $1 union all select id from later where lane = $1
    union all select id from held where lane = $1
"""
DEAD = "select id from dead where lane = $1"
WORKER, LOST = UUID("00000000-0000-4000-8000-00000000aaaa"), UUID("00000000-0000-4000-8000-00000000bbbb")
# Runs of one lane in each place. Some of them are too old, and some staged.
FILL = """
    create temporary table few on commit drop as
    select 7::smallint as lane, n, 1 as tenant_id, 1 as job_id, 1 as job_version, 1 as line_id, 5::smallint as priority,
           '{}'::bytea as payload, clock_now() as now
    from generate_series(1, 20) as n;
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload from few;
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, rank, expires_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, 9000000000000000, now
    from few;
    insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now from few;
    insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, reason, expires_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now, 'no-handler',
           case when n % 2 = 0 then now end
    from few;
    insert into dead (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now from few;
"""


async def claim(connection: Connection, worker_id: UUID = WORKER) -> None:
    claimed = await leases.claim(
        connection,
        lane=LANE,
        line=LINE,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=100,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert len(claimed) == RUNS


async def promote(connection: Connection) -> None:
    groups = await runs.promote(connection, LANE, [runs.LONG_AGO] * len(PRIORITIES), 100)
    assert sum(group["runs"] for group in groups) == 2 * RUNS


async def expire(connection: Connection) -> None:
    assert await runs.expire(connection, LANE, 100) == 2 * (RUNS + RUNS // 2)


async def release(connection: Connection) -> None:
    groups = await runs.release(connection, LANE, {(JOB, LINE): 0.0}, 100)
    assert sum(group["runs"] for group in groups) == 2 * RUNS


async def rescue(connection: Connection) -> None:
    assert (await workers.rescue(connection, LANE, LOST, 10)).rescued == RUNS


async def cancel(connection: Connection) -> None:
    said: dict[str, Any] = {"tenant_id": DEFAULT_TENANT, "actor": "tester", "reason": "not needed"}
    assert len(await runs.cancel_waiting(connection, LANE, await ids_in(connection, WAITING), **said)) == 7 * RUNS


async def requeue(connection: Connection) -> None:
    assert len(await dead.requeue(connection, LANE, await ids_in(connection, DEAD), ACT)) == 2 * RUNS


async def purge(connection: Connection) -> None:
    assert len(await dead.purge(connection, LANE, await ids_in(connection, DEAD), ACT, reason="hopeless")) == 2 * RUNS


async def ids_in(connection: Connection, query: str) -> list[UUID]:
    """Asked for over another connection: what is traced is the act."""
    database = Database(CITUS_URL)
    other = await database.connect("test")
    rows = await other.fetch(query, LANE)
    await other.close()
    await database.close()
    return [row["id"] for row in rows]


ACTS: dict[str, Act] = {
    each.__name__: each for each in (claim, promote, expire, release, rescue, cancel, requeue, purge)
}


@pytest.fixture
async def scene(coordinator: Connection) -> Connection:
    """A cluster with runs of one lane in every place."""
    await coordinator.execute(f"truncate {', '.join(table for table in MOVING if table != 'lane')}")
    for worker_id in (WORKER, LOST):
        await registered_worker(coordinator, worker_id)
    await coordinator.execute(FILL)
    await claim(coordinator, LOST)
    await coordinator.execute(FILL)
    return coordinator


@asynccontextmanager
async def traced(connection: Connection) -> AsyncIterator[list[str]]:
    """What this connection sends to nodes meanwhile, each command with the node it goes to."""
    sent: list[str] = []

    def note(_: object, message: Any) -> None:
        if message.message.startswith("issuing "):
            sent.append(f"{message.detail.split(' connectionId')[0]}: {message.message.removeprefix('issuing ')}")

    connection.add_log_listener(note)
    await connection.execute("set client_min_messages = log; set citus.log_remote_commands = on")
    try:
        yield sent
    finally:
        await connection.execute("set client_min_messages = warning; set citus.log_remote_commands = off")
        connection.remove_log_listener(note)


async def node_of_lane(coordinator: Connection) -> str:
    """The URL of the node that has the lane."""
    row = await coordinator.fetchrow(
        "select nodename, nodeport from pg_dist_shard_placement"
        " where shardid = get_shard_id_for_distribution_column('ready', $1::smallint)",
        LANE,
    )
    assert row is not None
    parts = urlsplit(CITUS_URL)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(parts._replace(netloc=f"{login}{row['nodename']}:{row['nodeport']}"))


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_a_hot_act_is_one_command_to_one_node(scene: Connection, act: Act) -> None:
    async with traced(scene) as sent:
        await act(scene)

    assert len(sent) == 1, sent  # neither a transaction around it nor PREPARE TRANSACTION


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_the_node_of_a_lane_asks_no_other(scene: Connection, act: Act) -> None:
    database = Database(await node_of_lane(scene))
    node = await database.connect("test")
    async with traced(node) as sent:
        await act(node)
    await node.close()
    await database.close()

    assert sent == []
