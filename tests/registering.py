"""Workers that live in the database only: whoever claims must be one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.connection import Connection


async def registered_worker(connection: Connection, worker_id: UUID | None = None) -> UUID:
    """A worker that is alive, by this id if one is given."""
    worker_id = worker_id or uuid4()
    await connection.execute(
        "insert into worker (id, host, pid, queues, handlers, slots, lease_seconds, version)"
        " values ($1, 'test', 1, '{default}', '{}', 1, 600, 'test') on conflict do nothing",
        worker_id,
    )
    return worker_id
