"""Schedules with what is in their stored calendars: a schedule names a calendar, and its instants follow from the days.

Every calendar has the revision of all calendars at which it was written, and a cursor the highest of those it was
computed with. Where that is no longer the highest, an edit came between, and nothing is decided from the cursor before
it has been computed again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.schedule.document import calendar_of
from mainspring.scheduler.batch import SPECS_KEPT, schedule_from
from mainspring.store import calendars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from mainspring.schedule.calendar import Calendar
    from mainspring.schedule.schedule import Schedule
    from mainspring.store.connection import Connection, Record


class StoredCalendar(NamedTuple):
    """A calendar as it was written last."""

    calendar: Calendar
    revision: int
    changed_at: datetime


class ResolvedSchedule(NamedTuple):
    """A schedule that can be computed, and the stored calendars it uses."""

    schedule: Schedule
    stored: tuple[StoredCalendar, ...] = ()

    @property
    def revision(self) -> int | None:
        """The highest among its calendars; None if it uses none."""
        return max((each.revision for each in self.stored), default=None)

    def edited_at(self, since: int | None) -> datetime:
        """When the first of its calendars was written that is newer than a revision; the last, if that is unknown."""
        newer = [each.changed_at for each in self.stored if since is not None and each.revision > since]
        return min(newer) if newer else max(each.changed_at for each in self.stored)


@lru_cache(maxsize=1_000)
def calendar_from(document: str) -> Calendar:
    """A stored calendar."""
    return calendar_of(msgspec.json.decode(document))


def resolved(schedule: Schedule, rows: Iterable[Record]) -> ResolvedSchedule:
    """A schedule with the calendars of these rows, which may be more than it uses."""
    if not schedule.stored_calendars:
        return ResolvedSchedule(schedule)
    return _with(schedule, {row["name"]: _stored(row) for row in rows})


def _stored(row: Record) -> StoredCalendar:
    return StoredCalendar(calendar_from(row["document"]), row["revision"], row["changed_at"])


def _with(schedule: Schedule, known: dict[str, StoredCalendar]) -> ResolvedSchedule:
    whole = schedule.with_stored({name: each.calendar for name, each in known.items()})
    return ResolvedSchedule(whole, tuple(known[name] for name in schedule.stored_calendars))


async def resolve(connection: Connection, schedule: Schedule, *, tenant_id: int) -> ResolvedSchedule:
    """A schedule with its calendars as they are now."""
    names = schedule.stored_calendars
    rows = await calendars.find(connection, names, tenant_id=tenant_id) if names else []
    return resolved(schedule, rows)


class CalendarCache:
    """Keeps what is in calendars until any of them is written."""

    def __init__(self) -> None:
        self._revision: int | None = None
        self._schedules: dict[tuple[int, str], ResolvedSchedule] = {}
        self._calendars: dict[tuple[int, str], StoredCalendar] = {}

    async def of(self, connection: Connection, row: Record) -> ResolvedSchedule:
        """The schedule of a row that is due: it says how often calendars were written when it was read."""
        newest, key = row["newest_calendars"], (row["tenant_id"], row["spec"])
        if newest != self._revision or len(self._schedules) > SPECS_KEPT:
            self._revision, self._schedules, self._calendars = newest, {}, {}
        found = self._schedules.get(key)
        if found is None:
            known = await self._known(connection, row["tenant_id"], row["calendars"])
            found = self._schedules[key] = _with(schedule_from(row["spec"]), known)
        return found

    async def _known(self, connection: Connection, tenant_id: int, names: Sequence[str]) -> dict[str, StoredCalendar]:
        if missing := [name for name in names if (tenant_id, name) not in self._calendars]:
            for row in await calendars.find(connection, missing, tenant_id=tenant_id):
                self._calendars[tenant_id, row["name"]] = _stored(row)
        return {name: self._calendars[tenant_id, name] for name in names if (tenant_id, name) in self._calendars}
