"""A distributed schema is upgraded from its first version on, runs and all, and no node waits long for a lock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import StoreError
from mainspring.model.ids import lane_of
from mainspring.store import distribute
from mainspring.store import migrate as migrating
from mainspring.store.distribute import MOVING
from mainspring.store.migrate import Migration, known_migrations, migrate
from mainspring.store.submissions import new_run_ids
from mainspring.testing import run_until_idle

from .citus import connected, on_citus, url_of_node
from .test_one_node import node_of_lane

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection

pytestmark = on_citus

ALTERATION = Migration(version=9999, name="alter_ready", serves=1, sql="alter table ready add column colour text;")
FUNCTIONS = """
    select oid::regprocedure::text as name, prosrc, provolatile::text, proconfig::text from pg_proc
    where pronamespace = 'mainspring'::regnamespace order by 1
"""


async def test_a_schema_distributed_at_its_first_version_is_upgraded_with_its_runs(
    coordinator: Connection, citus_app: Mainspring
) -> None:
    await coordinator.execute("drop schema mainspring cascade")
    await migrate(coordinator, migrations=known_migrations()[:1])
    assert await is_distributed(coordinator, "ready")
    now = datetime.now(UTC)
    waiting = new_run_ids(20, 7, now) + new_run_ids(20, 8, now)
    await coordinator.execute("insert into job (tenant_id, name, version) values (1, 'greet', 1)")
    await coordinator.execute("insert into line (tenant_id, queue) values (1, 'default')")
    await coordinator.executemany(
        "insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload)"
        " values ($1, $2, 1, 1, 1, 1, 5, '{}')",
        [(lane_of(run_id), run_id) for run_id in waiting],
    )

    await migrate(coordinator)

    for table in MOVING:
        assert await is_distributed(coordinator, table), table
    here = await coordinator.fetch(FUNCTIONS)
    for node in await coordinator.fetch("select nodename, nodeport from pg_dist_node"):
        async with connected(url_of_node(node)) as other:
            assert await other.fetch(FUNCTIONS) == here
    assert sorted(row["id"] for row in await coordinator.fetch("select id from ready")) == sorted(waiting)

    @citus_app.job
    async def greet() -> None: ...

    assert await run_until_idle(citus_app) == {"succeeded": 40}


async def test_what_was_cut_off_before_its_table_was_cut_is_cut_by_the_next(
    coordinator: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PowerCut(Exception):
        pass

    async def fail(*_: object) -> None:
        raise PowerCut

    await coordinator.execute("drop schema mainspring cascade")
    with monkeypatch.context() as patched:
        patched.setattr(distribute, "_cut_evenly", fail)
        with pytest.raises(PowerCut):
            await migrate(coordinator)
    await migrate(coordinator)

    shards = "select count(*) from pg_dist_shard where logicalrelid = $1::regclass"
    assert [await coordinator.fetchval(shards, table) for table in MOVING] == [distribute.SHARDS] * len(MOVING)


async def is_distributed(connection: Connection, table: str) -> bool:
    return bool(
        await connection.fetchval(
            "select exists (select from pg_dist_partition where logicalrelid = $1::regclass)", table
        )
    )


async def test_a_migration_that_waits_for_a_lock_at_a_node_gives_up_and_lets_others_pass(
    coordinator: Connection, citus_app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "TRIES", 1)
    async with connected(await node_of_lane(coordinator)) as node, node.transaction():
        await node.execute("delete from ready where lane = 7")  # locks at this node, and the coordinator does not know
        with pytest.raises(StoreError, match="waited in vain") as blocked:
            await migrate(coordinator, migrations=[ALTERATION])

    assert blocked.value.code == "migration-blocked"
