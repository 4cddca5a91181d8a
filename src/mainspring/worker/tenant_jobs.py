"""Registers jobs for tenants whose runs come to a worker.

A worker registers its jobs for its application's own tenant when it starts. For other tenants whoever submits a job
registers it; but schedules and chains submit, too, and they know no code. So what a newer version of the code declares
(limits, breakers, backlog caps, chains) takes effect for a tenant when a worker has claimed the first of its runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from mainspring.errors import MainspringError
from mainspring.store import jobs, registering
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.worker.registration import RegisteredWorker, WorkerIdentity
    from mainspring.worker.registry import Handler

log = structlog.get_logger()

RETRY_SECONDS = 1.0


class TenantJobs:
    """Registers, one after the other, the jobs of tenants whose first runs have come."""

    def __init__(self, *, worker: WorkerIdentity, database: Database, registered: RegisteredWorker) -> None:
        self._worker = worker
        self._database = database
        self._registered = registered

    async def run(self) -> None:
        while True:
            tenant_id, handler = await self._registered.jobs.to_register.get()
            while not await self._is_registered(tenant_id, handler):
                await self._worker.clock.sleep(RETRY_SECONDS)

    async def _is_registered(self, tenant_id: int, handler: Handler) -> bool:
        """Whether nothing more is to be done about it."""
        try:
            async with self._database.acquire() as connection:
                await self._register(connection, tenant_id, handler)
        except ALL_DATABASE_ERRORS as error:
            log.warning("registering for a tenant waits for the database", job=handler.name, cause=str(error))
            return False
        except MainspringError as error:  # for example, its chains would be a circle with those of this tenant
            log.warning("a job could not be registered for a tenant", job=handler.name, cause=str(error))
        return True

    async def _register(self, connection: Connection, tenant_id: int, handler: Handler) -> None:
        """Unless a newer version of the code is at work: we would bring back what it has changed."""
        own = self._registered
        if await jobs.is_outdated(connection, handler.name, own.references[handler.name], tenant_id=own.tenant_id):
            return
        await registering.register(
            connection, self._worker.lanes, handler.definition, tenant_id=tenant_id, actor=own.registered_by
        )
