"""What people and programs may do with stored calendars: make, edit, import, show, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mainspring.clock import instant
from mainspring.control.calendar_errors import (
    calendar_exists,
    calendar_in_use,
    calendar_version_conflict,
    empty_calendar,
    no_such_calendar,
)
from mainspring.model.listing import checked_limit
from mainspring.model.scheduling import CalendarSummary
from mainspring.schedule.calendar import Calendar, NamedCalendar, unknown_calendar
from mainspring.schedule.canonical import calendar_document
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.icalendar import read_calendar
from mainspring.scheduler.calendars import resolved
from mainspring.store import calendars, notify
from mainspring.store.connection import snapshot, transaction

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mainspring.clock import Clock
    from mainspring.model.actor import Actor
    from mainspring.schedule.schedule import Schedule
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

USERS_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCalendar:
    """The calendar as it is stored, how many events it was made of, and what could not be taken over, with reasons."""

    calendar: CalendarSummary
    events: int
    left_out: tuple[str, ...]


class Calendars:
    """Keeps calendars that schedules share by name. After an edit, schedulers compute what follows from it."""

    def __init__(self, *, database: Database, clock: Clock, lanes: int) -> None:
        self._database = database
        self._clock = clock
        self._lanes = list(range(lanes))

    async def create(self, actor: Actor, calendar: Calendar) -> CalendarSummary:
        """Store a calendar; its name must be free."""
        document = _document(calendar)
        async with self._database.acquire() as connection, transaction(connection):
            revision = await calendars.advance_revision(connection)
            if await calendars.find(connection, [calendar.name], tenant_id=actor.tenant):
                raise calendar_exists(calendar.name)
            await self._write(connection, actor, calendar.name, document, revision, "create")
        return await self.find(actor, calendar.name)

    async def put(self, actor: Actor, calendar: Calendar, *, expected_version: int | None = None) -> CalendarSummary:
        """Store a calendar, or make the one of this name this one. Schedules that use it follow within a second.

        Asked for twice, nothing more happens. What was due before is decided as it was; what is in line for an instant
        that the new days exclude is taken back.
        """
        document = _document(calendar)
        name = calendar.name
        async with self._database.acquire() as connection, transaction(connection):
            revision = await calendars.advance_revision(connection)
            found = await calendars.find(connection, [name], tenant_id=actor.tenant)
            if expected_version is not None:
                await self._check_version(connection, actor, name, found, expected_version)
            if not found or found[0]["document"] != document:
                await self._write(connection, actor, name, document, revision, "replace" if found else "create")
        return await self.find(actor, name)

    async def import_icalendar(
        self, actor: Actor, name: str, data: bytes, *, zone: str = "UTC", expected_version: int | None = None
    ) -> ImportedCalendar:
        """Store the whole days of an iCalendar file (.ics) as a calendar, or make the one of this name these days.

        Days that recur in another way than once a year are written out for twenty years: import it again before.
        """
        read = read_calendar(data, name=name, since=instant(self._clock).date(), zone=zone)
        stored = await self.put(actor, read.calendar, expected_version=expected_version)
        return ImportedCalendar(calendar=stored, events=read.events, left_out=read.left_out)

    async def find(self, actor: Actor, name: str) -> CalendarSummary:
        """A calendar by its name."""
        async with self._database.acquire() as connection, snapshot(connection):
            return await self._summary(connection, actor, await self._row(connection, actor, name))

    async def list(self, actor: Actor) -> Sequence[CalendarSummary]:
        """All calendars in the order of their names, with the first hundred schedules that use each."""
        async with self._database.acquire() as connection, snapshot(connection):
            rows = await calendars.listed(connection, tenant_id=actor.tenant)
            return [await self._summary(connection, actor, row) for row in rows]

    async def users(self, actor: Actor, name: str, *, after: str = "", limit: int = 1_000) -> Sequence[str]:
        """The names of schedules that use a calendar, after the given one."""
        count = checked_limit(limit)
        async with self._database.acquire() as connection, snapshot(connection):
            await self._row(connection, actor, name)
            return await self._users(connection, actor, name, after, count)

    async def delete(self, actor: Actor, name: str) -> None:
        """Remove a calendar that no schedule uses."""
        NamedCalendar(name=name)
        async with self._database.acquire() as connection, transaction(connection):
            # First, so that whoever is making a schedule that uses it is waited for, or refused.
            if not await calendars.delete(connection, name, tenant_id=actor.tenant):
                raise await self._not_found(connection, actor, name)
            if users := await self._users(connection, actor, name, "", USERS_SHOWN):
                raise calendar_in_use(name, users)
            await calendars.audit(connection, "delete", name, tenant_id=actor.tenant, actor=actor.name)

    # ── for schedules ───────────────────────────────────────────────────────────────────────────────────────

    async def resolved(
        self, connection: Connection, actor: Actor, schedule: Schedule, *, holds: bool = False
    ) -> ResolvedSchedule:
        """A schedule with its calendars as they are. `holds`: nobody edits or deletes them before COMMIT."""
        return resolved(schedule, await self.known(connection, actor, schedule.stored_calendars, holds=holds))

    async def known(
        self, connection: Connection, actor: Actor, names: Collection[str], *, holds: bool
    ) -> Sequence[Record]:
        """Calendars by their names; refuses one that is not there."""
        if not names:
            return []
        look_up = calendars.hold if holds else calendars.find
        rows = await look_up(connection, list(names), tenant_id=actor.tenant)
        for name in sorted(set(names) - {row["name"] for row in rows}):
            raise unknown_calendar(name, await self._names(connection, actor))
        return rows

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _write(
        self, connection: Connection, actor: Actor, name: str, document: str, revision: int, action: str
    ) -> None:
        await calendars.put(connection, name, document, revision=revision, tenant_id=actor.tenant, actor=actor.name)
        await calendars.audit(connection, action, name, tenant_id=actor.tenant, actor=actor.name)
        notify.send(connection, [notify.schedule(0)])  # whatever the lane: all schedulers look

    async def _check_version(
        self, connection: Connection, actor: Actor, name: str, found: Sequence[Record], expected: int
    ) -> None:
        if not found:
            raise await self._not_found(connection, actor, name)
        if found[0]["version"] != expected:
            raise calendar_version_conflict(name, found[0]["version"], expected)

    async def _row(self, connection: Connection, actor: Actor, name: str) -> Record:
        NamedCalendar(name=name)  # refuses what is no name
        rows = await calendars.find(connection, [name], tenant_id=actor.tenant)
        if not rows:
            raise await self._not_found(connection, actor, name)
        return rows[0]

    async def _summary(self, connection: Connection, actor: Actor, row: Record) -> CalendarSummary:
        days = msgspec.json.decode(row["document"])
        del days["name"]
        return CalendarSummary(
            name=row["name"],
            version=row["version"],
            days=days,
            used_by=[*await self._users(connection, actor, row["name"], "", USERS_SHOWN)],
            created_at=row["created_at"],
            created_by=row["created_by"],
            changed_at=row["changed_at"],
            changed_by=row["changed_by"],
        )

    async def _users(self, connection: Connection, actor: Actor, name: str, after: str, count: int) -> Sequence[str]:
        rows = await calendars.users(connection, self._lanes, [name], tenant_id=actor.tenant, after=after, count=count)
        return [row["name"] for row in rows]

    async def _names(self, connection: Connection, actor: Actor) -> Sequence[str]:
        return [row["name"] for row in await calendars.listed(connection, tenant_id=actor.tenant)]

    async def _not_found(self, connection: Connection, actor: Actor, name: str) -> Exception:
        return no_such_calendar(name, await self._names(connection, actor))


def _document(calendar: Calendar) -> str:
    """As a row keeps it. Equal calendars have equal documents."""
    if not isinstance(calendar, Calendar) or isinstance(calendar, NamedCalendar):
        raise broken_rule("calendar", calendar, "must be a Calendar", code="invalid-calendar")
    document = calendar_document(calendar)
    if len(document) == 1:
        raise empty_calendar(calendar.name)
    return msgspec.json.encode(document).decode()
