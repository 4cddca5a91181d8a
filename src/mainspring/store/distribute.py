"""Spreads the tables over a Citus cluster, where there is one: moving data by lane, small shared tables everywhere.

The lane is in every key and every hot statement from the first day, so this is all that distribution takes.
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


async def _undistributed(connection: Connection, tables: tuple[str, ...]) -> list[str]:
    placed = await connection.fetch("select logicalrelid::regclass::text as name from pg_dist_partition")
    known = {row["name"].rpartition(".")[2] for row in placed}
    return [table for table in tables if table not in known]
