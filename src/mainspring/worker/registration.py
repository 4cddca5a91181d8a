"""Makes an application's jobs, their lines and the worker itself known to the database, before anything is claimed."""

from __future__ import annotations

import os
import socket
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
from mainspring.store import jobs, workers
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.link import Link
from mainspring.store.migrate import installation_of
from mainspring.worker.lines import Lines

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.worker.identity import WorkerIdentity
    from mainspring.worker.registry import Handler, Registry
    from mainspring.worker.settings import WorkerSettings

log = structlog.get_logger()


class RegisteredWorker(NamedTuple):
    """What a worker knows once it is registered: the handlers by the numbers of their jobs, and the lines it serves."""

    handlers: dict[int, Handler]
    lines: Lines


class Registration:
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
        handlers = await self._register_jobs(connection)
        lines = await self._open_lines(connection)
        await self._register_worker(connection)
        if await installation_of(connection) != installation:
            raise DatabaseBusy("The schema was made again while this worker registered.")
        await confirm(connection, [REGISTRATIONS_LANE])  # what was found there may not be on the standby yet
        return RegisteredWorker(handlers, lines)

    async def _register_jobs(self, connection: Connection) -> dict[int, Handler]:
        handlers = {}
        for handler in self._registry:
            reference = await jobs.register(
                connection,
                handler.name,
                handler.definition.as_document(),
                actor=f"mainspring {self._version}",
                tenant_id=self._worker.tenant_id,
            )
            handlers[reference.id] = handler
        return handlers

    async def _open_lines(self, connection: Connection) -> Lines:
        found = await jobs.open_lines(connection, self._registry.lines, tenant_id=self._worker.tenant_id)
        known = {line.queue for line in found}
        missing = [queue for queue in self._settings.queues if queue not in known]
        if missing:
            raise QueueNotFound(
                f"There is no queue named {missing[0]!r}.",
                hint=did_you_mean(missing[0], known),
                field="queues",
            )
        lines = Lines(queues=self._settings.queues, labels=self._settings.labels)
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
