"""Which occurrences a backfill means: the instants of a part of a schedule's past, and what became of each."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.reruns import standing
from mainspring.model.backfill import BackfillOrder, BackfillVersion, BackfillWhich
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.walls import TICK
from mainspring.scheduler.batch import schedule_from
from mainspring.scheduler.calendars import resolve
from mainspring.store import backfills, lists, schedules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.model.actor import Actor
    from mainspring.model.backfill import Backfill
    from mainspring.model.lifecycle import State
    from mainspring.schedule.schedule import Occurrence, Schedule
    from mainspring.store.connection import Connection, Record


LOOKED_AT = 1_000  # instants that are looked at together, at most

_Span = tuple["Record", "datetime", "datetime"]


class VersionInForce(NamedTuple):
    """A version of a schedule, and the instants that are its own: after the one, up to the other."""

    row: Record
    after: datetime
    until: datetime
    schedule: Schedule


class PastInstant(NamedTuple):
    """An instant that has passed, the version of the schedule it is counted by, and what became of it."""

    occurrence: Occurrence
    schedule: Schedule
    row: Record
    run_id: UUID | None = None  # which stands for it now: its run, or what that was run again as
    state: State | None = None

    @property
    def nominal_at(self) -> datetime:
        return self.occurrence.nominal_at


class PastRange:
    """The part of a schedule's past that a backfill is about, as it is at this moment."""

    def __init__(
        self, backfill: Backfill, lane: int, in_force: Sequence[VersionInForce], before: datetime, now: datetime
    ):
        self._backfill = backfill
        self._lane = lane
        self._in_force = in_force
        self._before = before
        self._now = now

    @property
    def order(self) -> BackfillOrder:
        return self._backfill.order

    @property
    def since(self) -> datetime:
        return self._backfill.since

    @property
    def before(self) -> datetime:
        return self._before

    def between(self, since: datetime, before: datetime) -> Iterator[Occurrence]:
        """Instants of a part of the range, from the first to the last."""
        for each in self._in_force:
            begin, end = max(since, each.after + TICK), min(before, each.until + TICK)
            if begin < end:
                yield from _forwards(each.schedule, self._backfill.schedule, begin, end)

    def instants(self, after: datetime | None = None) -> Iterator[PastInstant]:
        """One by one, in the backfill's order, from the given one on."""
        is_forwards = self._backfill.order is BackfillOrder.FORWARDS
        walked = _forwards if is_forwards else _backwards
        for row, begin, end, schedule in self._in_force if is_forwards else reversed(self._in_force):
            since, before = max(self._backfill.since, begin + TICK), min(self._before, end + TICK)
            if after is not None:
                since, before = (max(since, after + TICK), before) if is_forwards else (since, min(before, after))
            if since < before:
                for each in walked(schedule, self._backfill.schedule, since, before):
                    if each.due_at <= self._now:
                        yield PastInstant(each, schedule, row)

    async def look(
        self, connection: Connection, after: datetime | None, count: int, *, tenant_id: int
    ) -> list[PastInstant]:
        """The next instants, and what became of them."""
        found = list(islice(self.instants(after), count))
        at = [each.nominal_at for each in found]
        runs = await backfills.runs_at(connection, self._lane, self._backfill.schedule_id, at)
        stand_for: dict[UUID, UUID] = {}
        states: dict[UUID, State] = {}
        if runs and self._backfill.which is not BackfillWhich.MISSING:
            stand_for = await standing(connection, self._lane, runs.values(), tenant_id=tenant_id)
            states = await lists.states_of(connection, list(stand_for.values()), tenant_id=tenant_id)
        for place, each in enumerate(found):
            run_id = runs.get(each.nominal_at)
            if run_id is not None:
                run_id = stand_for.get(run_id, run_id)
                found[place] = each._replace(run_id=run_id, state=states.get(run_id))
        return found

    def is_meant(self, instant: PastInstant) -> bool:
        return self._backfill.which.takes(instant.state, has_run=instant.run_id is not None)


async def read_range(
    connection: Connection, queries: ScheduleQueries, actor: Actor, backfill: Backfill, row: Record
) -> PastRange:
    """What there is to backfill, by a schedule's present row. What nobody has decided yet is the scheduler's."""
    lane, now = queries.lane(actor, backfill.schedule), await schedules.now(connection)
    rows: Sequence[Record] = ()
    if backfill.version is BackfillVersion.THEN:
        rows = await queries.all_versions(connection, actor, lane, backfill.schedule)
    before = min(backfill.before, decided_before(row, now))
    in_force = [
        VersionInForce(each, after, until, await _computable(connection, actor, each))
        for each, after, until in _in_force(backfill.version, row, rows)
    ]
    return PastRange(backfill, lane, in_force, before, now)


async def _computable(connection: Connection, actor: Actor, row: Record) -> Schedule:
    """With what is in its stored calendars now."""
    return (await resolve(connection, schedule_from(row["spec"]), tenant_id=actor.tenant)).schedule


def decided_before(row: Record, now: datetime) -> datetime:
    """Up to where a schedule's instants are decided: to its cursor, or to the present if that is earlier."""
    return now if row["nominal_at"] is None else min(now, row["nominal_at"])


def _in_force(which: BackfillVersion, present: Record, versions: Sequence[Record]) -> list[_Span]:
    """The versions that count, oldest first. A change comes after the instants that are due at its moment."""
    if which is BackfillVersion.PRESENT:
        return [(present, EARLIEST, LATEST)]
    older = [
        (row, row["changed_at"], row["replaced_at"])
        for row in versions
        if "schedule_id" in row and row["schedule_id"] == present["id"]
    ]
    older.sort(key=lambda each: each[0]["version"])
    return [*older, (present, present["changed_at"], LATEST)]


def _forwards(schedule: Schedule, name: str, since: datetime, before: datetime) -> Iterator[Occurrence]:
    return schedule.between(since, before, job=name)


def _backwards(schedule: Schedule, name: str, since: datetime, before: datetime) -> Iterator[Occurrence]:
    found = schedule.prev_before(before, job=name)
    while found is not None and found.nominal_at >= since:
        yield found
        found = schedule.prev_before(found.nominal_at, job=name)
