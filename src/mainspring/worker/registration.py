"""Who a worker is, what it makes known to the database before anything is claimed, and the lines it serves."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    OutcomeUnknown,
    QueueNotFound,
    RowExists,
    did_you_mean,
)
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.store import jobs, registering, tenants, workers
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.link import Link
from mainspring.store.migrate import installation_of
from mainspring.worker.lines import Lines
from mainspring.worker.served_jobs import ServedJobs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.jobs import JobRef
    from mainspring.worker.registry import Registry
    from mainspring.worker.settings import WorkerSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """Its id, the tenant its jobs are registered for, how many lanes the database has, and the clock it goes by.

    It serves all tenants.
    """

    id: UUID
    lanes: int
    clock: Clock
    tenant: str = DEFAULT_TENANT_NAME


class RegisteredWorker(NamedTuple):
    """What a worker knows once it is registered: the jobs and the lines it serves."""

    jobs: ServedJobs
    lines: Lines
    tenant_id: int  # for whom its jobs were registered
    references: Mapping[str, JobRef]  # these jobs, by name
    registered_by: str  # as the audit has it


class Registration:
    """Makes an application's jobs, their lines and the worker itself known to the database."""

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        database: Database,
        registry: Registry,
        settings: WorkerSettings,
        version: str,
    ) -> None:
        self._worker = worker
        self._database = database
        self._registry = registry
        self._settings = settings
        self._version = version
        self._tenant_id = 0  # looked up with the rest

    async def register(self) -> RegisteredWorker:
        """However often the database goes away meanwhile: it may be repeated."""
        link = Link(self._database, self._worker.clock, "worker start")
        try:
            while True:
                try:
                    await link.get()
                    await self._database.check_sessions()
                    return await self._try_to_register(await link.get())
                except (DatabaseUnreachable, DatabaseBusy, RowExists, OutcomeUnknown) as error:
                    log.warning("registering waits for the database", cause=str(error))
                    await link.mend(error)
        finally:
            await link.close()

    async def _try_to_register(self, connection: Connection) -> RegisteredWorker:
        installation = await installation_of(connection)
        self._tenant_id = (await tenants.find(connection, self._worker.tenant)).id
        references = await self._register_jobs(connection)
        lines = await self._open_lines(connection, installation)
        await self._register_worker(connection)
        if await installation_of(connection) != installation:
            raise DatabaseBusy("The schema was made again while this worker registered.")
        await confirm(connection, [REGISTRATIONS_LANE])  # what was found there may not be on the standby yet
        served = ServedJobs(self._registry)
        for name, reference in references.items():
            served.add(reference.id, self._tenant_id, name)
        return RegisteredWorker(served, lines, self._tenant_id, references, self._actor)

    @property
    def _actor(self) -> str:
        return f"mainspring {self._version}"

    async def _register_jobs(self, connection: Connection) -> dict[str, JobRef]:
        references = {
            handler.name: await registering.register(
                connection, self._worker.lanes, handler.definition, tenant_id=self._tenant_id, actor=self._actor
            )
            for handler in self._registry
        }
        await self._warn_of_unknown(connection)
        return references

    async def _warn_of_unknown(self, connection: Connection) -> None:
        """Of jobs that follow others which nobody has registered: these may come later, or be misspelt."""
        followed = {each.job: handler.name for handler in self._registry for each in handler.definition.after}
        if not followed:
            return
        known = set((await jobs.all_names(connection, tenant_id=self._tenant_id)).values())
        for upstream in sorted(followed.keys() - known):
            log.warning(
                "a job follows one that nobody has registered yet",
                job=followed[upstream],
                after=upstream,
                hint=did_you_mean(upstream, known),
            )

    async def _open_lines(self, connection: Connection, installation: str) -> Lines:
        await jobs.open_lines(connection, self._registry.lines, tenant_id=self._tenant_id)
        found = await jobs.all_lines(connection)
        known = {each.line.queue for each in found}
        missing = [queue for queue in self._settings.queues if queue not in known]
        if missing:
            raise QueueNotFound(
                f"There is no queue named {missing[0]!r}.",
                hint=did_you_mean(missing[0], known),
                field="queues",
            )
        lines = Lines(queues=self._settings.queues, labels=self._settings.labels, installation=installation)
        lines.learn(found)
        return lines

    async def _register_worker(self, connection: Connection) -> None:
        await workers.register(
            connection,
            worker_id=self._worker.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=self._settings.queues,
            labels=self._settings.labels,
            handlers=self._registry.names,
            slots=self._settings.slots,
            lease_seconds=self._settings.lease_time,
            version=self._version,
        )
