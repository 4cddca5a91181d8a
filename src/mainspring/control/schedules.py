"""What people and programs may do to schedules: make, replace, update, pause, resume, trigger, delete."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from mainspring.clock import instant
from mainspring.control.schedule_changes import changed, check_changes
from mainspring.control.schedule_errors import (
    pause_is_over,
)
from mainspring.control.schedule_rows import (
    content_of,
    options_document,
    request_of,
)
from mainspring.errors import ScheduleVersionConflict
from mainspring.model.job import checked_at, checked_reason
from mainspring.model.options import options_of
from mainspring.schedule.text import fired
from mainspring.store import jobs
from mainspring.store.connection import snapshot, transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
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
    from mainspring.control.submissions import Submissions
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.scheduler.changing import LockedSchedule
    from mainspring.store.connection import Record
    from mainspring.store.database import Database
    from mainspring.store.schedules import Content


class Schedules:
    """Makes and changes schedules."""

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
    ) -> None:
        self._database = database
        self._clock = clock
        self._queries = queries
        self._definitions = definitions
        self._application = application
        self._submissions = submissions
        self._calendars = calendars
        self._acts = acts

    # ── making and changing ─────────────────────────────────────────────────────────────────────────────────

    async def create(self, actor: Actor, request: ScheduleRequest) -> ScheduleSummary:
        """Make a schedule; its name must be free."""
        content = await self.content(actor, request)
        async with self._database.acquire() as connection, transaction(connection):
            return await self._acts.create(connection, actor, request, content)

    async def put(
        self, actor: Actor, request: ScheduleRequest, *, expected_version: int | None = None
    ) -> ScheduleSummary:
        """Make a schedule, or make the one of this name what is asked for. Asked for twice, nothing more happens."""
        return await self._put(actor, request, "replace", expected_version)

    async def update(
        self, actor: Actor, name: str, *, expected_version: int | None = None, **changes: Unpack[ScheduleChanges]
    ) -> ScheduleSummary:
        """Change what is given of a schedule; the rest stays: `when`, its settings, `arguments`, options of its runs.

        None takes away what a schedule can be without: `spread=None`. A text that names no zone, bounds or calendars
        leaves those there are. What is the same afterwards makes no new version.
        """
        check_changes(changes)
        while True:
            present, job = await self._present(actor, name)
            request = request_of(present, name, job)
            wanted = changed(request, changes, self._application, instant(self._clock))
            is_same = wanted.content(present["job_id"]) == content_of(present)
            wanted = request if is_same else replace(wanted, is_declared=False)
            expected = present["version"] if expected_version is None else expected_version
            try:
                return await self._put(actor, wanted, "update", expected, present["id"])
            except ScheduleVersionConflict:  # somebody changed it meanwhile, maybe something else of it
                if expected_version is not None:
                    raise

    async def rollback(
        self, actor: Actor, name: str, *, to: int, expected_version: int | None = None
    ) -> ScheduleSummary:
        """Make a schedule again what it was at an older version: that is a new version."""
        lane = self._queries.lane(actor, name)
        async with self._database.acquire() as connection, snapshot(connection):
            present = await self._queries.row(connection, actor, name)
            row = await self._queries.version_row(connection, actor, lane, present, to)
            job = (await jobs.names_of(connection, [row["job_id"]], tenant_id=actor.tenant))[row["job_id"]]
        expected = present["version"] if expected_version is None else expected_version
        return await self._put(actor, request_of(row, name, job), "rollback", expected, present["id"])

    async def _put(
        self,
        actor: Actor,
        request: ScheduleRequest,
        action: str,
        expected_version: int | None,
        expected_id: UUID | None = None,
    ) -> ScheduleSummary:
        content = await self.content(actor, request)
        async with self._database.acquire() as connection, transaction(connection):
            return await self._acts.put(connection, actor, request, content, expected_version, expected_id, action)

    async def pause(
        self, actor: Actor, name: str, *, reason: str = "", until: datetime | None = None
    ) -> ScheduleSummary:
        """Let nothing of a schedule fire, for good or until then. When this returns, nothing does."""
        checked_reason(reason)
        until_at = checked_at(until, "until")
        async with self._changing(actor, name, "pause", reason=reason, until=until_at) as schedule:
            if until_at is not None and until_at <= schedule.now:
                raise pause_is_over(until_at, schedule.now)
            await self._acts.settle(schedule)
            await schedule.pause(tenant_id=actor.tenant, actor=actor.name, reason=reason, until=until_at)
        return await self._queries.find(actor, name)

    async def resume(self, actor: Actor, name: str) -> ScheduleSummary:
        """Let a paused schedule go on, from its next instant."""
        async with self._changing(actor, name, "resume") as schedule:
            if schedule.is_paused:
                await self._acts.settle(schedule)
                await schedule.resume(tenant_id=actor.tenant, at=schedule.now)
        return await self._queries.find(actor, name)

    async def delete(self, actor: Actor, name: str, *, expected_version: int | None = None) -> None:
        """Remove a schedule. Runs it has made, and what is recorded of it, stay."""
        async with self._database.acquire() as connection, transaction(connection):
            await self._acts.delete(connection, actor, name, expected_version)

    async def trigger(self, actor: Actor, name: str) -> UUID:
        """Submit one run of a schedule now, besides those at its instants."""
        row, job = await self._present(actor, name)
        options = options_of(options_document(row) | {"tags": row["tags"], "headers": {"schedule": name}})
        return await self._submissions.submit_payload(actor, job, row["payload"], options)

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _present(self, actor: Actor, name: str) -> tuple[Record, str]:
        """What a schedule is, and the name of its job."""
        async with self._database.acquire() as connection:
            row = await self._queries.row(connection, actor, name)
            return row, (await jobs.names_of(connection, [row["job_id"]], tenant_id=actor.tenant))[row["job_id"]]

    async def content(self, actor: Actor, request: ScheduleRequest) -> Content:
        """As a row keeps it; its job is registered, or looked up if another application defines it."""
        definition = self._application.definition_of(request.job)
        if definition is not None:
            line = request.options.line_of(definition)
            registered = await self._definitions.registered(actor, definition, line)
        else:
            _, registered = await self._definitions.look_up(actor, request.job, request.options)
        return request.content(registered.numbers.job_id)

    async def resolved(self, actor: Actor, request: ScheduleRequest) -> ScheduleRequest:
        """The same with what is in its stored calendars now, for those who want to compute with it."""
        async with self._database.acquire() as connection:
            found = await self._calendars.resolved(connection, actor, request.schedule)
        return replace(request, schedule=fired(found.schedule, request.name))

    @asynccontextmanager
    async def _changing(self, actor: Actor, name: str, action: str, **detail: object) -> AsyncIterator[LockedSchedule]:
        """One transaction around what is done to a schedule."""
        async with (
            self._database.acquire() as connection,
            transaction(connection),
            self._acts.changing(connection, actor, name, action, detail=detail) as schedule,
        ):
            yield schedule
