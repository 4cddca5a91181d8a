"""What a process knows of one installation: the numbers of its jobs and lines, by their names.

Numbers mean something only where they were given out. So they go together with the installation's id, and whoever
accepts runs compares both, and the names behind the numbers, in the transaction that accepts them: after a restore, a
dropped schema or over a connection to another database, a number may stand for somebody else's job.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import SchemaMismatch
from mainspring.model.line import Line
from mainspring.store import jobs
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.migrate import check_schema, installation_of
from mainspring.store.submissions import known_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.model.run import NewRun
    from mainspring.store.database import Database
    from mainspring.store.jobs import JobRef


NO_LINE = Line("")


class Wanted(NamedTuple):
    """A job as its application defines it, and the line its runs wait in."""

    name: str
    definition: dict[str, Any]
    line: Line
    lines: Iterable[Line]  # all that the application uses
    actor: str


class Definitions:
    """The jobs and lines of one tenant, registered when first needed."""

    def __init__(
        self, *, database: Database, lanes: int, installation: str, tenant_id: int = jobs.DEFAULT_TENANT
    ) -> None:
        self._database = database
        self._lanes = lanes
        self._tenant_id = tenant_id
        self._jobs: dict[str, JobRef] = {}
        self._lines: dict[Line, int] = {}
        self._documents: dict[frozenset[tuple[int, int]], str] = {}
        self._registering: dict[tuple[str, Line], asyncio.Task[tuple[JobRef, int]]] = {}
        self._refreshing = asyncio.Lock()
        self.installation = installation
        self.generation = 0  # how often all was forgotten

    def numbers_of(self, name: str, line: Line) -> tuple[JobRef, int] | None:
        """The numbers of a job and a line, if both are known."""
        reference, number = self._jobs.get(name), self._lines.get(line)
        return None if reference is None or number is None else (reference, number)

    async def register(self, wanted: Wanted) -> tuple[JobRef, int]:
        """Make a job and its line known. A burst of first submissions registers once."""
        place = (wanted.name, wanted.line)
        registering = self._registering.get(place)
        if registering is None:
            registering = self._registering[place] = asyncio.create_task(self._register(wanted))
            registering.add_done_callback(lambda _: self._registering.pop(place, None))
        return await asyncio.shield(registering)

    async def _register(self, wanted: Wanted) -> tuple[JobRef, int]:
        """Make the job and the queues of its application known, in transactions of our own."""
        async with self._database.acquire() as connection:
            await jobs.open_lines(connection, wanted.lines, tenant_id=self._tenant_id)
            number, lines = await jobs.line_in_known_queue(connection, wanted.line, tenant_id=self._tenant_id)
            reference = await jobs.register(
                connection, wanted.name, wanted.definition, actor=wanted.actor, tenant_id=self._tenant_id
            )
            await confirm(connection, [REGISTRATIONS_LANE])  # what was found may not be on the standby yet
        self._lines |= lines
        self._jobs[wanted.name] = reference
        return reference, number

    def learn(self, name: str, reference: JobRef, lines: dict[Line, int]) -> None:
        """What somebody looked up."""
        self._jobs[name] = reference
        self._lines |= lines

    def document(self, runs: Sequence[NewRun]) -> str:
        """What these runs take for granted, for the database to compare."""
        pairs = frozenset((run.job_id, run.line_id) for run in runs)
        document = self._documents.get(pairs)
        if document is None:
            if len(self._documents) > 1_000:
                self._documents.clear()
            document = self._documents[pairs] = self._document(pairs)
        return document

    def _document(self, pairs: frozenset[tuple[int, int]]) -> str:
        job_ids, line_ids = {job for job, _ in pairs}, {line for _, line in pairs}
        # A number that nobody here knows any more stands for nothing: the database will object to it.
        names = dict.fromkeys(job_ids, "") | {reference.id: name for name, reference in self._jobs.items()}
        lines = dict.fromkeys(line_ids, NO_LINE) | {number: line for line, number in self._lines.items()}
        return known_document(
            self.installation, {each: names[each] for each in job_ids}, {each: lines[each] for each in line_ids}
        )

    async def refresh(self, generation: int) -> None:
        """Forget everything, and look anew which installation this is; once, however many ask."""
        async with self._refreshing:
            if generation == self.generation:
                await self._refresh()
                self.generation += 1

    async def _refresh(self) -> None:
        async with self._database.acquire() as connection:
            lanes = await check_schema(connection)
            self.installation = await installation_of(connection)
        self._jobs.clear()
        self._lines.clear()
        self._documents.clear()
        if lanes != self._lanes:
            raise SchemaMismatch(
                f"The database was replaced by one with {lanes} lanes; this program began with {self._lanes}.",
                code="lanes-changed",
                hint="Start this program again.",
            )
