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
from mainspring.store import backlog_caps, breakers, chains, jobs, limits, workers
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.link import Link
from mainspring.store.migrate import installation_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.line import Line
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.worker.registry import Handler, Registry
    from mainspring.worker.settings import WorkerSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """Its id, the tenant it works for, how many lanes the database has, and the clock it goes by."""

    id: UUID
    tenant_id: int
    lanes: int
    clock: Clock


class Lines:
    """The lines a worker serves, by number: those of its queues whose labels it has. They come and never go."""

    def __init__(self, *, queues: Iterable[str], labels: Iterable[str]) -> None:
        self._queues = frozenset(queues)
        self._labels = frozenset(labels)
        self._served: dict[int, Line] = {}
        self._met: set[int] = set()  # also those that are not for us: there is no need to look at them again

    def learn(self, found: Mapping[Line, int]) -> None:
        """These are the lines there are."""
        self._met.update(found.values())
        for line, number in found.items():
            if line.is_served_by(self._queues, self._labels):
                self._served[number] = line

    def is_news(self, number: int) -> bool:
        """Whether this line was never heard of; asked twice about the same one, the second time it is no news."""
        if number in self._met:
            return False
        self._met.add(number)
        return True

    def __contains__(self, number: int) -> bool:
        return number in self._served

    def __iter__(self) -> Iterator[int]:
        return iter(self._served)

    def __getitem__(self, number: int) -> Line:
        return self._served[number]


class RegisteredWorker(NamedTuple):
    """What a worker knows once it is registered: the handlers by the numbers of their jobs, and the lines it serves."""

    handlers: dict[int, Handler]
    lines: Lines


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
            await limits.declare(
                connection,
                handler.name,
                reference,
                handler.definition.limit,
                tenant_id=self._worker.tenant_id,
                actor=f"mainspring {self._version}",
            )
            await chains.declare(
                connection,
                handler.name,
                reference,
                handler.definition.after,
                tenant_id=self._worker.tenant_id,
                actor=f"mainspring {self._version}",
            )
            await breakers.declare(
                connection,
                self._worker.lanes,
                handler.name,
                reference,
                handler.definition.breaker,
                tenant_id=self._worker.tenant_id,
                actor=f"mainspring {self._version}",
            )
            await backlog_caps.declare(
                connection,
                handler.name,
                reference,
                handler.definition.backlog,
                tenant_id=self._worker.tenant_id,
                actor=f"mainspring {self._version}",
            )
            handlers[reference.id] = handler
        await self._warn_of_unknown(connection)
        return handlers

    async def _warn_of_unknown(self, connection: Connection) -> None:
        """Of jobs that follow others which nobody has registered: these may come later, or be misspelt."""
        followed = {each.job: handler.name for handler in self._registry for each in handler.definition.after}
        if not followed:
            return
        known = set((await jobs.all_names(connection, tenant_id=self._worker.tenant_id)).values())
        for upstream in sorted(followed.keys() - known):
            log.warning(
                "a job follows one that nobody has registered yet",
                job=followed[upstream],
                after=upstream,
                hint=did_you_mean(upstream, known),
            )

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
