"""Where an application's jobs submit: to its store, for async code and for code that is not, on whose connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mainspring.app.handle import Handle
from mainspring.errors import ForeignDatabase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.control.submissions import Submissions
    from mainspring.model.run import AcceptedBatch

R = TypeVar("R")


class Submitting(Protocol):
    """Accepts payloads for a job: the application's store does, or `mainspring.testing.inline`."""

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...

    async def submit_many(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]: ...

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]: ...

    def submit_many_sync(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]: ...


class SubmittingToStore:
    """Accepts runs durably, for whom the application of a job acts."""

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        submissions = await _submissions(job.app)
        actor = job.actor
        what, app = (actor, job.definition, job.submit_options), job.app.bound_to(actor.tenant_name)
        if job.connection is None:
            return Handle(app, *await submissions.submit(*what, payload))
        return _handles(app, await submissions.submit_on(job.connection, *what, [payload]))[0]

    async def submit_many(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        submissions = await _submissions(job.app)
        actor = job.actor
        what, app = (actor, job.definition, job.submit_options), job.app.bound_to(actor.tenant_name)
        if job.connection is None:
            return _handles(app, await submissions.submit_many(*what, payloads))
        return _handles(app, await submissions.submit_on(job.connection, *what, payloads))

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if job.connection is None:
            return job.app.blocking(self.submit(job, payload))
        return self._submit_on_sync(job, [payload])[0]

    def submit_many_sync(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        if job.connection is None:
            return job.app.blocking(self.submit_many(job, payloads))
        return self._submit_on_sync(job, payloads)

    def _submit_on_sync(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        """On a connection that blocks: prepared in the background loop, executed in the caller's thread."""
        submissions = job.app.blocking(_submissions(job.app))
        generation = submissions.definitions.generation
        try:
            return self._try_on_sync(submissions, job, payloads)
        except ForeignDatabase:  # as Definitions.again_if_replaced does it
            job.app.blocking(submissions.definitions.refresh(generation))
            return self._try_on_sync(submissions, job, payloads)

    def _try_on_sync(self, submissions: Submissions, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        assert job.connection is not None
        actor = job.actor
        prepared = job.app.blocking(submissions.prepare(actor, job.definition, job.submit_options, payloads))
        accepted = prepared.send_sync(job.connection)
        job.app.blocking(prepared.wake())
        return _handles(job.app.bound_to(actor.tenant_name), accepted)


async def _submissions(app: Mainspring) -> Submissions:
    return (await app.services()).submissions


def _handles(app: Mainspring, accepted: AcceptedBatch) -> list[Handle[Any]]:
    if not accepted.earlier and not accepted.backlogs:
        return [Handle(app, run_id, True) for run_id in accepted.ids]
    return [Handle(app, *each) for each in accepted.each()]
