"""How payloads become runs: at once or in batches, for async code and for code that is not, on whose connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mainspring.app.handle import Handle
from mainspring.control.definitions import Wanted, document_of
from mainspring.control.submitter import check_verdicts
from mainspring.errors import ForeignDatabase
from mainspring.model.actor import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring import wiring
    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.app.sessions import Sessions
    from mainspring.control.definitions import Known
    from mainspring.model.run import NewRun
    from mainspring.store.notify import WakeUp
    from mainspring.store.submissions import Verdict

R = TypeVar("R")
T = TypeVar("T")


class Shortcut(Protocol):
    """Takes submissions instead of the store: see `mainspring.testing.inline`."""

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...


class Batch:
    """Runs ready to be accepted on a caller's own connection."""

    def __init__(self, services: wiring.Services, runs: list[NewRun], known: Known) -> None:
        self._services = services
        self.runs = runs
        self.ids: list[UUID] = services.submitter.new_ids(runs)
        self.known = document_of(frozenset([known]))
        self._wake_ups: list[WakeUp] = services.submitter.wake_ups(self.ids, runs)

    def accepted(self, app: Mainspring, verdicts: list[Verdict]) -> list[Handle[Any]]:
        check_verdicts(verdicts, self.runs)
        return [Handle(app, each.run_id) for each in verdicts]

    def wake(self) -> None:
        """Whether and when the caller commits is the caller's to decide: wake whoever may claim a little later."""
        self._services.store.database.waker.wake_after_callers_commit(self._wake_ups)


class Submissions:
    """Where an application submits."""

    def __init__(self, app: Mainspring, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if self._app.shortcut is not None:
            return await self._app.shortcut.submit(job, payload)
        if job.connection is not None:
            return (await self._submit_on_callers(job, [payload]))[0]

        async def submit() -> UUID:
            services = await self._sessions.get()
            template, known = await self._template(services, job)
            return await services.submitter.submit_one(job.filled(template, payload), known)

        return Handle(self._app, await self._known_anew(submit))

    async def submit_many(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        if self._app.shortcut is not None:
            return [await self._app.shortcut.submit(job, payload) for payload in payloads]
        if job.connection is not None:
            return await self._submit_on_callers(job, payloads)

        async def submit() -> list[UUID]:
            services = await self._sessions.get()
            template, known = await self._template(services, job)
            return await services.submitter.submit(job.filled_many(template, payloads), known)

        return [Handle(self._app, run_id) for run_id in await self._known_anew(submit)]

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if self._app.shortcut is not None:
            return self._app.shortcut.submit_sync(job, payload)
        if job.connection is None:
            return self._app.blocking(self.submit(job, payload))
        return self._submit_on_callers_sync(job, [payload])[0]

    def submit_many_sync(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        if self._app.shortcut is not None:
            return [self._app.shortcut.submit_sync(job, payload) for payload in payloads]
        if job.connection is None:
            return self._app.blocking(self.submit_many(job, payloads))
        return self._submit_on_callers_sync(job, payloads)

    async def _known_anew(self, submit: Callable[[], Awaitable[T]]) -> T:
        """Submit; if the database is not what we knew (dropped and made again, restored), look anew, and once more."""
        generation = await self._generation()
        try:
            return await submit()
        except ForeignDatabase:
            await self._forget(generation)
            return await submit()

    async def _generation(self) -> int:
        return (await self._sessions.get()).definitions.generation

    async def _forget(self, generation: int) -> None:
        await (await self._sessions.get()).definitions.refresh(generation)

    async def _submit_on_callers(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        """Inside the caller's transaction, if that is one of the application's own database."""

        async def submit() -> list[Handle[R]]:
            assert job.connection is not None
            batch = await self._batch(job, payloads)
            verdicts = await job.connection.submit(DEFAULT_TENANT, batch.ids, batch.runs, batch.known)
            handles = batch.accepted(self._app, verdicts)
            batch.wake()
            return handles

        return await self._known_anew(submit)

    def _submit_on_callers_sync(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        """The same for a blocking connection: prepared in the background loop, executed in the caller's thread."""
        generation = self._app.blocking(self._generation())
        try:
            return self._try_on_callers_sync(job, payloads)
        except ForeignDatabase:
            self._app.blocking(self._forget(generation))
            return self._try_on_callers_sync(job, payloads)

    def _try_on_callers_sync(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        assert job.connection is not None
        batch = self._app.blocking(self._batch(job, payloads))
        verdicts = job.connection.submit_sync(DEFAULT_TENANT, batch.ids, batch.runs, batch.known)
        handles = batch.accepted(self._app, verdicts)
        self._app.blocking(_called(batch.wake))
        return handles

    async def _batch(self, job: Job[Any, Any], payloads: list[bytes]) -> Batch:
        services = await self._sessions.get()
        template, known = await self._template(services, job)
        return Batch(services, [job.filled(template, payload) for payload in payloads], known)

    async def _template(self, services: wiring.Services, job: Job[Any, Any]) -> tuple[NewRun, Known]:
        """All of a run but its payload, and what its numbers take for granted."""
        actor = self._app.submitted_by
        numbers = services.definitions.numbers_of(job.name, job.line)
        if numbers is None:
            definition = job.handler.definition.as_document()
            wanted = Wanted(job.name, definition, job.line, self._app.registry.lines, actor)
            numbers = await services.definitions.register(wanted)
        return job.template(numbers.job.id, numbers.job.version, numbers.line, actor), numbers.known


async def _called(function: Callable[[], None]) -> None:
    """A call inside the background loop."""
    function()
