"""Spreads the tables over a Citus cluster, where there is one: moving data by lane, small shared tables everywhere.

The lane is in every key and every hot statement from the first day, so this is all that distribution takes. A function
whose first argument is a lane touches no other: it is called where that lane lives, as one command to one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.connection import Connection

MOVING = (
    "ready",
    "later",
    "held",
    "dead",
    "lease",
    "attempt",
    "log",
    "stale",
    "progress",
    "checkpoint",
    "idempotency",
    "schedule",
    "schedule_version",
    "cursor",
    "occurrence",
    "occurrence_past",
    "skipped",
    "audit",
    "lane",
)
SHARED = (
    "setting",
    "tenant",
    "job",
    "job_version",
    "line",
    "queue",
    "worker",
    "scheduler",
    "tally",
    "line_sample",
    "operation",
    "calendar",
    "calendar_revision",
    "migration",
)


async def has_citus(connection: Connection) -> bool:
    return bool(await connection.fetchval("select exists (select from pg_extension where extname = 'citus')"))


async def distribute(connection: Connection, say: Callable[[str], None]) -> None:
    """Give each table that has no place on the cluster yet its place. Does nothing on plain PostgreSQL."""
    if not await has_citus(connection):
        return
    for table in await _undistributed(connection, SHARED):
        say(f"copying {table} to every node")
        await connection.execute("select create_reference_table($1::regclass)", table)
    for table in await _undistributed(connection, MOVING):
        say(f"distributing {table} by lane")
        beside = "default" if table == MOVING[0] else MOVING[0]
        await connection.execute(
            "select create_distributed_table($1::regclass, 'lane', colocate_with => $2)", table, beside
        )
    for function in await _functions_to_place(connection):
        await connection.execute(
            "select create_distributed_function($1::text::regprocedure, 'lane', colocate_with => $2)",
            function,
            MOVING[0],
        )


async def _undistributed(connection: Connection, tables: tuple[str, ...]) -> list[str]:
    placed = await connection.fetch("select logicalrelid::regclass::text as name from pg_dist_partition")
    known = {row["name"].rpartition(".")[2] for row in placed}
    return [table for table in tables if table not in known]


async def _functions_to_place(connection: Connection) -> list[str]:
    """The functions of one lane that are called on the coordinator still."""
    rows = await connection.fetch(
        "select pg_proc.oid::regprocedure::text as name from pg_proc"
        " left join pg_dist_object on classid = 'pg_proc'::regclass and objid = pg_proc.oid"
        " where pronamespace = 'mainspring'::regnamespace and proargnames[1] = 'lane'"
        " and distribution_argument_index is null"
    )
    return [row["name"] for row in rows]
