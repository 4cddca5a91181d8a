"""Backfills of schedules: what one would do, and starting it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Unpack

from mainspring.control.backfill_estimate import refuse_too_many
from mainspring.control.backfill_range import LOOKED_AT, decided_before, read_range
from mainspring.errors import InvalidInput
from mainspring.model.backfill import (
    MOST_LISTED,
    MOST_OCCURRENCES,
    SHOWN,
    Backfill,
    BackfillOccurrence,
    BackfillOrder,
    BackfillPlan,
    BackfillReport,
    check_length,
    checked_keywords,
    checked_range,
    refused_since,
)
from mainspring.model.filter import RunFilter
from mainspring.model.operation import OperationKind
from mainspring.store import schedules
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from mainspring.control.backfill_range import PastInstant, PastRange
    from mainspring.control.operations import Operations
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.model.actor import Actor
    from mainspring.model.backfill import BackfillKeywords
    from mainspring.model.operation import Operation
    from mainspring.store.connection import Record
    from mainspring.store.database import Database


class Backfills:
    """Plans backfills and has them worked off."""

    def __init__(self, *, database: Database, queries: ScheduleQueries, operations: Operations) -> None:
        self._database = database
        self._queries = queries
        self._operations = operations

    async def backfill(
        self,
        actor: Actor,
        name: str,
        *,
        since: datetime,
        before: datetime | None = None,
        dry_run: bool = False,
        reason: str = "",
        **keywords: Unpack[BackfillKeywords],
    ) -> BackfillReport:
        """Make runs for the past of a schedule, from `since` on and before `before` (else up to now), and report them.

        `which`: "missing", the occurrences that became no run of their own; "failed", those whose run is dead or ended
        without success: it is run again; or "all". `order`: "forwards" or "backwards". `version`: with the instants,
        arguments and options of the "present" one, or of the one in force "then". `priority`, `rate` (runs per second)
        and `concurrency` (unfinished runs of the range) keep it out of the way of other work. An occurrence that has a
        run gets no other. With `dry_run`, nothing is done. If it is cut off, its operation can be resumed.

        The range may have a million occurrences; of more than 10,000, the report lists the first and the last five.
        """
        plan = await self.plan(actor, name, since=since, before=before, **keywords)
        operation = None if dry_run else await self._work_off(actor, plan, reason)
        return BackfillReport(count=plan.count, occurrences=plan.occurrences, operation=operation)

    async def start_backfill(
        self,
        actor: Actor,
        name: str,
        *,
        since: datetime,
        before: datetime | None = None,
        reason: str = "",
        **keywords: Unpack[BackfillKeywords],
    ) -> Operation:
        """Write a backfill down, to be worked off by `app.operations.work`, here or elsewhere."""
        return await self.start(actor, await self.plan(actor, name, since=since, before=before, **keywords), reason)

    async def plan(
        self,
        actor: Actor,
        name: str,
        *,
        since: datetime,
        before: datetime | None = None,
        **keywords: Unpack[BackfillKeywords],
    ) -> BackfillPlan:
        """What a backfill would be about; nothing is done."""
        checked, (begin, end) = checked_keywords(**keywords), checked_range(since, before)
        async with self._database.acquire() as connection, snapshot(connection):
            row = await self._queries.row(connection, actor, name)
            decided = decided_before(row, await schedules.now(connection))
            if begin >= decided:
                raise _not_decided(begin, decided, row)
            last = decided if end is None else min(end, decided)
            check_length(begin, last)
            asked = Backfill(schedule=name, schedule_id=row["id"], since=begin, before=last, **checked)
            past = await read_range(connection, self._queries, actor, asked, row)
        refuse_too_many(past)
        found = await self._occurrences(actor, past)
        return BackfillPlan(backfill=asked, count=found.count, occurrences=found.listed)

    async def start(self, actor: Actor, plan: BackfillPlan, reason: str) -> Operation:
        """Write down what was planned."""
        return await self._operations.write_down(
            actor,
            OperationKind.BACKFILL,
            wanted=RunFilter(),
            change=plan.backfill.as_document(),
            reason=reason,
            expected=plan.count,
        )

    async def _work_off(self, actor: Actor, plan: BackfillPlan, reason: str) -> Operation:
        operation = await self.start(actor, plan, reason)
        async for step in self._operations.work(actor, operation.id):
            operation = step
        return operation

    async def _occurrences(self, actor: Actor, past: PastRange) -> CountedOccurrences:
        """All that is meant, looked at in pieces: no piece is long in memory, and none in a transaction."""
        found, seen, after = CountedOccurrences(), 0, None
        while True:
            async with self._database.acquire() as connection, snapshot(connection):
                looked = await past.look(connection, after, LOOKED_AT, tenant_id=actor.tenant)
            if seen + len(looked) > MOST_OCCURRENCES:
                raise _too_many(looked[MOST_OCCURRENCES - seen].nominal_at, past.order)
            found.add(each for each in looked if past.is_meant(each))
            if len(looked) < LOOKED_AT:
                return found
            seen, after = seen + len(looked), looked[-1].nominal_at


class CountedOccurrences:
    """Counts occurrences, and keeps them to be listed: all while they are few, else the first and the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[BackfillOccurrence] = []
        self._last: deque[BackfillOccurrence] = deque(maxlen=SHOWN)

    def add(self, some: Iterable[PastInstant]) -> None:
        for each in some:
            occurrence = BackfillOccurrence(
                nominal_at=each.nominal_at, version=each.row["version"], run_id=each.run_id, run_state=each.state
            )
            self.count += 1
            self._last.append(occurrence)
            if self.count <= MOST_LISTED:
                self._first.append(occurrence)

    @property
    def listed(self) -> list[BackfillOccurrence]:
        return self._first if self.count <= MOST_LISTED else [*self._first[:SHOWN], *self._last]


def _not_decided(since: datetime, decided: datetime, row: Record) -> InvalidInput:
    is_paused = row["state"] == "paused"
    return refused_since(
        since,
        f"must be earlier than {decided.isoformat()}: from there on, no instant of the schedule is decided yet",
        code="backfill-of-the-future",
        hint="It is paused: resume it first, and its instants are decided."
        if is_paused
        else "Give a time in the past.",
    )


def _too_many(beyond: datetime, order: BackfillOrder) -> InvalidInput:
    part = "before" if order is BackfillOrder.FORWARDS else "since just after"
    return InvalidInput(
        f"The range has more than {MOST_OCCURRENCES:,} occurrences; a backfill is about that many at most.",
        code="backfill-too-large",
        hint=f"Backfill in parts: the first one {part} {beyond.isoformat()}.",
        field="before" if order is BackfillOrder.FORWARDS else "since",
        rule=f"must leave at most {MOST_OCCURRENCES:,} occurrences",
    )
