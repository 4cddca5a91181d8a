"""What is done to schedules inside an open transaction, of ours or of a caller: made, replaced, paused, deleted."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mainspring.clock import instant
from mainspring.control.schedule_errors import pause_is_over, schedule_exists, version_conflict
from mainspring.control.schedule_rows import content_of, kept
from mainspring.model.scheduling import PutOutcome, ScheduleState
from mainspring.schedule.text import fired
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.changing import locked
from mainspring.store import notify, schedules
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.calendars import Calendars
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.schedule.schedule import Occurrence
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.scheduler.changing import LockedSchedule
    from mainspring.scheduler.firing import LaneFirer
    from mainspring.store.connection import Connection
    from mainspring.store.schedules import Content


class ScheduleActs:
    """Makes and changes schedules over a connection in a transaction. A content is what the request's row will be."""

    def __init__(self, *, clock: Clock, queries: ScheduleQueries, calendars: Calendars, firer: LaneFirer) -> None:
        self._clock = clock
        self._queries = queries
        self._calendars = calendars
        self._firer = firer

    async def create(
        self, connection: Connection, actor: Actor, request: ScheduleRequest, content: Content
    ) -> ScheduleSummary:
        if not await self._create(connection, actor, request, content):
            raise schedule_exists(request.name)
        return await self._queries.find_on(connection, actor, request.name)

    async def put(
        self,
        connection: Connection,
        actor: Actor,
        request: ScheduleRequest,
        content: Content,
        expected_version: int | None,
        expected_id: UUID | None = None,
        action: str = "replace",
    ) -> ScheduleSummary:
        await self.put_content(connection, actor, request, content, expected_version, expected_id, action)
        return await self._queries.find_on(connection, actor, request.name)

    async def put_content(
        self,
        connection: Connection,
        actor: Actor,
        request: ScheduleRequest,
        content: Content,
        expected_version: int | None = None,
        expected_id: UUID | None = None,
        action: str = "replace",
    ) -> PutOutcome:
        """Make a schedule what is asked for, and say what that took. Of one that is so already, nothing is asked."""
        schedule = await self._lock(connection, actor, request.name)
        if schedule is None and expected_version is None:
            if await self._create(connection, actor, request, content):
                return PutOutcome.CREATED
            schedule = await self._lock(connection, actor, request.name)  # somebody made it meanwhile
        if schedule is None:
            raise await self._queries.not_found(connection, actor, request.name)
        _check_version(schedule, expected_version, expected_id)
        request, content = kept(request, content, schedule.row)
        if content.is_same(content_of(schedule.row)):
            return PutOutcome.UNCHANGED
        await self._replace(connection, actor, schedule, request, content, action)
        return PutOutcome.CHANGED

    async def delete(self, connection: Connection, actor: Actor, name: str, expected_version: int | None) -> None:
        async with self._changing(connection, actor, name, "delete", expected_version=expected_version) as schedule:
            await self._settle(schedule)
            await schedule.delete(tenant_id=actor.tenant)

    async def pause(
        self, connection: Connection, actor: Actor, name: str, reason: str, until: datetime | None
    ) -> ScheduleSummary:
        detail = {"reason": reason, "until": until}
        async with self._changing(connection, actor, name, "pause", detail=detail) as schedule:
            if until is not None and until <= schedule.now:
                raise pause_is_over(until, schedule.now)
            await self._settle(schedule)
            await schedule.pause(tenant_id=actor.tenant, actor=actor.name, reason=reason, until=until)
        return await self._queries.find_on(connection, actor, name)

    async def resume(self, connection: Connection, actor: Actor, name: str) -> ScheduleSummary:
        async with self._changing(connection, actor, name, "resume") as schedule:
            if schedule.is_paused:
                await self._settle(schedule)
                await schedule.resume(tenant_id=actor.tenant, at=schedule.now)
        return await self._queries.find_on(connection, actor, name)

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _settle(self, schedule: LockedSchedule) -> None:
        """Take back what is staged, and decide what is overdue: that comes before every change."""
        await schedule.settle(self._firer, self._clock)

    @asynccontextmanager
    async def _changing(
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
        schedule = await self._lock(connection, actor, name)
        if schedule is None:
            raise await self._queries.not_found(connection, actor, name)
        _check_version(schedule, expected_version)
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

    async def _create(self, connection: Connection, actor: Actor, request: ScheduleRequest, content: Content) -> bool:
        """Inside a transaction; answers whether the name was free."""
        lane = self._queries.lane(actor, request.name)
        schedule_id = new_run_ids(1, lane, instant(self._clock))[0]
        resolved, first = await self._first(connection, actor, request, await schedules.now(connection))
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
        self, connection: Connection, actor: Actor, request: ScheduleRequest, now: datetime
    ) -> tuple[ResolvedSchedule, Occurrence]:
        """Its first instant: a schedule never fires for what was before it. Its calendars stay as they are."""
        found = await self._calendars.resolved(connection, actor, request.schedule, holds=True)
        if found.stored:  # else that was known when it was asked for
            fired(found.schedule, request.name)
        return found, request.first_after(now, found.schedule)

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
        resolved, _ = await self._first(connection, actor, request, schedule.now)  # refuses one that is over
        await self._settle(schedule)
        await schedules.keep_version(connection, lane, schedule.id, tenant_id=actor.tenant)
        state = ScheduleState.PAUSED if schedule.is_paused else ScheduleState.ACTIVE
        await schedules.replace(
            connection, lane, schedule.id, content, state=state.value, tenant_id=actor.tenant, actor=actor.name
        )
        await schedule.begin_anew(resolved)
        await self._audit(connection, actor, lane, schedule.id, action, request)
        notify.send(connection, [notify.schedule(lane)])

    async def _lock(self, connection: Connection, actor: Actor, name: str) -> LockedSchedule | None:
        return await locked(connection, self._queries.lane(actor, name), name, tenant_id=actor.tenant)

    async def _audit(
        self, connection: Connection, actor: Actor, lane: int, schedule_id: UUID, action: str, request: ScheduleRequest
    ) -> None:
        await schedules.audit(
            connection, lane, schedule_id, action, tenant_id=actor.tenant, actor=actor.name, detail=audit_of(request)
        )


def audit_of(request: ScheduleRequest) -> dict[str, object]:
    """What the audit tells of a schedule that was made or replaced."""
    return {"name": request.name, "job": request.job, "when": request.schedule.text}


def _check_version(schedule: LockedSchedule, expected: int | None, expected_id: UUID | None = None) -> None:
    version, is_another = schedule.row["version"], expected_id not in (None, schedule.id)  # deleted, and made again
    if expected is not None and (is_another or expected != version):
        raise version_conflict(schedule.row["name"], version, expected)
