"""Lists of runs, page by page: whatever their state, newest first, from the places and from history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.looking import Found, Looking, Names, error_of, scope_of, with_errors
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.lifecycle import State
from mainspring.model.listing import Page, Position, RunSummary, checked_limit, cursor_of, parse_cursor
from mainspring.store import distribute, jobs, lists
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.model.filter import RunFilter
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

MOST_COUNTED = 10_000


class Count(NamedTuple):
    """How many runs there are, counted up to a bound."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.number:,}" if self.is_exact else f"more than {self.number:,}"


class Lists:
    """Lists the runs of one tenant."""

    def __init__(self, *, database: Database, lanes: int, tenant_id: int = DEFAULT_TENANT) -> None:
        self._database = database
        self._lanes = lanes
        self._tenant_id = tenant_id
        self._is_spread: bool | None = None  # over the nodes of a cluster; not known before the first look

    async def page(self, wanted: RunFilter, *, limit: int = 50, cursor: str | None = None) -> Page:
        """One page of runs, newest first, and the cursor of the next one."""
        limit, start = checked_limit(limit), parse_cursor(cursor, wanted)
        async with self._database.acquire() as connection, snapshot(connection):
            names = await self._names(connection)
            found = await self._look(connection, wanted, names, start, limit + 1)
            shown = await with_errors(connection, found[:limit], tenant_id=self._tenant_id)
        return Page(
            runs=[_summary(each, names) for each in shown],
            cursor=cursor_of(shown[-1].position, wanted) if len(found) > limit else None,
        )

    async def each(self, wanted: RunFilter) -> AsyncIterator[RunSummary]:
        """All runs of a list, page after page."""
        cursor = None
        while True:
            page = await self.page(wanted, limit=500, cursor=cursor)
            for run in page.runs:
                yield run
            if page.cursor is None:
                return
            cursor = page.cursor

    async def count(self, wanted: RunFilter, bound: int = MOST_COUNTED) -> Count:
        async with self._database.acquire() as connection, snapshot(connection):
            found = await self.find(connection, wanted, None, bound + 1)
        return Count(min(len(found), bound), len(found) <= bound)

    async def find(self, connection: Connection, wanted: RunFilter, start: Position | None, count: int) -> list[Found]:
        """Up to `count` runs below a position, within the caller's transaction."""
        return await self._look(connection, wanted, await self._names(connection), start, count)

    async def _names(self, connection: Connection) -> Names:
        return Names(
            await jobs.all_names(connection, tenant_id=self._tenant_id),
            await jobs.queue_names(connection, tenant_id=self._tenant_id),
        )

    async def _look(
        self, connection: Connection, wanted: RunFilter, names: Names, start: Position | None, count: int
    ) -> list[Found]:
        now = await lists.begin(connection)
        scope = scope_of(wanted, names, tenant_id=self._tenant_id, lanes=self._lanes, count=count)
        if self._is_spread is None:
            self._is_spread = await distribute.has_citus(connection)
        looking = Looking(connection, wanted, scope, start, now, is_spread=self._is_spread)
        if wanted.asks_for_failures:
            return await looking.failures() if wanted.reads_history else await looking.dead()
        return looking.merged([*await looking.placed(start), *await looking.ended()])


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
