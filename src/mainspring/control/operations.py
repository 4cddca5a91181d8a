"""Acts on many runs: chosen by a filter, worked off in batches, resumed by whoever comes after a cut.

A batch is one transaction: the runs it moves, their audit rows, and the operation's cursor. It is done as a whole or
not at all, so an operation that was cut off goes on after its last batch, in any process, and treats no run twice.
Two who work on one operation take turns: a batch begins only where the operation still is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import msgspec

from mainspring.control.acting import Acting
from mainspring.control.run_changes import checked_changes
from mainspring.errors import DatabaseBusy, InvalidInput, OperationNotFound, OutcomeUnknown, StoreError
from mainspring.model import job as rules
from mainspring.model.filter import filter_of
from mainspring.model.listing import checked_limit, cursor_of, parse_cursor
from mainspring.model.operation import Operation, OperationKind, fitting_states, kind_of
from mainspring.model.payload import quoted
from mainspring.store import jobs, operations
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.connection import snapshot, transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import timedelta

    from mainspring.control.backfilling import Backfilling
    from mainspring.control.lists import Lists
    from mainspring.control.reruns import Reruns
    from mainspring.model.actor import Actor
    from mainspring.model.filter import RunFilter
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

BATCH = 500
TRIES = 5  # how often in a row a batch may be a deadlock's victim, or meet a lock, before we give up


class Operations:
    """Starts, works off and shows operations."""

    def __init__(
        self,
        *,
        database: Database,
        lists: Lists,
        reruns: Reruns,
        backfilling: Callable[[Actor, Operation], Backfilling],
    ) -> None:
        self._database = database
        self._lists = lists
        self._acting = Acting(reruns=reruns)
        self._backfilling = backfilling

    # ── starting and finding ────────────────────────────────────────────────────────────────────────────────

    async def start(
        self,
        actor: Actor,
        kind: OperationKind | str,
        wanted: RunFilter,
        *,
        priority: int | None = None,
        queue: str | None = None,
        max_age: timedelta | float | None = None,
        reason: str = "",
    ) -> Operation:
        """Write down what is to be done to all runs that match: cancel, change, requeue, purge or rerun them.

        Nothing is done before `work` is called, here or elsewhere.
        """
        kind = kind_of(kind)
        if kind is OperationKind.BACKFILL:
            raise _not_by_filter()
        wanted = aimed(kind, wanted)
        change = _checked_change(kind, priority, queue, rules.checked_max_age(max_age))
        expected = await self._lists.count(actor, wanted)
        if kind is OperationKind.CHANGE:
            await self._check_change(actor, **change)
        number = expected.number if expected.is_exact else None
        return await self.write_down(actor, kind, wanted=wanted, change=change, reason=reason, expected=number)

    async def write_down(
        self,
        actor: Actor,
        kind: OperationKind,
        *,
        wanted: RunFilter,
        change: dict[str, Any],
        reason: str,
        expected: int | None,
    ) -> Operation:
        """Keep what is to be done, before any of it is."""
        operation_id = uuid4()
        await uncancelled(
            self._write_down(
                operation_id=operation_id,
                tenant_id=actor.tenant,
                kind=kind.stored,
                wanted=wanted.as_document(),
                change=change,
                actor=actor.name,
                reason=rules.checked_reason(reason),
                expected=expected,
            )
        )
        try:
            return await self.find(actor, operation_id)
        except StoreError as error:
            raise OutcomeUnknown(
                f"Operation {operation_id} was written down, but could not be read afterwards ({error.message}).",
                hint=f"Go on with it: mainspring operation resume {operation_id}",
                operation_id=str(operation_id),
            ) from error

    async def _check_change(self, actor: Actor, *, priority: int | None = None, queue: str | None = None) -> None:
        checked_changes(priority=priority, queue=queue)
        async with self._database.acquire() as connection:
            queues = await jobs.queue_names(connection, tenant_id=actor.tenant)
        jobs.lines_of_queues(queues, [] if queue is None else [queue])

    async def _write_down(self, **values: Any) -> None:
        async with self._database.acquire() as connection, transaction(connection):
            await operations.start(connection, **values)

    async def find(self, actor: Actor, operation_id: UUID | str) -> Operation:
        """An operation by its id, and how far it got."""
        parsed = parse_operation_id(operation_id)
        async with self._database.acquire() as connection:
            return await self._read(connection, actor, parsed)

    async def list(self, actor: Actor, *, limit: int = 20) -> list[Operation]:
        """The operations that were started last, newest first."""
        async with self._database.acquire() as connection:
            rows = await operations.latest(connection, checked_limit(limit), tenant_id=actor.tenant)
        return [_as_operation(row) for row in rows]

    async def _read(self, connection: Connection, actor: Actor, operation_id: UUID) -> Operation:
        row = await operations.find(connection, operation_id, tenant_id=actor.tenant)
        if row is None:
            raise OperationNotFound(
                f"There is no operation {operation_id}.",
                hint="See which there are: mainspring operation list",
                operation_id=str(operation_id),
            )
        return _as_operation(row)

    # ── working off ─────────────────────────────────────────────────────────────────────────────────────────

    async def work(self, actor: Actor, operation_id: UUID | str, *, batch: int = BATCH) -> AsyncIterator[Operation]:
        """Work an operation off from where it is, in batches; tells how far it got after each of them."""
        batch = checked_limit(batch, "batch")
        operation, failures, has_written = await self.find(actor, operation_id), 0, False
        is_backfill = operation.kind is OperationKind.BACKFILL
        backfilling = self._backfilling(actor, operation) if is_backfill else None
        while True:
            if operation.is_over and not has_written:
                await self._confirm()
            yield operation
            if operation.is_over:
                return
            try:
                if backfilling is None:
                    has_written = await uncancelled(self._step(actor, operation.id, batch))
                else:
                    has_written = await backfilling.next_batch(operation, batch)
                failures = 0
            except DatabaseBusy:
                has_written = False
                failures += 1
                if failures == TRIES:
                    raise
            operation = await self.find(actor, operation.id)

    async def _confirm(self) -> None:
        """That it was over was found, not written."""
        async with self._database.acquire() as connection:
            await confirm(connection, [REGISTRATIONS_LANE])

    async def _step(self, actor: Actor, operation_id: UUID, batch: int) -> bool:
        """One batch; answers whether it was ours to do.

        It is chosen in a snapshot of its own: in it no run slips from one place into another unseen.
        """
        async with self._database.acquire() as connection:
            async with snapshot(connection):
                operation = await self._read(connection, actor, operation_id)
                start = parse_cursor(operation.cursor, operation.wanted)
                found = await self._lists.find(connection, actor, operation.wanted, start, batch)
            async with transaction(connection):
                if not await operations.lock_if_at(connection, operation.id, operation.cursor, tenant_id=actor.tenant):
                    return False  # someone else worked this batch off
                lines = {each.row["id"]: each.row["line_id"] for each in found}
                done = await self._acting.act(connection, actor.tenant, operation, lines)
                await operations.advance(
                    connection,
                    operation.id,
                    tenant_id=actor.tenant,
                    cursor=cursor_of(found[-1].position, operation.wanted) if found else operation.cursor,
                    done=done,
                    skipped=len(lines) - done,
                    is_over=len(found) < batch,
                )
        return True


def _not_by_filter() -> InvalidInput:
    return InvalidInput(
        "A backfill is about the occurrences of a schedule, not about runs that match a filter.",
        code="invalid-kind",
        hint="Start it by app.schedules.start_backfill(…), or mainspring schedule backfill.",
        field="kind",
        value=OperationKind.BACKFILL.value,
    )


def aimed(kind: OperationKind, wanted: RunFilter) -> RunFilter:
    """The filter with the states that this kind of operation acts on; they can be counted before it starts."""
    return replace(wanted, states=fitting_states(kind, wanted.states))


def parse_operation_id(text: UUID | str) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(str(text))
    except ValueError:
        raise InvalidInput(
            f"{quoted(text)} is not an operation's id.",
            code="invalid-operation-id",
            hint="See which there are: mainspring operation list",
            field="id",
            value=quoted(text),
            rule="must be a UUID",
        ) from None


def _checked_change(
    kind: OperationKind, priority: int | None, queue: str | None, max_age: float | None
) -> dict[str, Any]:
    change = {"priority": priority, "queue": queue, "max_age": max_age}
    given = {name: value for name, value in change.items() if value is not None}
    fitting = {OperationKind.CHANGE: {"priority", "queue"}, OperationKind.REQUEUE: {"max_age"}}.get(kind, set())
    for name in given.keys() - fitting:
        raise InvalidInput(
            f"{name} has no meaning for {kind}.", code="invalid-change", hint="Leave it out.", field=name
        )
    return given


def _as_operation(row: Record) -> Operation:
    values = dict(row)
    return Operation(
        **values
        | {
            "kind": OperationKind(row["kind"]),
            "change": msgspec.json.decode(row["change"]),
            "wanted": filter_of(msgspec.json.decode(values.pop("filter"))),
        }
    )
