"""The runs of an application, as a collection: `app.runs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.app.handle import Handle
from mainspring.errors import InvalidInput
from mainspring.model.filter import RunFilter, run_filter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.control.dead import Moved
    from mainspring.control.lists import Count
    from mainspring.model.lifecycle import State
    from mainspring.model.listing import Page, RunSummary


class RunCollection:
    """What can be asked of many runs at once, and of dead letters."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def list(
        self,
        *,
        job: str | Iterable[str] = (),
        queue: str | Iterable[str] = (),
        state: State | str | Iterable[State | str] = (),
        tags: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        failed: bool = False,
        error: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """One page of runs, newest first: by when they ended or, if they have not, by when they were submitted.

        `failed` asks for runs with a failed attempt, `error` for a text in its error; they stand at that attempt.
        A page has a `cursor` if there is another one; give it with the same filter.
        """
        wanted = run_filter(
            job=job, queue=queue, state=state, tags=tags, since=since, until=until, failed=failed, error=error
        )
        return await (await self._app.services()).lists.page(wanted, limit=limit, cursor=cursor)

    async def each(self, wanted: RunFilter | None = None) -> AsyncIterator[RunSummary]:
        """All runs that match, page after page."""
        async for run in (await self._app.services()).lists.each(wanted or RunFilter()):
            yield run

    async def count(self, wanted: RunFilter | None = None) -> Count:
        """How many runs match, counted up to ten thousand."""
        return await (await self._app.services()).lists.count(wanted or RunFilter())

    async def requeue(
        self,
        *run_ids: UUID | str,
        arguments: dict[str, Any] | None = None,
        max_age: timedelta | float | None = None,
        reason: str = "",
    ) -> Moved:
        """Put dead runs back in line: the same runs, with their history, and all their attempts again.

        Those that are not dead (any more) are skipped. `arguments` replaces the arguments of a single run; they are
        checked against the handler's signature. A requeued run does not expire, unless a new `max_age` is given.
        """
        payload = None if arguments is None else await self._encoded(run_ids, arguments)
        dead = (await self._app.services()).dead
        return await dead.requeue(
            run_ids, payload=payload, max_age=max_age, reason=reason, actor=self._app.submitted_by
        )

    async def purge(self, *run_ids: UUID | str, reason: str = "") -> Moved:
        """End dead runs for good. Their history stays; those that are not dead are skipped."""
        dead = (await self._app.services()).dead
        return await dead.purge(run_ids, reason=reason, actor=self._app.submitted_by)

    async def retry(
        self, run_id: UUID | str, *, arguments: dict[str, Any] | None = None, reason: str = ""
    ) -> Handle[Any]:
        """Try a run again that is over: a dead one is requeued, one that ended gets a new run (its `rerun_of`)."""
        payload = None if arguments is None else await self._encoded((run_id,), arguments)
        retries = (await self._app.services()).retries
        actor = self._app.submitted_by
        return Handle(self._app, await retries.retry(run_id, payload=payload, reason=reason, actor=actor))

    async def _encoded(self, run_ids: tuple[UUID | str, ...], arguments: dict[str, Any]) -> bytes:
        if len(run_ids) != 1:
            raise InvalidInput(
                f"New arguments for {len(run_ids)} runs were given; they are for one.",
                code="arguments-for-many",
                hint="Requeue the runs one by one, each with its arguments.",
                field="arguments",
            )
        handler = self._app.registry.find((await self._app.find(run_ids[0])).job)
        return handler.arguments.encode_mapping(arguments)
