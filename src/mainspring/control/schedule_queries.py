"""What people and programs may ask about schedules: find, history, preview, versions."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from mainspring.control.reruns import standing
from mainspring.control.schedule_errors import empty_range, no_such_schedule, no_such_version
from mainspring.control.schedule_rows import record_of, skip_record_of, specs_of, summary_of, told_once, version_of
from mainspring.errors import InvalidSchedule
from mainspring.model.ids import lane_of_key
from mainspring.model.job import checked_at, checked_name
from mainspring.model.listing import checked_limit
from mainspring.schedule.deciding import ON_TIME
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.walls import TICK
from mainspring.scheduler.batch import schedule_from, schedule_if_readable
from mainspring.scheduler.calendars import resolve
from mainspring.store import jobs, lists, schedule_reading, schedules
from mainspring.store.connection import snapshot
from mainspring.store.schedule_reading import ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.errors import ScheduleNotFound
    from mainspring.model.actor import Actor
    from mainspring.model.lifecycle import State
    from mainspring.model.scheduling import OccurrenceRecord, ScheduleSummary, ScheduleVersion
    from mainspring.schedule.preview import Preview
    from mainspring.schedule.schedule import Schedule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

MOST_VERSIONS = 1_000
MOST_RERUNS = 100  # of reruns of reruns, each of which is a question
MOST_OF_ONE_NAME = 10  # schedules that were deleted and made again, whose history is shown under their name


class ScheduleQueries:
    """Shows schedules, what their instants became and what they were before."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes

    async def find(self, actor: Actor, name: str) -> ScheduleSummary:
        """A schedule by its name."""
        async with self._database.acquire() as connection:
            return await self.find_on(connection, actor, name)

    async def history(
        self,
        actor: Actor,
        name: str,
        *,
        since: datetime | None = None,
        before: datetime | None = None,
        missed: bool = False,
        limit: int = 100,
    ) -> Sequence[OccurrenceRecord]:
        """What the instants of a schedule became, newest first; `missed`: only those that did not fire on time.

        Also of one that was deleted, and of those that had its name before. What was run again is shown with its
        last run; `first_run_id` is the first.
        """
        count = checked_limit(limit)
        begin, end = checked_at(since, "since") or EARLIEST, checked_at(before, "before") or LATEST
        if begin >= end:
            raise empty_range(begin, end)
        lane, late_by = self.lane(actor, name), ON_TIME if missed else None
        async with self._database.acquire() as connection, snapshot(connection):
            fired, skipped = [], []
            specs = specs_of(await self.all_versions(connection, actor, lane, name))
            for each in tuple(specs)[:MOST_OF_ONE_NAME]:
                fired += await schedule_reading.occurrences(connection, lane, each, end, begin, count, late_by=late_by)
                for row in await schedule_reading.skipped(connection, lane, each, end, begin, count):
                    made_up = await self._made_up_for(connection, lane, each, row, end, count)
                    spec = specs[each].get(row["version"]) if row["has_backfilled"] else None
                    skipped += told_once(row, made_up, end, await self._computable(connection, actor, spec), name)
            records = [*map(record_of, fired), *map(skip_record_of, skipped)]
            newest = sorted(records, key=lambda each: each.nominal_at, reverse=True)[:count]
            return await self._with_runs(connection, actor, lane, newest)

    async def preview(self, actor: Actor, name: str, *, count: int = 10) -> Preview:
        """The next instants of a schedule, with notes; of one that is paused, those from the end of its pause on."""
        async with self._database.acquire() as connection:
            row, now = await self.row(connection, actor, name), await schedules.now(connection)
            schedule = (await resolve(connection, schedule_from(row["spec"]), tenant_id=actor.tenant)).schedule
        after = now if row["paused_until"] is None else max(now, row["paused_until"] - TICK)
        return schedule.preview(after, count=count, job=name)

    async def versions(self, actor: Actor, name: str) -> Sequence[ScheduleVersion]:
        """What a schedule is and was, newest first; also of one that was deleted."""
        lane = self.lane(actor, name)
        async with self._database.acquire() as connection, snapshot(connection):
            rows = await self.all_versions(connection, actor, lane, name)
            names = await jobs.names_of(connection, {row["job_id"] for row in rows}, tenant_id=actor.tenant)
        return [version_of(row, names[row["job_id"]]) for row in rows]

    # ── for whoever changes them ────────────────────────────────────────────────────────────────────────────

    def lane(self, actor: Actor, name: str) -> int:
        return lane_of_key(actor.tenant, checked_name(name, "name"), self._lanes)

    async def find_on(self, connection: Connection, actor: Actor, name: str) -> ScheduleSummary:
        return (await self.summaries(connection, actor, [await self.row(connection, actor, name)]))[0]

    async def row(self, connection: Connection, actor: Actor, name: str) -> Record:
        row = await schedules.find(connection, self.lane(actor, name), name, tenant_id=actor.tenant)
        if row is None:
            raise await self.not_found(connection, actor, name)
        return row

    async def version_row(
        self, connection: Connection, actor: Actor, lane: int, present: Record, version: int
    ) -> Record:
        """What a schedule is, or was, at one version."""
        if version == present["version"]:
            return present
        row = None
        if 1 <= version < present["version"]:
            row = await schedule_reading.find_version(connection, lane, present["id"], version, tenant_id=actor.tenant)
        if row is None:
            raise no_such_version(present["name"], version, present["version"])
        return row

    async def all_versions(self, connection: Connection, actor: Actor, lane: int, name: str) -> Sequence[Record]:
        """The present one first, if there is one."""
        present = await schedules.find(connection, lane, name, tenant_id=actor.tenant)
        older = await schedule_reading.versions(connection, lane, name, tenant_id=actor.tenant, count=MOST_VERSIONS)
        if present is None and not older:
            raise await self.not_found(connection, actor, name)
        return older if present is None else [present, *older]

    async def not_found(self, connection: Connection, actor: Actor, name: str) -> ScheduleNotFound:
        alike = ScheduleFilter(actor.tenant, prefix=name[:1])
        near = await schedule_reading.listed(connection, self._lanes, alike, count=1_000)
        return no_such_schedule(name, (row["name"] for row in near))

    async def summaries(
        self, connection: Connection, actor: Actor, rows: Sequence[Record]
    ) -> Sequence[ScheduleSummary]:
        names = await jobs.names_of(connection, {row["job_id"] for row in rows}, tenant_id=actor.tenant)
        return [summary_of(row, names[row["job_id"]]) for row in rows]

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _with_runs(
        self, connection: Connection, actor: Actor, lane: int, records: Sequence[OccurrenceRecord]
    ) -> Sequence[OccurrenceRecord]:
        """The records with the runs that stand for them now, and their states."""
        run_ids = {each.run_id for each in records if each.run_id is not None}
        stands = await standing(connection, lane, run_ids, tenant_id=actor.tenant, most=MOST_RERUNS)
        states = await lists.states_of(connection, list(set(stands.values())), tenant_id=actor.tenant)
        return [each if each.run_id is None else _standing(each, stands[each.run_id], states) for each in records]

    async def _computable(self, connection: Connection, actor: Actor, spec: str | None) -> Schedule | None:
        """A stored schedule with its calendars; None if there is none, or it can no longer be read."""
        schedule = None if spec is None else schedule_if_readable(spec)
        with contextlib.suppress(InvalidSchedule):  # one of its calendars was deleted
            return None if schedule is None else (await resolve(connection, schedule, tenant_id=actor.tenant)).schedule
        return None

    async def _made_up_for(
        self, connection: Connection, lane: int, schedule_id: UUID, row: Record, before: datetime, count: int
    ) -> Sequence[datetime]:
        """The latest instants before then that were skipped, and became runs by a backfill."""
        if not row["has_backfilled"]:
            return []
        end = min(before, row["last_at"] + TICK)
        found = await schedule_reading.occurrences(connection, lane, schedule_id, end, row["first_at"], count)
        return [each["nominal_at"] for each in found]


def _standing(record: OccurrenceRecord, run_id: UUID, states: Mapping[UUID, State]) -> OccurrenceRecord:
    first = None if run_id == record.run_id else record.run_id
    return replace(record, run_id=run_id, run_state=states.get(run_id), first_run_id=first)
