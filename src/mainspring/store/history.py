"""History: one row per attempt, written by COPY, read by run. Partitioned by day; never on the claim path."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mainspring.errors import StoreError
from mainspring.model.ids import by_lane, lane_of, made_at
from mainspring.store.columns import AttemptRecord
from mainspring.store.distribute import coordinator_elsewhere, on_coordinator
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

# Run ids are dated by the submitter's host: how far its clock may be off before history looks in too few partitions.
HOST_CLOCK_SLACK = timedelta(days=1)

DAYS_AHEAD = 3  # partitions are made so many days before they are needed


async def record_attempts(connection: Connection, records: Sequence[tuple[Any, ...]]) -> None:
    """COPY rows of history. The connection must speak raw time."""
    await connection.copy_records_to_table("attempt", columns=AttemptRecord._fields, records=records)


def recorded_since(run_ids: Iterable[UUID]) -> datetime:
    """Before this instant, history has nothing about these runs: it need not look in older partitions."""
    return made_at(min(run_ids)) - HOST_CLOCK_SLACK


async def attempts_of(connection: Connection, run_id: UUID, *, tenant_id: int) -> list[Record]:
    return await load("history/attempts_of_run").fetch(
        connection, lane=lane_of(run_id), run=run_id, since=recorded_since([run_id]), tenant=tenant_id
    )


async def acts_on(connection: Connection, run_id: UUID, *, tenant_id: int) -> list[Record]:
    return await load("history/audit_of_run").fetch(
        connection, lane=lane_of(run_id), subject=str(run_id), tenant=tenant_id
    )


async def ends_of(connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int) -> list[Record]:
    """How these runs ended, those that have."""
    rows: list[Record] = []
    for lane, some in by_lane(run_ids):
        since = recorded_since(some)
        rows += await load("history/ends").fetch(connection, lane=lane, runs=some, since=since, tenant=tenant_id)
    return rows


async def add_partitions(connection: Connection, days_ahead: int = DAYS_AHEAD) -> int:
    """Make sure there are partitions for the days to come; answers how many were missing."""
    statement = load("history/add_partitions")
    try:
        return int(await statement.fetchval(connection, days_ahead=days_ahead))
    except StoreError:
        if connection.is_in_transaction() or await coordinator_elsewhere(connection) is None:
            raise
    # A worker node of a Citus cluster makes no tables. The coordinator knows nothing of our search path.
    names = re.compile(r"\b(add_history_partition|clock_now)\(")
    command = names.sub(r"mainspring.\1(", statement.text).replace("$1", str(int(days_ahead)))
    return await on_coordinator(connection, command)


async def outcomes_of_worker(connection: Connection, worker_id: UUID) -> list[Record]:
    """How many attempts of a worker came to which outcome. It reads all of history: for tests."""
    return await load("history/outcomes_of_worker").fetch(connection, worker=worker_id)
