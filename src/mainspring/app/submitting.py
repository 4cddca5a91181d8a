"""How payloads become runs: at once or in batches, for async code and for code that is not, on whose connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mainspring.app.handle import Handle
from mainspring.control.submitter import check_verdicts
from mainspring.store import jobs

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.app.sessions import Session, Sessions
    from mainspring.model.run import NewRun
    from mainspring.store.jobs import JobRef

R = TypeVar("R")


class Shortcut(Protocol):
    """Takes submissions instead of the store: see `mainspring.testing.inline`."""

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...


class Submissions:
    """Where an application submits."""

    def __init__(self, app: Mainspring, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if self._app.shortcut is not None:
            return await self._app.shortcut.submit(job, payload)
        session = await self._sessions.get()
        run = job.filled(await self._template(session, job), payload)
        if job.connection is not None:
            return (await self._submit_on_callers(session, job, [run]))[0]
        return Handle(self._app, await session.services.submitter.submit_one(run))

    async def submit_many(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        if self._app.shortcut is not None:
            return [await self._app.shortcut.submit(job, payload) for payload in payloads]
        session = await self._sessions.get()
        template = await self._template(session, job)
        runs = job.filled_many(template, payloads)
        if job.connection is not None:
            return await self._submit_on_callers(session, job, runs)
        return [Handle(self._app, run_id) for run_id in await session.services.submitter.submit(runs)]

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

    async def _submit_on_callers(self, session: Session, job: Job[Any, R], runs: list[NewRun]) -> list[Handle[R]]:
        """Inside the caller's transaction: whether it happens is the caller's to decide."""
        assert job.connection is not None
        submitter = session.services.submitter
        ids = submitter.new_ids(runs)
        wake_ups = [str(each) for each in submitter.wake_ups(ids, runs)]
        verdicts = await job.connection.submit(jobs.DEFAULT_TENANT, ids, runs, wake_ups)
        check_verdicts(verdicts, runs)
        return [Handle(self._app, each.run_id) for each in verdicts]

    def _submit_on_callers_sync(self, job: Job[Any, R], payloads: list[bytes]) -> list[Handle[R]]:
        """The same for a blocking connection: prepared in the background loop, executed in the caller's thread."""
        assert job.connection is not None
        ids, runs, wake_ups = self._app.blocking(self._prepared(job, payloads))
        verdicts = job.connection.submit_sync(jobs.DEFAULT_TENANT, ids, runs, wake_ups)
        check_verdicts(verdicts, runs)
        return [Handle(self._app, each.run_id) for each in verdicts]

    async def _prepared(self, job: Job[Any, Any], payloads: list[bytes]) -> tuple[list[UUID], list[NewRun], list[str]]:
        session = await self._sessions.get()
        template = await self._template(session, job)
        runs = [job.filled(template, payload) for payload in payloads]
        submitter = session.services.submitter
        ids = submitter.new_ids(runs)
        return ids, runs, [str(each) for each in submitter.wake_ups(ids, runs)]

    async def _template(self, session: Session, job: Job[Any, Any]) -> NewRun:
        reference = session.references.get(job.name)
        if reference is None or job.line not in session.lines:
            reference = await self._register(session, job)
        return job.template(reference.id, reference.version, session.lines[job.line], self._app.submitted_by)

    async def _register(self, session: Session, job: Job[Any, Any]) -> JobRef:
        """Make the job and the queues of this application known, in a transaction of our own."""
        async with session.services.store.database.acquire() as connection:
            await jobs.open_lines(connection, self._app.registry.lines)
            _, session.lines = await jobs.line_in_known_queue(connection, job.line)
            reference = await jobs.register(
                connection, job.name, job.handler.definition.as_document(), actor=self._app.submitted_by
            )
        session.references[job.name] = reference
        return reference
