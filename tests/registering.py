"""Workers that live in the database only: whoever claims must be one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from mainspring.store import workers

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.connection import Connection


async def registered_worker(connection: Connection, worker_id: UUID | None = None) -> UUID:
    """A worker that is alive, by this id if one is given."""
    worker_id = worker_id or uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="test",
        pid=1,
        queues=["default"],
        handlers=[],
        slots=1,
        lease_seconds=600,
        version="test",
    )
    return worker_id


async def registered_before(connection: Connection, lease_seconds: float = 600) -> UUID:
    """A worker of a program before migration 21: it says that it lives in its row, and nowhere else."""
    worker_id = uuid4()
    await connection.execute(
        "insert into worker (id, host, pid, queues, handlers, slots, lease_seconds, version, waits_for_rank)"
        " values ($1, 'test', 1, '{default}', '{}', 1, $2, 'test', true)",
        worker_id,
        lease_seconds,
    )
    return worker_id
