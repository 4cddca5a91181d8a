"""Lists of schedules: by name, or by when they are due next. A page reads a bounded number of rows, whatever is wanted.

There is no index by tag or by state: it would cost every schedule something, and few lists are long. Instead a page
that found too little among the rows it read says where the next one begins.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from mainspring.control.schedule_errors import after_of_due, not_a_cursor
from mainspring.errors import InvalidInput
from mainspring.model.job import MAX_NAME_LENGTH, checked_at, checked_tags, checked_text
from mainspring.model.listing import checked_limit
from mainspring.model.scheduling import SchedulePage, checked_state
from mainspring.store import jobs, schedule_reading
from mainspring.store.connection import snapshot
from mainspring.store.schedule_reading import ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleState, ScheduleSummary
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

SCAN = 200  # rows of each lane that a page by name reads if not all are wanted
SCAN_DUE = 1_000  # cursors that a page by due instants reads if not all are wanted
FIRST_ID = UUID(int=0)


class Wanted(NamedTuple):
    """Which schedules to list."""

    prefix: str
    job: str | None
    states: Sequence[str] | None
    tags: Sequence[str] | None
    due_before: datetime | None


class DuePosition(NamedTuple):
    """Where a list by due instants goes on: after this."""

    due_at: datetime
    schedule_id: UUID


class ScheduleLists:
    """Lists schedules."""

    def __init__(self, *, database: Database, lanes: int, queries: ScheduleQueries) -> None:
        self._database = database
        self._lanes = lanes
        self._queries = queries

    async def list(
        self,
        actor: Actor,
        *,
        after: str = "",
        prefix: str = "",
        job: str | None = None,
        states: Iterable[ScheduleState] = (),
        tags: Iterable[str] | None = None,
        due_before: datetime | None = None,
        limit: int = 100,
    ) -> Sequence[ScheduleSummary]:
        """Schedules in the order of their names, after the given one.

        With `due_before`, those whose next run is due before then, the earliest first.
        """
        if after and due_before is not None:
            raise after_of_due(after)
        wanted, count = _wanted(prefix, job, states, tags, due_before), checked_limit(limit)
        position: str | DuePosition | None = None if not after else checked_text(after, "after", MAX_NAME_LENGTH)
        found: list[ScheduleSummary] = []
        while len(found) < count:
            some, position = await self._page(actor, wanted, position, count - len(found))
            found += some
            if position is None:
                break
        return found

    async def page(
        self,
        actor: Actor,
        *,
        cursor: str | None = None,
        prefix: str = "",
        job: str | None = None,
        states: Iterable[ScheduleState] = (),
        tags: Iterable[str] | None = None,
        due_before: datetime | None = None,
        limit: int = 100,
    ) -> SchedulePage:
        """The same as `list`, a page at a time, each at a bounded cost; where the next begins is in its `cursor`.

        A page may have fewer schedules than asked for, or none, and a cursor all the same: few of those that were
        looked at are wanted.
        """
        wanted = _wanted(prefix, job, states, tags, due_before)
        position = None if cursor is None else _parsed(cursor, wanted)
        found, following = await self._page(actor, wanted, position, checked_limit(limit))
        return SchedulePage(schedules=found, cursor=None if following is None else _cursor(following))

    async def _page(
        self, actor: Actor, wanted: Wanted, position: str | DuePosition | None, count: int
    ) -> tuple[Sequence[ScheduleSummary], str | DuePosition | None]:
        async with self._database.acquire() as connection, snapshot(connection):
            job_id = None
            if wanted.job is not None:
                job_id = (await jobs.find(connection, wanted.job, tenant_id=actor.tenant))[0].id
            chosen = ScheduleFilter(actor.tenant, wanted.prefix, job_id, wanted.states, wanted.tags)
            rows: Sequence[Record]
            following: str | DuePosition | None
            if wanted.due_before is None:
                after = position if isinstance(position, str) else ""
                rows, following = await self._by_name(connection, chosen, after, count)
            else:
                since = position if isinstance(position, DuePosition) else None
                rows, following = await self._by_due(connection, chosen, wanted.due_before, since, count)
            return await self._queries.summaries(connection, actor, rows), following

    async def _by_name(
        self, connection: Connection, chosen: ScheduleFilter, after: str, count: int
    ) -> tuple[Sequence[Record], str | None]:
        end = None
        if chosen.is_sparse:
            end = await schedule_reading.scan_end(connection, self._lanes, chosen, after=after, scan=SCAN)
        rows = await schedule_reading.listed(connection, self._lanes, chosen, after=after, until=end, count=count)
        return rows, rows[-1]["name"] if len(rows) == count else end

    async def _by_due(
        self,
        connection: Connection,
        chosen: ScheduleFilter,
        before: datetime,
        since: DuePosition | None,
        count: int,
    ) -> tuple[Sequence[Record], DuePosition | None]:
        begin = since or DuePosition(datetime.min.replace(tzinfo=UTC), FIRST_ID)
        scan = count if chosen.is_everything else max(count, SCAN_DUE)
        looked_at = await schedule_reading.listed_due(
            connection, self._lanes, chosen, before=before, since=begin, count=scan
        )
        rows = [row for row in looked_at if row["id"] is not None][:count]
        last = rows[-1] if len(rows) == count else looked_at[-1] if len(looked_at) == scan else None
        return rows, None if last is None else DuePosition(last["due_at"], last["schedule_id"])


def _wanted(
    prefix: str,
    job: str | None,
    states: Iterable[ScheduleState],
    tags: Iterable[str] | None,
    due_before: datetime | None,
) -> Wanted:
    if prefix:
        checked_text(prefix, "prefix", MAX_NAME_LENGTH)
    chosen = [checked_state(each).value for each in states]
    return Wanted(prefix, job, chosen or None, checked_tags(tags), checked_at(due_before, "due_before"))


def _cursor(position: str | DuePosition) -> str:
    """A position as people carry it from page to page."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def _parsed(cursor: str, wanted: Wanted) -> str | DuePosition:
    """A position in the list by name, or by due instants."""
    try:
        packed = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        if wanted.due_before is None:
            return checked_text(msgspec.json.decode(packed, type=str), "cursor", MAX_NAME_LENGTH)
        position = msgspec.json.decode(packed, type=DuePosition)
    except (ValueError, AttributeError, InvalidInput):  # of base64 and msgspec as well
        raise not_a_cursor(cursor) from None
    if position.due_at.tzinfo is None:
        raise not_a_cursor(cursor)
    return position
