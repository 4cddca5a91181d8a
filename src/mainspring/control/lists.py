"""Lists of runs, page by page: whatever their state, newest first, from the places and from history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.looking import Found, Looking, Names, error_of, scope_of, with_errors
from mainspring.model.filter import RunFilter, run_filter
from mainspring.model.lifecycle import State
from mainspring.model.listing import Page, Position, RunSummary, checked_limit, cursor_of, parse_cursor
from mainspring.store import distribute, jobs, lists
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from datetime import datetime

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

MOST_COUNTED = 10_000
EVERY_RUN = RunFilter()


class Count(NamedTuple):
    """How many runs there are, counted up to a bound."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.number:,}" if self.is_exact else f"more than {self.number:,}"


class Lists:
    """Lists runs."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes
        self._is_spread: bool | None = None  # over the nodes of a cluster; not known before the first look

    async def list(
        self,
        actor: Actor,
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
        return await self.page(actor, wanted, limit=limit, cursor=cursor)

    async def page(self, actor: Actor, wanted: RunFilter, *, limit: int = 50, cursor: str | None = None) -> Page:
        """One page of runs, newest first, and the cursor of the next one."""
        limit, start = checked_limit(limit), parse_cursor(cursor, wanted)
        async with self._database.acquire() as connection, snapshot(connection):
            names = await _names(connection, actor)
            found = await self._look(connection, actor, wanted, names, start, limit + 1)
            shown = await with_errors(connection, found[:limit], tenant_id=actor.tenant)
        return Page(
            runs=[_summary(each, names) for each in shown],
            cursor=cursor_of(shown[-1].position, wanted) if len(found) > limit else None,
        )

    async def each(self, actor: Actor, wanted: RunFilter = EVERY_RUN) -> AsyncIterator[RunSummary]:
        """All runs that match, page after page."""
        cursor = None
        while True:
            page = await self.page(actor, wanted, limit=500, cursor=cursor)
            for run in page.runs:
                yield run
            if page.cursor is None:
                return
            cursor = page.cursor

    async def count(self, actor: Actor, wanted: RunFilter = EVERY_RUN, *, bound: int = MOST_COUNTED) -> Count:
        """How many runs match, counted up to ten thousand."""
        async with self._database.acquire() as connection, snapshot(connection):
            found = await self.find(connection, actor, wanted, None, bound + 1)
        return Count(min(len(found), bound), len(found) <= bound)

    async def find(
        self, connection: Connection, actor: Actor, wanted: RunFilter, start: Position | None, count: int
    ) -> Sequence[Found]:
        """Up to `count` runs below a position, within the caller's transaction."""
        return await self._look(connection, actor, wanted, await _names(connection, actor), start, count)

    async def _look(
        self,
        connection: Connection,
        actor: Actor,
        wanted: RunFilter,
        names: Names,
        start: Position | None,
        count: int,
    ) -> Sequence[Found]:
        now = await lists.begin(connection)
        scope = scope_of(wanted, names, tenant_id=actor.tenant, lanes=self._lanes, count=count)
        if self._is_spread is None:
            self._is_spread = await distribute.has_citus(connection)
        looking = Looking(connection, wanted, scope, start, now, is_spread=self._is_spread)
        if wanted.asks_for_failures:
            return await looking.failures() if wanted.reads_history else await looking.dead()
        return looking.merged([*await looking.placed(start), *await looking.ended()])


async def _names(connection: Connection, actor: Actor) -> Names:
    return Names(
        await jobs.all_names(connection, tenant_id=actor.tenant),
        await jobs.queue_names(connection, tenant_id=actor.tenant),
    )


def _summary(found: Found, names: Names) -> RunSummary:
    row = found.row
    is_cancelling = found.state is State.RUNNING and row["reason"] is not None
    return RunSummary(
        id=row["id"],
        job=names.jobs.get(row["job_id"], "?"),
        job_version=row["job_version"],
        queue=names.queues.get(row["line_id"], "?"),
        state=found.state,
        priority=row["priority"],
        attempts_spent=row["attempt"],
        fence=row["fence"],
        tags=list(row["tags"] or ()),
        due_at=row["due_at"],
        submitted_at=row["submitted_at"],
        submitted_by=row["submitted_by"],
        at=found.position.instant,
        since_at=row["since_at"],
        held_for=row["reason"] if found.state is State.HELD else None,
        is_cancelling=is_cancelling,
        error=error_of(found.error),
    )
