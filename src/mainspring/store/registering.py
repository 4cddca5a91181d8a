"""Making a job of an application known for a tenant: the job itself, and all that it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import backlog_caps, breakers, chains, jobs, limits

if TYPE_CHECKING:
    from mainspring.model.job import JobDefinition
    from mainspring.store.connection import Connection
    from mainspring.store.jobs import JobRef


async def register(
    connection: Connection, lanes: int, definition: JobDefinition, *, tenant_id: int, actor: str
) -> JobRef:
    """Register a job with its limits, chains, breaker and backlog caps, each in a transaction of its own."""
    name = definition.name
    reference = await jobs.register(connection, name, definition.as_document(), actor=actor, tenant_id=tenant_id)
    await limits.declare(connection, name, reference, definition.limit, tenant_id=tenant_id, actor=actor)
    await chains.declare(connection, name, reference, definition.after, tenant_id=tenant_id, actor=actor)
    await breakers.declare(connection, lanes, name, reference, definition.breaker, tenant_id=tenant_id, actor=actor)
    await backlog_caps.declare(connection, name, reference, definition.backlog, tenant_id=tenant_id, actor=actor)
    return reference
