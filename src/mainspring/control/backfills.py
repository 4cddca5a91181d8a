"""Backfills of schedules: what one would do, and starting it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Unpack

from mainspring.control.backfill_range import decided_before, read_range
from mainspring.errors import InvalidInput
from mainspring.model.backfill import (
    MOST_OCCURRENCES,
    Backfill,
    BackfillOccurrence,
    BackfillOrder,
    BackfillReport,
    check_length,
    checked_keywords,
    checked_range,
    invalid,
)
from mainspring.model.filter import RunFilter
from mainspring.model.operation import OperationKind
from mainspring.store import schedules
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.control.backfill_range import PastRange
    from mainspring.control.operations import Operations
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.model.actor import Actor
    from mainspring.model.backfill import BackfillKeywords
    from mainspring.model.operation import Operation
    from mainspring.store.connection import Connection, Record
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
        """
        asked, occurrences = await self._plan(actor, name, since, before, keywords)
        if dry_run:
            return BackfillReport(occurrences=occurrences)
        operation = await self._write_down(actor, asked, len(occurrences), reason)
        async for step in self._operations.work(actor, operation.id):
            operation = step
        return BackfillReport(occurrences=occurrences, operation=operation)

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
        asked, occurrences = await self._plan(actor, name, since, before, keywords)
        return await self._write_down(actor, asked, len(occurrences), reason)

    async def _write_down(self, actor: Actor, asked: Backfill, expected: int, reason: str) -> Operation:
        return await self._operations.write_down(
            actor,
            OperationKind.BACKFILL,
            wanted=RunFilter(),
            change=asked.as_document(),
            reason=reason,
            expected=expected,
        )

    # ── what there is to do ─────────────────────────────────────────────────────────────────────────────────

    async def _plan(
        self, actor: Actor, name: str, since: datetime, before: datetime | None, keywords: BackfillKeywords
    ) -> tuple[Backfill, list[BackfillOccurrence]]:
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
            return asked, await self._occurrences(connection, actor, past)

    async def _occurrences(self, connection: Connection, actor: Actor, past: PastRange) -> list[BackfillOccurrence]:
        """All that is meant. They are counted before anything is asked about them."""
        beyond = next(islice(past.instants(), MOST_OCCURRENCES, None), None)
        if beyond is not None:
            raise _too_many(beyond.nominal_at, past.order)
        looked = await past.look(connection, None, MOST_OCCURRENCES, tenant_id=actor.tenant)
        return [
            BackfillOccurrence(
                nominal_at=each.nominal_at, version=each.row["version"], run_id=each.run_id, run_state=each.state
            )
            for each in looked
            if past.is_meant(each)
        ]


def _not_decided(since: datetime, decided: datetime, row: Record) -> InvalidInput:
    is_paused = row["state"] == "paused"
    return invalid(
        "since",
        since.isoformat(),
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
