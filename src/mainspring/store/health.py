"""What can be read from a database about its health and its work. Nothing here decides what is healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.errors import PermissionMissing, SchemaMismatch
from mainspring.model.ids import HOMES
from mainspring.store.database import SCHEMA
from mainspring.store.roles import permission_missing, refuse_without_usage
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from mainspring.store.connection import Connection, Record


async def settings_of(connection: Connection) -> dict[str, Any]:
    row = await load("health/settings").fetchrow(connection, schema=SCHEMA)
    assert row is not None
    return dict(row)


async def nodes(connection: Connection) -> dict[str, bool]:
    """The nodes of a Citus cluster, and whether each can be reached from the one that is connected to."""
    rows = await connection.fetch(
        "select nodename || ':' || nodeport as node, coalesce(bool_and(result), false) as is_reached"
        " from pg_dist_node left join citus_check_cluster_node_health()"
        " on to_nodename = nodename and to_nodeport = nodeport"
        " and (from_nodename, from_nodeport) in (select nodename, nodeport from pg_dist_node"
        " where groupid = (select groupid from pg_dist_local_group))"
        " group by 1 order by 1"
    )
    return {row["node"]: row["is_reached"] for row in rows}


async def applied_migrations(connection: Connection) -> dict[int, str]:
    """The migrations this database has seen, by version; none if it was never ours."""
    try:
        rows = await load("health/applied_migrations").fetch(connection)
    except SchemaMismatch:
        await refuse_without_usage(connection)
        return {}
    except PermissionMissing as error:
        raise await permission_missing(connection, error.fields["said"]) from error
    return {row["version"]: row["name"] for row in rows}


async def database_micros(connection: Connection) -> int:
    """The database's time, in microseconds since 1970."""
    return int(await load("health/clock").fetchval(connection))


async def long_transactions(connection: Connection, older_than: float) -> list[Record]:
    return await load("health/long_transactions").fetch(connection, older_than=older_than)


async def prepared_transactions(connection: Connection, older_than: float) -> list[Record]:
    return await load("health/prepared_transactions").fetch(connection, older_than=older_than)


async def waiting_by_lane(connection: Connection, lanes: int, bound: int) -> list[int]:
    rows = await load("health/lanes").fetch(connection, lanes=list(range(lanes)), bound=bound)
    return [row["waiting"] for row in rows]


async def days_with_partitions(connection: Connection) -> tuple[int, date]:
    """For how many days from today on history has its partitions, 30 meaning as many or more; and the day after."""
    row = await load("health/partitions_ahead").fetchrow(connection)
    assert row is not None
    return row["days"], row["end"]


async def silent_workers(connection: Connection) -> Record:
    row = await load("health/workers").fetchrow(connection, lanes=HOMES)
    assert row is not None
    return row


async def schedules_paused_by(connection: Connection, lanes: int, actor: str, bound: int) -> list[Record]:
    """Of all tenants, among the first `bound` schedules of each lane."""
    return await load("health/schedules_paused_by").fetch(
        connection, lanes=list(range(lanes)), actor=actor, bound=bound
    )


async def tables_with_dead_rows(connection: Connection, at_least: int) -> list[Record]:
    return await load("health/dead_rows").fetch(connection, schema=SCHEMA, at_least=at_least)


# ── work, for those who watch ───────────────────────────────────────────────────────────────────────────────


async def activity(connection: Connection, lanes: int, bound: int, *, tenant_id: int) -> Record:
    """How many runs are where, each counted up to a bound."""
    row = await load("health/activity").fetchrow(connection, lanes=list(range(lanes)), bound=bound, tenant=tenant_id)
    assert row is not None
    return row


async def finished_between(
    connection: Connection, lanes: int, after: datetime, until: datetime, *, tenant_id: int
) -> list[Record]:
    return await load("health/finished").fetch(
        connection, lanes=list(range(lanes)), after=after, until=until, tenant=tenant_id
    )


async def latest_attempts(
    connection: Connection, lanes: int, after: datetime, until: datetime, count: int, *, tenant_id: int
) -> Sequence[Record]:
    return await load("health/latest").fetch(
        connection, lanes=list(range(lanes)), after=after, until=until, count=count, tenant=tenant_id
    )


async def lateness(connection: Connection, window: float, count: int, *, tenant_id: int) -> list[float]:
    """How late the latest attempts began, in seconds, those of the last `window` seconds, up to `count` of each job."""
    rows = await load("health/lateness").fetch(connection, window=window, count=count, tenant=tenant_id)
    return sorted(row["seconds"] for row in rows)


async def failures(connection: Connection, window: float, count: int, *, tenant_id: int) -> list[Record]:
    return await load("health/failures").fetch(connection, window=window, count=count, tenant=tenant_id)
