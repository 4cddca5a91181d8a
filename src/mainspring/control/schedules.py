"""What people and programs may do to schedules: make, replace, update, pause, resume, trigger, delete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, Unpack

from mainspring.clock import instant
from mainspring.control.schedule_changes import changed, check_changes
from mainspring.control.schedule_rows import content_of, kept, options_document, request_of
from mainspring.errors import ScheduleVersionConflict
from mainspring.model.job import checked_at, checked_reason
from mainspring.model.options import options_of
from mainspring.schedule.text import fired
from mainspring.store import jobs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.application import Application
    from mainspring.control.calendars import Calendars
    from mainspring.control.definitions import Definitions
    from mainspring.control.schedule_acts import ScheduleActs
    from mainspring.control.schedule_changes import ScheduleChanges
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedule_transactions import ScheduleTransaction, ScheduleTransactions
    from mainspring.control.submissions import Submissions
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.schedules import Content

T = TypeVar("T")


class Schedules:
    """Makes and changes schedules, in transactions of ours or of whoever gives a connection."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        queries: ScheduleQueries,
        definitions: Definitions,
        application: Application,
        submissions: Submissions,
        calendars: Calendars,
        acts: ScheduleActs,
        transactions: ScheduleTransactions,
    ) -> None:
        self._database = database
        self._clock = clock
        self._queries = queries
        self._definitions = definitions
        self._application = application
        self._submissions = submissions
        self._calendars = calendars
        self._acts = acts
        self._transactions = transactions

    # ── making and changing ─────────────────────────────────────────────────────────────────────────────────

    async def create(
        self, actor: Actor, request: ScheduleRequest, *, connection: object | None = None
    ) -> ScheduleSummary:
        """Make a schedule; its name must be free."""
        at = self._transactions.on(connection)

        async def attempt() -> ScheduleSummary:
            content = await at.over_own_connection(self.content(actor, request))
            return await at.act(
                lambda inside: self._acts.create(inside, actor, request, content), jobs={content.job: request.job}
            )

        return await at.again_if_replaced(attempt)

    async def put(
        self,
        actor: Actor,
        request: ScheduleRequest,
        *,
        expected_version: int | None = None,
        connection: object | None = None,
    ) -> ScheduleSummary:
        """Make a schedule, or make the one of this name what is asked for. Asked for twice, nothing more happens."""
        return await self._put(self._transactions.on(connection), actor, request, "replace", expected_version)

    async def update(
        self,
        actor: Actor,
        name: str,
        *,
        expected_version: int | None = None,
        connection: object | None = None,
        **changes: Unpack[ScheduleChanges],
    ) -> ScheduleSummary:
        """Change what is given of a schedule; the rest stays: `when`, its settings, `arguments`, options of its runs.

        None takes away what a schedule can be without: `spread=None`. A text that names no zone, bounds or calendars
        leaves those there are. What is the same afterwards makes no new version.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it is changed if and only if you commit.
        """
        check_changes(changes)
        at = self._transactions.on(connection)
        while True:
            present, job = await self._present(at, actor, name)
            request = request_of(present, name, job)
            wanted = changed(request, changes, self._application, instant(self._clock))
            wanted, content = kept(wanted, wanted.content(present["job_id"]), present)
            is_same = content.is_same(content_of(present))
            wanted = request if is_same else replace(wanted, is_declared=False)
            expected = present["version"] if expected_version is None else expected_version
            try:
                return await self._put(at, actor, wanted, "update", expected, present["id"])
            except ScheduleVersionConflict:  # somebody changed it meanwhile, maybe something else of it
                if expected_version is not None:
                    raise

    async def rollback(
        self,
        actor: Actor,
        name: str,
        *,
        to: int,
        expected_version: int | None = None,
        connection: object | None = None,
    ) -> ScheduleSummary:
        """Make a schedule again what it was at an older version: that is a new version.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it is changed if and only if you commit.
        """
        at = self._transactions.on(connection)

        async def older(inside: Connection) -> tuple[Record, Record, str]:
            present = await self._queries.row(inside, actor, name)
            row = await self._queries.version_row(inside, actor, self._queries.lane(actor, name), present, to)
            return present, row, await self._job_of(inside, actor, row)

        present, row, job = await at.look(older)
        expected = present["version"] if expected_version is None else expected_version
        return await self._put(at, actor, request_of(row, name, job), "rollback", expected, present["id"])

    async def _put(
        self,
        at: ScheduleTransaction,
        actor: Actor,
        request: ScheduleRequest,
        action: str,
        expected_version: int | None,
        expected_id: UUID | None = None,
    ) -> ScheduleSummary:
        async def attempt() -> ScheduleSummary:
            content = await at.over_own_connection(self.content(actor, request))
            expected = (expected_version, expected_id)
            return await at.act(
                lambda inside: self._acts.put(inside, actor, request, content, *expected, action),
                jobs={content.job: request.job},
            )

        return await at.again_if_replaced(attempt)

    async def pause(
        self,
        actor: Actor,
        name: str,
        *,
        reason: str = "",
        until: datetime | None = None,
        connection: object | None = None,
    ) -> ScheduleSummary:
        """Let nothing of a schedule fire, for good or until then. When this returns, nothing does.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it is paused if and only if you commit, and
        nothing fires meanwhile.
        """
        checked_reason(reason)
        until_at = checked_at(until, "until")
        return await self._act(connection, lambda inside: self._acts.pause(inside, actor, name, reason, until_at))

    async def resume(self, actor: Actor, name: str, *, connection: object | None = None) -> ScheduleSummary:
        """Let a paused schedule go on, from its next instant.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it goes on if and only if you commit.
        """
        return await self._act(connection, lambda inside: self._acts.resume(inside, actor, name))

    async def delete(
        self, actor: Actor, name: str, *, expected_version: int | None = None, connection: object | None = None
    ) -> None:
        """Remove a schedule. Runs it has made, and what is recorded of it, stay.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it is gone if and only if you commit.
        """
        await self._act(connection, lambda inside: self._acts.delete(inside, actor, name, expected_version))

    async def trigger(self, actor: Actor, name: str, *, connection: object | None = None) -> UUID:
        """Submit one run of a schedule now, besides those at its instants.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: there is a run if and only if you commit.
        """
        at = self._transactions.on(connection)
        row, job = await self._present(at, actor, name)
        options = options_of(options_document(row) | {"tags": row["tags"], "headers": {"schedule": name}})
        return await at.submit(self._submissions, actor, job, row["payload"], options)

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _act(self, connection: object | None, act: Callable[[Connection], Awaitable[T]]) -> T:
        """What needs nothing but the schedule itself."""
        at = self._transactions.on(connection)
        return await at.again_if_replaced(lambda: at.act(act))

    async def _present(self, at: ScheduleTransaction, actor: Actor, name: str) -> tuple[Record, str]:
        """What a schedule is, and the name of its job."""

        async def look(inside: Connection) -> tuple[Record, str]:
            row = await self._queries.row(inside, actor, name)
            return row, await self._job_of(inside, actor, row)

        return await at.look(look)

    async def _job_of(self, connection: Connection, actor: Actor, row: Record) -> str:
        return (await jobs.names_of(connection, [row["job_id"]], tenant_id=actor.tenant))[row["job_id"]]

    async def content(self, actor: Actor, request: ScheduleRequest) -> Content:
        """As a row keeps it; its job is registered, or looked up if another application defines it."""
        definition = self._application.definition_of(request.job)
        if definition is not None:
            line = request.options.checked_line_of(definition)
            registered = await self._definitions.registered(actor, definition, line)
        else:
            _, registered = await self._definitions.look_up(actor, request.job, request.options)
        return request.content(registered.numbers.job_id)

    async def resolved(self, actor: Actor, request: ScheduleRequest) -> ScheduleRequest:
        """The same with what is in its stored calendars now, for those who want to compute with it."""
        async with self._database.acquire() as connection:
            found = await self._calendars.resolved(connection, actor, request.schedule)
        return replace(request, schedule=fired(found.schedule, request.name))
