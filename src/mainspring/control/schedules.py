"""What people and programs may do to schedules: make, replace, update, pause, resume, trigger, delete."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from mainspring.clock import instant
from mainspring.control.schedule_changes import changed, check_changes
from mainspring.control.schedule_errors import (
    pause_is_over,
    schedule_exists,
    version_conflict,
)
from mainspring.control.schedule_rows import (
    content_of,
    options_document,
    request_of,
)
from mainspring.errors import ScheduleVersionConflict
from mainspring.model.job import checked_at, checked_reason
from mainspring.model.options import options_of
from mainspring.model.scheduling import ScheduleState
from mainspring.schedule.text import fired
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.changing import locked
from mainspring.store import jobs, notify, schedules
from mainspring.store.connection import snapshot, transaction
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.application import Application
    from mainspring.control.calendars import Calendars
    from mainspring.control.definitions import Definitions
    from mainspring.control.schedule_changes import ScheduleChanges
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.submissions import Submissions
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.schedule.schedule import Occurrence
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.scheduler.changing import LockedSchedule
    from mainspring.scheduler.firing import LaneFirer
    from mainspring.store.connection import Connection, Record
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
        firer: LaneFirer,
    ) -> None:
        self._database = database
        self._clock = clock
        self._queries = queries
        self._definitions = definitions
        self._application = application
        self._submissions = submissions
        self._calendars = calendars
        self._firer = firer

    # ── making and changing ─────────────────────────────────────────────────────────────────────────────────

    async def create(self, actor: Actor, request: ScheduleRequest) -> ScheduleSummary:
        """Make a schedule; its name must be free."""
        content = await self.content(actor, request)
        async with self._database.acquire() as connection, transaction(connection):
            return await self.create_on(connection, actor, request, content)

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
            return await self.put_on(connection, actor, request, content, expected_version, expected_id, action)

    async def pause(
        self, actor: Actor, name: str, *, reason: str = "", until: datetime | None = None
    ) -> ScheduleSummary:
        """Let nothing of a schedule fire, for good or until then. When this returns, nothing does."""
        checked_reason(reason)
        until_at = checked_at(until, "until")
        async with self._changing(actor, name, "pause", reason=reason, until=until_at) as schedule:
            if until_at is not None and until_at <= schedule.now:
                raise pause_is_over(until_at, schedule.now)
            await schedule.settle(self._firer, self._clock)
            await schedule.pause(tenant_id=actor.tenant, actor=actor.name, reason=reason, until=until_at)
        return await self._queries.find(actor, name)

    async def resume(self, actor: Actor, name: str) -> ScheduleSummary:
        """Let a paused schedule go on, from its next instant."""
        async with self._changing(actor, name, "resume") as schedule:
            if schedule.is_paused:
                await schedule.settle(self._firer, self._clock)
                await schedule.resume(tenant_id=actor.tenant, at=schedule.now)
        return await self._queries.find(actor, name)

    async def delete(self, actor: Actor, name: str, *, expected_version: int | None = None) -> None:
        """Remove a schedule. Runs it has made, and what is recorded of it, stay."""
        async with self._database.acquire() as connection, transaction(connection):
            await self.delete_on(connection, actor, name, expected_version)

    async def trigger(self, actor: Actor, name: str) -> UUID:
        """Submit one run of a schedule now, besides those at its instants."""
        row, job = await self._present(actor, name)
        options = options_of(options_document(row) | {"tags": row["tags"], "headers": {"schedule": name}})
        return await self._submissions.submit_payload(actor, job, row["payload"], options)

    # ── inside an open transaction ──────────────────────────────────────────────────────────────────────────

    async def create_on(
        self, connection: Connection, actor: Actor, request: ScheduleRequest, content: Content
    ) -> ScheduleSummary:
        if not await self._create(connection, actor, request, content):
            raise schedule_exists(request.name)
        return await self._queries.find_on(connection, actor, request.name)

    async def put_on(
        self,
        connection: Connection,
        actor: Actor,
        request: ScheduleRequest,
        content: Content,
        expected_version: int | None,
        expected_id: UUID | None = None,
        action: str = "replace",
    ) -> ScheduleSummary:
        is_new = expected_version is None and await self._create(connection, actor, request, content)
        if not is_new:
            schedule = await self._locked(connection, actor, request.name, expected_version, expected_id)
            if content_of(schedule.row) != content:
                await self._replace(connection, actor, schedule, request, content, action)
        return await self._queries.find_on(connection, actor, request.name)

    async def delete_on(self, connection: Connection, actor: Actor, name: str, expected_version: int | None) -> None:
        async with self._changing_on(connection, actor, name, "delete", expected_version=expected_version) as schedule:
            await schedule.settle(self._firer, self._clock)
            await schedule.delete(tenant_id=actor.tenant)

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

    async def _create(self, connection: Connection, actor: Actor, request: ScheduleRequest, content: Content) -> bool:
        """Inside a transaction; answers whether the name was free."""
        lane = self._queries.lane(actor, request.name)
        schedule_id = new_run_ids(1, lane, instant(self._clock))[0]
        resolved, first = await self._first(connection, actor, request)
        is_new = await schedules.create(
            connection,
            lane,
            schedule_id,
            request.name,
            content,
            state=ScheduleState.ACTIVE.value,
            tenant_id=actor.tenant,
            actor=actor.name,
        )
        if is_new:
            at = (first.nominal_at, first.due_at, TZDATA_VERSION)
            await schedules.set_cursor(connection, lane, schedule_id, *at, resolved.revision)
            await self._audit(connection, actor, lane, schedule_id, "create", request)
            notify.send(connection, [notify.schedule(lane)])
        return is_new

    async def _first(
        self, connection: Connection, actor: Actor, request: ScheduleRequest
    ) -> tuple[ResolvedSchedule, Occurrence]:
        """Its first instant: a schedule never fires for what was before it. Its calendars stay as they are."""
        found = await self._calendars.resolved(connection, actor, request.schedule, holds=True)
        if found.stored:  # else that was known when it was asked for
            fired(found.schedule, request.name)
        return found, request.first_after(await schedules.now(connection), found.schedule)

    async def _replace(
        self,
        connection: Connection,
        actor: Actor,
        schedule: LockedSchedule,
        request: ScheduleRequest,
        content: Content,
        action: str,
    ) -> None:
        lane = self._queries.lane(actor, request.name)
        resolved, _ = await self._first(connection, actor, request)  # refuses one that is over
        await schedule.settle(self._firer, self._clock)
        await schedules.keep_version(connection, lane, schedule.id, tenant_id=actor.tenant)
        state = ScheduleState.PAUSED if schedule.is_paused else ScheduleState.ACTIVE
        await schedules.replace(
            connection, lane, schedule.id, content, state=state.value, tenant_id=actor.tenant, actor=actor.name
        )
        await schedule.begin_anew(resolved)
        await self._audit(connection, actor, lane, schedule.id, action, request)
        notify.send(connection, [notify.schedule(lane)])

    async def _locked(
        self,
        connection: Connection,
        actor: Actor,
        name: str,
        expected_version: int | None,
        expected_id: UUID | None = None,
    ) -> LockedSchedule:
        schedule = await locked(connection, self._queries.lane(actor, name), name, tenant_id=actor.tenant)
        if schedule is None:
            raise await self._queries.not_found(connection, actor, name)
        version = schedule.row["version"]
        is_another = expected_id not in (None, schedule.id)  # deleted meanwhile, and made again
        if expected_version is not None and (is_another or expected_version != version):
            raise version_conflict(name, version, expected_version)
        return schedule

    @asynccontextmanager
    async def _changing(self, actor: Actor, name: str, action: str, **detail: object) -> AsyncIterator[LockedSchedule]:
        """One transaction around what is done to a schedule."""
        async with (
            self._database.acquire() as connection,
            transaction(connection),
            self._changing_on(connection, actor, name, action, detail=detail) as schedule,
        ):
            yield schedule

    @asynccontextmanager
    async def _changing_on(
        self,
        connection: Connection,
        actor: Actor,
        name: str,
        action: str,
        *,
        expected_version: int | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> AsyncIterator[LockedSchedule]:
        """What is done to a schedule, with its row of audit."""
        lane = self._queries.lane(actor, name)
        schedule = await self._locked(connection, actor, name, expected_version)
        yield schedule
        await schedules.audit(
            connection,
            lane,
            schedule.id,
            action,
            tenant_id=actor.tenant,
            actor=actor.name,
            detail={"name": name, **(detail or {})},
        )
        notify.send(connection, [notify.schedule(lane)])

    async def _audit(
        self, connection: Connection, actor: Actor, lane: int, schedule_id: UUID, action: str, request: ScheduleRequest
    ) -> None:
        detail = {"name": request.name, "job": request.job, "when": request.schedule.text}
        await schedules.audit(
            connection, lane, schedule_id, action, tenant_id=actor.tenant, actor=actor.name, detail=detail
        )
