"""Schedules that an application declares in its code, brought together with those in the database.

Every process that starts does this, and deploys overlap: an old process that starts again must not bring the old
schedule back. So what is declared takes effect *once*, when it is first seen: a content that was replaced by another
one before is passed over as superseded, until somebody applies it by hand. What was changed at run time belongs to
whoever changed it, and what is no longer declared stays until somebody prunes it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from mainspring.control.schedule_rows import content_of
from mainspring.errors import ScheduleExists, ScheduleNotFound, ScheduleVersionConflict
from mainspring.model.ids import lane_of_key
from mainspring.model.payload import printable
from mainspring.schedule.interval import span_text
from mainspring.scheduler.batch import schedule_if_readable
from mainspring.store import jobs, schedule_reading, schedules, workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mainspring.control.application import Application
    from mainspring.control.calendars import Calendars
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedules import Schedules
    from mainspring.model.actor import Actor
    from mainspring.schedule.schedule import Schedule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.schedules import Content

MOST_VERSIONS = 100
MOST_SHOWN = 200  # characters of what was and is


class Difference(StrEnum):
    """How a declared schedule differs from the one in the database."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"  # by a version of the code that came later
    OVERRIDDEN = "overridden"  # by somebody, at run time
    REMOVED = "removed"  # no longer declared, and still there
    ELSEWHERE = "elsewhere"  # not declared here, and perhaps by an application whose workers know its job


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredChange:
    """What is different, besides when the schedule fires."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDifference:
    """One schedule, as the code has it and as the database has it."""

    name: str
    difference: Difference
    before: Schedule | None = None
    after: Schedule | None = None
    changes: tuple[DeclaredChange, ...] = ()
    request: ScheduleRequest | None = None
    version: int | None = None  # of the schedule in the database

    @property
    def takes_effect(self) -> bool:
        return self.difference in (Difference.ADDED, Difference.CHANGED)


class DeclaredSchedules:
    """Applies what an application declares."""

    def __init__(
        self, *, database: Database, lanes: int, application: Application, schedules: Schedules, calendars: Calendars
    ) -> None:
        self._calendars = calendars
        self._database = database
        self._lanes = lanes
        self._application = application
        self._schedules = schedules

    async def compare(
        self, actor: Actor, requests: Sequence[ScheduleRequest], *, by_hand: bool
    ) -> list[DeclaredDifference]:
        """How the schedules of the code differ from those in the database. Changes nothing of them."""
        contents = [await self._schedules.content(actor, request) for request in requests]
        async with self._database.acquire() as connection:
            found = [
                await self._compared(connection, actor, request, content, by_hand=by_hand)
                for request, content in zip(requests, contents, strict=True)
            ]
            return found + await self._removed(connection, actor, {request.name for request in requests})

    async def _compared(
        self, connection: Connection, actor: Actor, request: ScheduleRequest, content: Content, *, by_hand: bool
    ) -> DeclaredDifference:
        lane = self._lane(actor, request.name)
        row = await schedules.find(connection, lane, request.name, tenant_id=actor.tenant)
        return DeclaredDifference(
            name=request.name,
            difference=await self._difference(connection, actor, row, content, by_hand=by_hand),
            before=None if row is None else await self._present(connection, actor, row),
            after=await self._resolved(connection, actor, request.schedule),
            changes=() if row is None else tuple(_changes(content_of(row), content)),
            request=request,
            version=None if row is None else row["version"],
        )

    async def _present(self, connection: Connection, actor: Actor, row: Record) -> Schedule | None:
        schedule = schedule_if_readable(row["spec"])
        return None if schedule is None else await self._resolved(connection, actor, schedule)

    async def _resolved(self, connection: Connection, actor: Actor, schedule: Schedule) -> Schedule:
        return (await self._calendars.resolved(connection, actor, schedule)).schedule

    async def _difference(
        self, connection: Connection, actor: Actor, row: Record | None, content: Content, *, by_hand: bool
    ) -> Difference:
        if row is None:
            return Difference.ADDED
        if content.is_same(content_of(row)):
            return Difference.UNCHANGED
        if not row["is_declared"]:
            return Difference.OVERRIDDEN
        if not by_hand and await self._was_before(connection, actor, row, content):
            return Difference.SUPERSEDED
        return Difference.CHANGED

    async def apply(
        self, actor: Actor, requests: Sequence[ScheduleRequest], *, by_hand: bool = False, prune: bool = False
    ) -> list[DeclaredDifference]:
        """Make the schedules of the code those of the database; answers with what differed before."""
        differences = await self.compare(actor, requests, by_hand=by_hand)
        for each in differences:
            if each.takes_effect:
                await self._take_effect(actor, each, by_hand=by_hand)
            elif prune and each.difference is Difference.REMOVED:
                await self._delete(actor, each.name)
        return differences

    async def _take_effect(self, actor: Actor, difference: DeclaredDifference, *, by_hand: bool) -> None:
        """If the schedule is as it was compared; else compare again, since another version of the code was faster."""
        request = difference.request
        assert request is not None
        while difference.takes_effect:
            try:
                if difference.version is None:
                    await self._schedules.create(actor, request)
                else:
                    await self._schedules.put(actor, request, expected_version=difference.version)
            except (ScheduleExists, ScheduleNotFound, ScheduleVersionConflict):
                difference = (await self.compare(actor, [request], by_hand=by_hand))[0]
            else:
                return

    async def _delete(self, actor: Actor, name: str) -> None:
        with contextlib.suppress(ScheduleNotFound):  # somebody else pruned it
            await self._schedules.delete(actor, name)

    def _lane(self, actor: Actor, name: str) -> int:
        return lane_of_key(actor.tenant, name, self._lanes)

    async def _was_before(self, connection: Connection, actor: Actor, row: Record, content: Content) -> bool:
        """Whether this schedule was that before."""
        name = row["name"]
        older = await schedule_reading.versions(
            connection, self._lane(actor, name), name, tenant_id=actor.tenant, count=MOST_VERSIONS
        )
        return any(content.is_same(content_of(each)) for each in older if each["schedule_id"] == row["id"])

    async def _removed(self, connection: Connection, actor: Actor, declared: set[str]) -> list[DeclaredDifference]:
        """Declared before, and not by us now. Those of jobs that only others know may be declared by these."""
        rows = await schedule_reading.declared(connection, self._lanes, tenant_id=actor.tenant)
        rows = [row for row in rows if row["name"] not in declared]
        names = await jobs.names_of(connection, {row["job_id"] for row in rows}, tenant_id=actor.tenant)
        known = {handler for server in await workers.servers(connection) for handler in server.handlers}
        return [
            DeclaredDifference(
                name=row["name"],
                difference=Difference.ELSEWHERE if self._is_of_others(job, known) else Difference.REMOVED,
                before=schedule_if_readable(row["spec"]),
            )
            for row in rows
            for job in [names[row["job_id"]]]
        ]

    def _is_of_others(self, job: str, known: set[str]) -> bool:
        return job in known and self._application.definition_of(job) is None


def _changes(before: Content, after: Content) -> Iterator[DeclaredChange]:
    for what, told in _TOLD.items():
        was, becomes = told(before), told(after)
        if was != becomes:
            yield DeclaredChange(what=what, before=was, after=becomes)


_TOLD: dict[str, Callable[[Content], str]] = {
    "overlap": lambda content: content.overlap,
    "pause after failures": lambda content: str(content.pause_after_failures or "never"),
    "catch-up": lambda content: (
        f"{content.catch_up} within {span_text(elapsed=timedelta(seconds=content.catch_up_seconds))}"
    ),
    "arguments": lambda content: printable(content.payload.decode(errors="replace"), MOST_SHOWN),
    "options": lambda content: printable(content.options, MOST_SHOWN),
    "tags": lambda content: printable(", ".join(content.tags or ()), MOST_SHOWN),
}
