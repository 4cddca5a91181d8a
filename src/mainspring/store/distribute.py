"""Spreads the tables over a Citus cluster, where there is one: moving data by lane, small shared tables everywhere.

The lane is in every key and every hot statement from the first day, so this is all that distribution takes. A function
whose first argument is a lane touches no other: it is called where that lane lives, as one command to one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.connection import Connection, Record

MOVING = (
    "ready",
    "later",
    "held",
    "slot",
    "bucket",
    "share_window",
    "breaker_tally",
    "breaker_probe",
    "backlog_gate",
    "backlog_entry",
    "backlog_addition",
    "dependency",
    "flow",
    "dead",
    "lease",
    "attempt",
    "log",
    "stale",
    "progress",
    "checkpoint",
    "idempotency",
    "unique_key",
    "schedule",
    "schedule_version",
    "cursor",
    "schedule_run",
    "schedule_failure",
    "occurrence",
    "occurrence_past",
    "skipped",
    "chain_news",
    "audit",
    "lane",
    "worker_heartbeat",
    "scheduler_heartbeat",
    "worker_tally",
    "load_sample",
    "promotion",
)
SHARED = (
    "setting",
    "tenant",
    "job",
    "job_version",
    "line",
    "queue",
    "limit_rule",
    "limit_revision",
    "chain",
    "breaker",
    "breaker_opening",
    "backlog_cap",
    "worker",
    "scheduler",
    "tally",
    "line_sample",
    "operation",
    "calendar",
    "calendar_revision",
    "migration",
)

# Functions that submissions and people's acts call within a transaction of several statements, where Citus calls only
# what is forced at its node. In return each statement in them has to name the lane itself: the argument as it is, which
# has to be of the column's type. What copies rows from table to table cannot be forced.
WITHIN_TRANSACTIONS = (
    "add_dependencies",
    "add_entries",
    "add_uncounted",
    "adopt_children",
    "cancel_runs",
    "clear_entries",
    "drop_waiting_runs",
    "purge_runs",
    "requeue_runs",
    "submit_runs",
    "take_places",
)
SHARDS = 32  # what moves between nodes: no cluster of ours uses more nodes than that


async def has_citus(connection: Connection) -> bool:
    return bool(await connection.fetchval("select exists (select from pg_extension where extname = 'citus')"))


async def coordinator_elsewhere(connection: Connection) -> str | None:
    """Where the coordinator of the cluster is, if another of its nodes is asked here. None if this is no such node."""
    if not await has_citus(connection):
        return None
    address: str | None = await connection.fetchval(
        "select coalesce((select nodename || ':' || nodeport from pg_dist_node where groupid = 0), 'another host')"
        " where (select groupid from pg_dist_local_group) <> 0"
    )
    return address


async def on_coordinator(connection: Connection, command: str) -> int:
    """Have the coordinator of the cluster execute a query for one number, in a transaction of its own."""
    row = await connection.fetchrow("select success, result from run_command_on_coordinator($1)", command)
    if not row["success"]:
        raise StoreError(f"The coordinator of the cluster reported an error: {row['result']}.")
    return int(row["result"])


async def distribute(connection: Connection, lanes: int, say: Callable[[str], None]) -> None:
    """Give each table that has no place on the cluster yet its place. Does nothing on plain PostgreSQL."""
    if not await has_citus(connection):
        return
    await _forbid_compiling(connection, say)
    for table in await _undistributed(connection, SHARED):
        say(f"copying {table} to every node")
        await connection.execute("select create_reference_table($1::regclass)", table)
    for table in await _undistributed(connection, MOVING[:1]):
        say(f"distributing {table} by lane")
        await connection.execute(
            "select create_distributed_table($1::regclass, 'lane', shard_count => 1, colocate_with => 'none')", table
        )
    if await _is_in_one_piece(connection):  # also where this was cut off before
        await _cut_evenly(connection, lanes)
    for table in await _undistributed(connection, MOVING):
        say(f"distributing {table} by lane")
        await connection.execute(
            "select create_distributed_table($1::regclass, 'lane', colocate_with => $2)", table, MOVING[0]
        )
    for function in await _functions_to_place(connection):
        await connection.execute(
            "select create_distributed_function($1::text::regprocedure, 'lane', colocate_with => $2,"
            " force_delegation => $3)",
            function["name"],
            MOVING[0],
            function["is_forced"],
        )


async def _is_in_one_piece(connection: Connection) -> bool:
    shards = await connection.fetchval(
        "select count(*) from pg_dist_shard where logicalrelid = $1::regclass", MOVING[0]
    )
    return bool(shards == 1)


async def _cut_evenly(connection: Connection, lanes: int) -> None:
    """Cut the first table, and with it all that lies beside it, so that every shard has as many lanes as the others.

    Citus would cut the range of hashes into equal parts, of which some get four of our few lanes, and some none.
    """
    shards = min(SHARDS, lanes)
    hashes = sorted(
        row["hash"]
        for row in await connection.fetch(
            "select worker_hash(lane::smallint) as hash from generate_series(0, $1 - 1) as lane", lanes
        )
    )
    nodes = [
        row["nodeid"]
        for row in await connection.fetch(
            "select nodeid from pg_dist_node where noderole = 'primary' and isactive and shouldhaveshards"
            " order by nodeid"
        )
    ]
    await connection.execute(
        "select citus_split_shard_by_split_points(shardid, $2::text[], $3::int[], 'block_writes')"
        " from pg_dist_shard where logicalrelid = $1::regclass",
        MOVING[0],
        [str(hashes[lanes * shard // shards - 1]) for shard in range(1, shards)],  # the last of each shard but the last
        [nodes[shard % len(nodes)] for shard in range(shards)],
    )


async def _undistributed(connection: Connection, tables: tuple[str, ...]) -> list[str]:
    """Those of these tables that are there and have no place yet."""
    rows = await connection.fetch(
        "select name from unnest($1::text[]) with ordinality as listed (name, place)"
        " where to_regclass(name) is not null and to_regclass(name) not in (select logicalrelid from pg_dist_partition)"
        " order by place",
        list(tables),
    )
    return [row["name"] for row in rows]


async def _functions_to_place(connection: Connection) -> list[Record]:
    """The functions of one lane that are called on the coordinator still, be it within transactions only."""
    return await connection.fetch(
        "select pg_proc.oid::regprocedure::text as name, proname = any ($1::text[]) as is_forced"
        " from pg_proc left join pg_dist_object on classid = 'pg_proc'::regclass and objid = pg_proc.oid"
        " where pronamespace = 'mainspring'::regnamespace and proargnames[1] = 'lane'"
        " and (distribution_argument_index is null"
        "      or proname = any ($1::text[]) and force_delegation is not true)",
        list(WITHIN_TRANSACTIONS),
    )


async def _forbid_compiling(connection: Connection, say: Callable[[str], None]) -> None:
    """Let nodes execute what this role asks for without compiling it first, which takes a hundred times as long."""
    if await nodes_that_compile(connection):
        say("telling the nodes not to compile queries")
        await connection.execute(
            await connection.fetchval(
                "select format('alter role %I in database %I set jit = off', current_user, current_database())"
            )
        )


async def nodes_that_compile(connection: Connection) -> list[str]:
    """The nodes that compile our queries (`jit`): what our sessions say about that does not reach them."""
    rows = await connection.fetch(
        "select nodename || ':' || nodeport as node from run_command_on_all_nodes('show jit')"
        " join pg_dist_node using (nodeid) where success and result = 'on' order by 1"
    )
    return [row["node"] for row in rows]
