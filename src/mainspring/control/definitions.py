"""What a process knows of one installation: the numbers of its jobs and lines, by their names.

Numbers mean something only where they were given out. So they go together with the installation's id, and whoever
accepts runs compares both, and the names behind the numbers, in the transaction that accepts them: after a restore, a
dropped schema or over a connection to another database, a number may stand for somebody else's job.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import SchemaMismatch
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.store import jobs
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.migrate import check_schema, installation_of
from mainspring.store.submissions import known_document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.model.line import Line
    from mainspring.store.database import Database
    from mainspring.store.jobs import JobRef


class Known(NamedTuple):
    """What one kind of run takes for granted, as it was when its numbers were looked up. It stays with its runs."""

    installation: str
    job_id: int
    job: str
    line_id: int
    line: Line


class Numbers(NamedTuple):
    """The numbers that stand for a job and its line, and what makes them true."""

    job: JobRef
    line: int
    known: Known


class Wanted(NamedTuple):
    """A job as its application defines it, and the line its runs wait in."""

    name: str
    definition: dict[str, Any]
    line: Line
    lines: Iterable[Line]  # all that the application uses
    actor: str


@lru_cache(1_000)
def document_of(known: frozenset[Known]) -> str:
    """For the database to compare. All of one installation."""
    (installation,) = {each.installation for each in known}
    return known_document(
        installation, {each.job_id: each.job for each in known}, {each.line_id: each.line for each in known}
    )


class Definitions:
    """The jobs and lines of one tenant, registered when first needed."""

    def __init__(self, *, database: Database, lanes: int, installation: str, tenant_id: int = DEFAULT_TENANT) -> None:
        self._database = database
        self._lanes = lanes
        self._tenant_id = tenant_id
        self._numbers: dict[tuple[str, Line], Numbers] = {}
        self._registering: dict[tuple[str, Line], asyncio.Task[Numbers]] = {}
        self._refreshing = asyncio.Lock()
        self._installation = installation
        self.generation = 0  # how often all was forgotten

    def numbers_of(self, name: str, line: Line) -> Numbers | None:
        """The numbers of a job and a line, if both are known."""
        return self._numbers.get((name, line))

    async def register(self, wanted: Wanted) -> Numbers:
        """Make a job and its line known. A burst of first submissions registers once."""
        place = (wanted.name, wanted.line)
        registering = self._registering.get(place)
        if registering is None:
            # In a context of its own: it is nobody's attempt, whoever happens to be the first.
            registering = asyncio.create_task(self._register(wanted), context=Context())
            self._registering[place] = registering
            registering.add_done_callback(lambda _: self._registering.pop(place, None))
        return await asyncio.shield(registering)

    async def _register(self, wanted: Wanted) -> Numbers:
        """Make the job and the queues of its application known, in transactions of our own."""
        async with self._database.acquire() as connection:
            installation = await installation_of(connection)
            await jobs.open_lines(connection, wanted.lines, tenant_id=self._tenant_id)
            line, _ = await jobs.line_in_known_queue(connection, wanted.line, tenant_id=self._tenant_id)
            reference = await jobs.register(
                connection, wanted.name, wanted.definition, actor=wanted.actor, tenant_id=self._tenant_id
            )
            await confirm(connection, [REGISTRATIONS_LANE])  # what was found may not be on the standby yet
        return self._learn(installation, wanted.name, reference, wanted.line, line)

    def learn(self, name: str, reference: JobRef, line: Line, number: int) -> Numbers:
        """What somebody looked up here."""
        return self._learn(self._installation, name, reference, line, number)

    def _learn(self, installation: str, name: str, reference: JobRef, line: Line, number: int) -> Numbers:
        known = Known(installation, reference.id, name, number, line)
        numbers = self._numbers[name, line] = Numbers(reference, number, known)
        return numbers

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
        self._numbers.clear()
        if lanes != self._lanes:
            raise SchemaMismatch(
                f"The database was replaced by one with {lanes} lanes; this program began with {self._lanes}.",
                code="lanes-changed",
                hint="Start this program again.",
            )
