"""What a process knows of one installation: the numbers of jobs and lines, by their names.

Numbers mean something only where they were given out. So they go together with the installation's id, and whoever
accepts runs compares both, and the names behind the numbers, in the transaction that accepts them: after a restore, a
dropped schema or over a connection to another database, a number may stand for somebody else's job.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mainspring.errors import ForeignDatabase, SchemaMismatch
from mainspring.model.actor import Tenant
from mainspring.model.job import definition_of
from mainspring.model.template import Numbers
from mainspring.store import jobs, registering, tenants
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.migrate import check_schema, installation_of
from mainspring.store.submissions import known_document

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mainspring.control.application import Application
    from mainspring.model.actor import Actor
    from mainspring.model.job import JobDefinition
    from mainspring.model.line import Line
    from mainspring.model.options import SubmitOptions
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.jobs import JobRef

T = TypeVar("T")

MOST_TENANTS = 10_000  # remembered


class Known(NamedTuple):
    """What one kind of run takes for granted, as it was when its numbers were looked up. It stays with its runs."""

    installation: str
    job_id: int
    job: str
    line_id: int
    line: Line


class Registered(NamedTuple):
    """The numbers of a job and a line, and what makes them true."""

    numbers: Numbers
    known: Known


@lru_cache(1_000)
def document_of(known: frozenset[Known]) -> str:
    """For the database to compare. All of one installation."""
    (installation,) = {each.installation for each in known}
    return known_document(
        installation, {each.job_id: each.job for each in known}, {each.line_id: each.line for each in known}
    )


class Definitions:
    """The tenants, jobs and lines that this process uses: registered, or looked up, when first needed."""

    def __init__(self, *, database: Database, lanes: int, installation: str, application: Application) -> None:
        self._database = database
        self._lanes = lanes
        self._application = application
        self._registered: dict[_Key, Registered] = {}
        self._tenants: dict[str, Tenant] = {}
        self._registering: dict[_Key, asyncio.Task[Registered]] = {}
        self._refreshing = asyncio.Lock()
        self._installation = installation
        self.generation = 0  # how often all was forgotten

    @property
    def installation(self) -> str:
        return self._installation

    async def tenant(self, name: str) -> Tenant:
        """A tenant by its name: looked up once."""
        found = self._tenants.get(name)
        if found is None:
            async with self._database.acquire() as connection:
                found = Tenant((await tenants.find(connection, name)).id, name, self._installation)
                await confirm(connection, [REGISTRATIONS_LANE])
            if len(self._tenants) >= MOST_TENANTS:
                self._tenants.clear()
            self._tenants[name] = found
        return found

    async def registered(self, actor: Actor, definition: JobDefinition, line: Line) -> Registered:
        """The numbers of a job of the application and of a line its runs wait in."""
        known = self._registered.get((actor.tenant, definition.name, line))
        return await self._register_once(actor, definition, line) if known is None else known

    async def _register_once(self, actor: Actor, definition: JobDefinition, line: Line) -> Registered:
        """Make a job and its line known. A burst of first submissions registers once."""
        key = (actor.tenant, definition.name, line)
        registering = self._registering.get(key)
        if registering is None:
            # In a context of its own: it is nobody's attempt, whoever happens to be the first.
            registering = asyncio.create_task(self._register(actor, definition, line), context=Context())
            self._registering[key] = registering
            registering.add_done_callback(lambda _: self._registering.pop(key, None))
        return await asyncio.shield(registering)

    async def _register(self, actor: Actor, definition: JobDefinition, line: Line) -> Registered:
        """Make the job and the queues of its application known, in transactions of our own."""
        async with self._database.acquire() as connection:
            installation = await installation_of(connection)
            await tenants.check(connection, actor)
            await jobs.open_lines(connection, self._application.lines, tenant_id=actor.tenant)
            line_id, _ = await jobs.line_in_known_queue(connection, line, tenant_id=actor.tenant)
            reference = await self._declare(connection, actor, definition)
            for follower in self._application.followers_of(definition.name):
                await self._declare(connection, actor, follower)  # else nothing would follow its runs
            await confirm(connection, [REGISTRATIONS_LANE])  # what was found may not be on the standby yet
        found = _registered(installation, definition.name, reference, line, line_id)
        self._registered[actor.tenant, definition.name, line] = found
        return found

    async def _declare(self, connection: Connection, actor: Actor, definition: JobDefinition) -> JobRef:
        return await registering.register(connection, self._lanes, definition, tenant_id=actor.tenant, actor=actor.name)

    async def look_up(self, actor: Actor, name: str, options: SubmitOptions) -> tuple[JobDefinition, Registered]:
        """A job that some application registered: what the database says about it, and its numbers."""
        async with self._database.acquire() as connection:
            reference, document = await jobs.find(connection, name, tenant_id=actor.tenant)
            definition = definition_of(document)
            line = options.checked_line_of(definition)
            line_id, _ = await jobs.line_in_known_queue(connection, line, tenant_id=actor.tenant)
        return definition, _registered(self._installation, name, reference, line, line_id)

    def known_of_jobs(self, names: dict[int, str]) -> str:
        """What whoever uses the numbers of these jobs takes for granted, for the database to compare."""
        return known_document(self._installation, names, {})

    # ── another installation ────────────────────────────────────────────────────────────────────────────────

    async def again_if_replaced(
        self,
        act: Callable[[], Awaitable[T]],
        *,
        over_own_connection: Callable[[Coroutine[Any, Any, None]], Awaitable[None]] | None = None,
    ) -> T:
        """Act; if the database is not what we knew (dropped and made again, restored), look anew, and once more.

        `over_own_connection`: how whoever acts on a caller's connection waits for what goes over one of ours.
        """
        generation = self.generation
        try:
            return await act()
        except ForeignDatabase:
            looking = self.refresh(generation)
            await (looking if over_own_connection is None else over_own_connection(looking))
            return await act()

    async def refresh(self, generation: int) -> None:
        """Forget everything, and look anew which installation this is; once, however many ask."""
        async with self._refreshing:
            if generation == self.generation:
                await self._refresh()
                self.generation += 1

    async def _refresh(self) -> None:
        async with self._database.acquire() as connection:
            lanes = await check_schema(connection)
            self._installation = await installation_of(connection)
        self._registered.clear()
        self._tenants.clear()
        if lanes != self._lanes:
            raise SchemaMismatch(
                f"The database was replaced by one with {lanes} lanes; this program began with {self._lanes}.",
                code="lanes-changed",
                hint="Start this program again.",
            )


_Key = tuple[int, str, "Line"]  # tenant, job, line


def _registered(installation: str, name: str, reference: JobRef, line: Line, line_id: int) -> Registered:
    known = Known(installation, reference.id, name, line_id, line)
    return Registered(Numbers(reference.id, reference.version, line_id), known)
