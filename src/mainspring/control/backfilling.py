"""Working off a backfill: batch by batch, at its rate, with no more unfinished runs than it may have.

A batch is one transaction, as with every operation: the runs, their rows in the ledger, and the operation's cursor. The
schedule is locked meanwhile, so that nobody changes it or takes its cursor back. What guards against a second run is
the ledger's key alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from mainspring.clock import instant
from mainspring.control.acting import detail_of
from mainspring.control.backfill_range import LOOKED_AT, read_range
from mainspring.control.reruns import standing
from mainspring.errors import ScheduleNotFound
from mainspring.model.backfill import OVER, BackfillOrder, backfill_of
from mainspring.scheduler.templates import RunKind
from mainspring.store import backfills, dead, lists, notify, operations, runs, schedule_reading, schedules
from mainspring.store.connection import snapshot, transaction, uncancelled
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.backfill_range import PastInstant
    from mainspring.control.reruns import Reruns
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.model.actor import Actor
    from mainspring.model.backfill import Backfill
    from mainspring.model.operation import Operation
    from mainspring.model.run import NewRun
    from mainspring.scheduler.templates import Templates
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

LOOK_SECONDS = 0.5
MOMENT = timedelta(microseconds=1)


class BackfillPosition(NamedTuple):
    """How far a backfill got, as its operation's cursor says: the last instant, and how many runs came of its batch."""

    at: datetime
    runs: int

    @classmethod
    def read(cls, cursor: str | None) -> BackfillPosition | None:
        if cursor is None:
            return None
        at, runs = cursor.split()
        return cls(datetime.fromisoformat(at), int(runs))

    def __str__(self) -> str:
        return f"{self.at.isoformat()} {self.runs}"


def _at(operation: Operation) -> datetime | None:
    position = BackfillPosition.read(operation.cursor)
    return None if position is None else position.at


class UnfinishedRuns:
    """The runs of a backfill's range that are not over, as many as it takes to know whether there is room for another.

    The range is looked at from its end, a piece at a time; what was over once is not looked at again. `at` is how far
    the operation was when it was looked at: what others did since then is looked at as well.
    """

    def __init__(self, backfill: Backfill, lane: int, tenant_id: int, at: datetime | None = None) -> None:
        self._backfill = backfill
        self._lane = lane
        self._tenant_id = tenant_id
        self._at = at
        self._known: set[UUID] = set()
        self._unseen = [(backfill.since, backfill.before)]  # parts that were not looked at, each without its end

    def add(self, run_ids: set[UUID], at: datetime | None) -> None:
        """What came of a batch that led up to there."""
        self._known |= run_ids
        self._at = at

    async def count(self, database: Database, at: datetime | None) -> int:
        """At most about as many as may be unfinished, when the operation was so far."""
        self._follow(at)
        async with database.acquire() as connection, snapshot(connection):
            self._known = await self._not_over(connection, self._known)
        while self._unseen and len(self._known) < (self._backfill.concurrency or 0):
            async with database.acquire() as connection, snapshot(connection):
                self._known |= await self._look_further(connection, *self._unseen.pop())
        return len(self._known)

    def _follow(self, at: datetime | None) -> None:
        """Somebody else worked on from where we were: their runs are between there and here."""
        if at is None or at == self._at:
            return
        asked = self._backfill
        begin = self._at or (asked.before if asked.order is BackfillOrder.BACKWARDS else asked.since)
        self._unseen.append((min(begin, at), max(begin, at) + MOMENT))
        self._at = at

    async def _look_further(self, connection: Connection, since: datetime, before: datetime) -> set[UUID]:
        schedule_id = self._backfill.schedule_id
        found = await schedule_reading.occurrences(connection, self._lane, schedule_id, before, since, LOOKED_AT)
        if len(found) == LOOKED_AT:
            self._unseen.append((since, found[-1]["nominal_at"]))
        run_ids = [row["run_id"] for row in found]
        stand_for = await standing(connection, self._lane, run_ids, tenant_id=self._tenant_id)
        return await self._not_over(connection, set(stand_for.values()))

    async def _not_over(self, connection: Connection, run_ids: set[UUID]) -> set[UUID]:
        if not run_ids:
            return set()
        states = await lists.states_of(connection, list(run_ids), tenant_id=self._tenant_id)
        return {run_id for run_id, state in states.items() if state not in OVER}


class Backfilling:
    """Works one backfill off. Whoever else works on the same one takes turns with this one."""

    def __init__(
        self,
        actor: Actor,
        operation: Operation,
        *,
        database: Database,
        clock: Clock,
        queries: ScheduleQueries,
        reruns: Reruns,
        templates: Templates,
    ) -> None:
        self._actor = actor
        self._backfill = backfill_of(operation.change)
        self._lane = queries.lane(actor, self._backfill.schedule)
        self._database = database
        self._clock = clock
        self._queries = queries
        self._reruns = reruns
        self._templates = templates
        self._unfinished = UnfinishedRuns(self._backfill, self._lane, actor.tenant, _at(operation))

    async def next_batch(self, operation: Operation, batch: int) -> bool:
        """Wait until the next batch may begin, and work it off; answers whether it was ours to do."""
        room = await self._room(operation, batch)
        return await uncancelled(self._batch(operation, room))

    # ── rate and concurrency ────────────────────────────────────────────────────────────────────────────────

    async def _room(self, operation: Operation, batch: int) -> int:
        """How many runs the next batch may make."""
        if self._backfill.rate is not None:
            batch = min(batch, max(1, int(self._backfill.rate)))
            await self._wait_for_turn(operation, self._backfill.rate)
        if self._backfill.concurrency is not None:
            at = _at(operation)  # who is further than that has the batch, and what was counted does not matter
            while (unfinished := await self._unfinished.count(self._database, at)) >= self._backfill.concurrency:
                await self._clock.sleep(LOOK_SECONDS)
            batch = min(batch, self._backfill.concurrency - unfinished)
        return batch

    async def _wait_for_turn(self, operation: Operation, rate: float) -> None:
        """Until the runs of the last batch have had their time, whoever made them."""
        position = BackfillPosition.read(operation.cursor)
        if position is None:
            return
        turn_at = operation.worked_at + timedelta(seconds=position.runs / rate)
        while (left := turn_at - await self._now()) > timedelta(0):
            await self._clock.sleep(left.total_seconds())

    async def _now(self) -> datetime:
        async with self._database.acquire() as connection:
            return await schedules.now(connection)

    # ── one batch ───────────────────────────────────────────────────────────────────────────────────────────

    async def _batch(self, operation: Operation, room: int) -> bool:
        tenant_id = self._actor.tenant
        async with self._database.acquire() as connection, transaction(connection):
            if not await operations.lock_if_at(connection, operation.id, operation.cursor, tenant_id=tenant_id):
                return False  # someone else worked this batch off
            past = await read_range(connection, self._queries, self._actor, self._backfill, await self._row(connection))
            after = _at(operation)
            seen = await past.look(connection, after, LOOKED_AT, tenant_id=tenant_id)
            meant = [each for each in seen if past.is_meant(each)]
            chosen = meant[:room]
            made = await self._act(connection, operation, chosen)
            last = chosen[-1] if len(chosen) < len(meant) else seen[-1] if seen else None
            await operations.advance(
                connection,
                operation.id,
                tenant_id=tenant_id,
                cursor=operation.cursor if last is None else str(BackfillPosition(last.nominal_at, len(made))),
                done=len(made),
                skipped=len(chosen) - len(made),
                is_over=len(seen) < LOOKED_AT and len(chosen) == len(meant),
            )
        if self._backfill.concurrency is not None:
            self._unfinished.add(made, after if last is None else last.nominal_at)
        return True

    async def _row(self, connection: Connection) -> Record:
        """The schedule as it is, locked."""
        name, tenant_id = self._backfill.schedule, self._actor.tenant
        locked = await schedules.lock(connection, self._lane, name, tenant_id=tenant_id)
        if locked is None or locked["id"] != self._backfill.schedule_id:
            raise ScheduleNotFound(
                f"Schedule {name!r}, which is to be backfilled, was deleted.",
                hint="The runs that were made stay. For one that was made again, start another backfill.",
                field="schedule",
                value=name,
            )
        return await self._queries.row(connection, self._actor, name)

    async def _act(self, connection: Connection, operation: Operation, chosen: list[PastInstant]) -> set[UUID]:
        """Make runs of these, or run their runs again; answers with what stands for them now."""
        missing = [each for each in chosen if each.run_id is None]
        made = await self._make(connection, operation, missing) if missing else set()
        over = [each.run_id for each in chosen if each.run_id is not None]
        return made | await self._rerun(connection, operation, over) if over else made

    async def _make(self, connection: Connection, operation: Operation, missing: list[PastInstant]) -> set[UUID]:
        run_ids = new_run_ids(len(missing), self._lane, instant(self._clock))
        places: dict[NewRun, int] = {}
        wanted = []
        for each, run_id in zip(missing, run_ids, strict=True):
            template = await self._template(connection, each.row)
            wanted.append(self._wanted(each, run_id, places.setdefault(template, len(places))))
        made = await backfills.backfill(
            connection,
            self._lane,
            self._backfill.schedule_id,
            wanted,
            list(places),
            tenant_id=self._actor.tenant,
            actor=operation.actor,
            operation_id=operation.id,
        )
        notify.send(connection, [notify.ready(self._lane, each.line_id, each.priority) for each in places])
        return made

    async def _template(self, connection: Connection, row: Record) -> NewRun:
        kind = RunKind(self._actor.tenant, row["job_id"], row["options"])
        template = await self._templates.of(connection, kind)
        priority = self._backfill.priority
        return template if priority is None else template._replace(priority=priority)

    def _wanted(self, each: PastInstant, run_id: UUID, template: int) -> backfills.Instant:
        schedule, name = each.schedule, self._backfill.schedule
        previous = schedule.prev_before(each.nominal_at, job=name)
        return backfills.Instant(
            nominal_at=each.nominal_at,
            due_at=each.occurrence.due_at,
            previous_at=None if previous is None else previous.nominal_at,
            run_id=run_id,
            version=each.row["version"],
            template=template,
        )

    async def _rerun(self, connection: Connection, operation: Operation, run_ids: list[UUID]) -> set[UUID]:
        act = dead.Act(self._actor.tenant, operation.actor, detail_of(operation))
        again = set((await self._reruns.rerun_in_lane(connection, self._lane, run_ids, act)).values())
        if self._backfill.priority is not None and again:
            await runs.change(
                connection,
                self._lane,
                list(again),
                {"priority": self._backfill.priority},
                tenant_id=act.tenant_id,
                actor=act.actor,
                detail=act.detail,
            )
        return again
