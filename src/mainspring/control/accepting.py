"""Accepts batches of runs over one connection, for certain.

When COMMIT's answer is lost, whoever accepts makes sure that its old connection is gone, looks whether the runs are
there, and only then sends them again. What it found there is confirmed by the standby before it is answered; once a
COMMIT was sent, the answer is the runs or *unknown*.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    IdempotencyConflict,
    KeyBusy,
    NodeUnreachable,
    OutcomeUnknown,
    StoreError,
    UniqueConflict,
)
from mainspring.model.backlog import fullest
from mainspring.model.fan_out import changed_child
from mainspring.model.ids import lane_of
from mainspring.model.run import AcceptedBatch
from mainspring.store import backlog, dependencies, fan_outs, flows, lists, submissions
from mainspring.store.backlog import Overflow
from mainspring.store.backlog_gates import note_full
from mainspring.store.confirming import confirm
from mainspring.store.connection import patience, transaction
from mainspring.store.database import end_connections
from mainspring.store.failures import DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.backlog import BacklogNotice
    from mainspring.model.fan_out import FanOut
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.flows import NewFlow
    from mainspring.store.link import Link

log = structlog.get_logger()

COPY_ROWS = 1_000  # per lane before the next lane takes its turn
ACCEPT_SECONDS = 30.0  # how long to find out what became of a COMMIT
STATEMENT_SECONDS = 10.0  # how long one server may take for one step: then there is time left to ask another one
GONE_SECONDS = 5.0  # how long the server's side of a lost connection may take to end
REFUSED_SECONDS = 5.0  # how long a server may refuse all writes: during a failover, or while its disk is full
PASSING = ("database-read-only", "database-disk-full")
# A key may be in use in somebody's open transaction. We wait for it a moment at a time and step aside in between, so
# that nobody waits behind us.
KEY_WAIT = "20ms"


class Adoption(NamedTuple):
    """All runs of a batch are children of one run."""

    fan_out: FanOut
    may_fail: bool


class RunBatch:
    """Runs on their way, and whether their COMMIT was ever sent: from then on nobody may say that it failed."""

    def __init__(
        self,
        ids: list[UUID],
        runs: Sequence[NewRun],
        known: str,
        arrived_at: float,
        flow: NewFlow | None = None,
        adoption: Adoption | None = None,
    ) -> None:
        self.flow = flow  # that they are all of
        self.adoption = adoption
        self.ids = ids
        self.runs = runs
        self.known = known
        self.arrived_at = arrived_at
        self.is_unique = runs[0].wish is not None  # all of a batch, or none
        self.is_keyed = self.is_unique or any(run.key is not None for run in runs)  # each has its own lane
        self.is_waiting = any(run.after is not None for run in runs)
        # All of a batch, or none; of a flow some.
        self.is_capped = runs[0].backlog is not None or (flow is not None and any(run.backlog for run in runs))
        self.backlogs: dict[str, BacklogNotice] = {}  # that are nearly full
        self.accepted: set[UUID] = set()  # of those with unique keys, by a COMMIT that went unanswered
        self.lost_senders: list[str] = []  # connections whose COMMIT went unanswered

    def failure(self, error: Exception) -> Exception:
        """What to tell the caller: the error, unless a COMMIT was sent."""
        return self.unknown(error) if self.lost_senders else error

    def unknown(self, error: BaseException) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"It is not known whether {len(self.ids)} run(s) were accepted: {error}",
            hint=f"When the database is back, look for run {self.ids[0]}; with an idempotency key, just submit again.",
            run_ids=[str(each) for each in self.ids[:10]],
        )


class Acceptor:
    """One connection that accepts one batch after another."""

    def __init__(self, link: Link, clock: Clock, lanes: int) -> None:
        self._link = link
        self._clock = clock
        self._lanes = lanes
        self._turn = asyncio.Lock()

    async def accept(self, batch: RunBatch) -> list[submissions.Verdict]:
        """Accept a batch for certain, or raise; answers with verdicts for those that had a key."""
        async with self._turn_of(batch):
            while True:
                try:
                    if batch.lost_senders and await self._find_out(batch):
                        return []
                    connection = await self._link.get()
                    with patience(connection, STATEMENT_SECONDS):
                        return await self._send_capped(connection, batch)
                except (DatabaseBusy, KeyBusy):
                    raise  # nothing happened, and others may go first
                except NodeUnreachable as error:
                    await self._link.mend(error)
                    if not batch.lost_senders:
                        raise  # nothing happened, and another lane may do
                    _raise_if_hopeless(error, self._clock.monotonic() - batch.arrived_at, batch)
                except DATABASE_ERRORS as error:
                    if isinstance(error, OutcomeUnknown):
                        batch.lost_senders.append(self._link.full_name)
                    _raise_if_hopeless(error, self._clock.monotonic() - batch.arrived_at, batch)
                    log.warning("submitting waits for the database", runs=len(batch.ids), cause=str(error))
                    await self._link.mend(error)

    @asynccontextmanager
    async def _turn_of(self, batch: RunBatch) -> AsyncIterator[None]:
        """One after the other; whoever waits for its turn waits no longer than it would for the database."""
        left = batch.arrived_at + ACCEPT_SECONDS - self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._turn.acquire()
        except TimeoutError:
            error = DatabaseUnreachable(
                "Others wait for the database before this submission; it had no turn.", hint="Try again."
            )
            raise batch.failure(error) from None
        try:
            yield
        finally:
            self._turn.release()

    async def _send_capped(self, connection: Connection, batch: RunBatch) -> list[submissions.Verdict]:
        try:
            return await self._send(connection, batch)
        except Overflow as overflow:
            await note_full(connection, overflow.caps, self._lanes)
            raise

    async def _send(self, connection: Connection, batch: RunBatch) -> list[submissions.Verdict]:
        if batch.flow is None and all(run.is_plain for run in batch.runs):
            async with transaction(connection):
                await self._enter_backlogs(connection, batch)
                await self._copy(connection, batch)
            return []
        try:
            async with transaction(connection):
                if not batch.is_keyed:
                    await self._enter_backlogs(connection, batch)
                verdicts = await _submit_items(connection, batch)
                if batch.is_keyed:
                    await self._enter_backlogs(connection, batch, verdicts)
        except DatabaseBusy as error:
            if batch.is_keyed and not await submissions.has_locked_tables(connection):
                raise _key_busy(batch) from error
            raise
        check_verdicts(verdicts, batch.runs, is_child=batch.adoption is not None)
        return verdicts

    async def _enter_backlogs(
        self, connection: Connection, batch: RunBatch, verdicts: Sequence[submissions.Verdict] | None = None
    ) -> None:
        """Before runs are accepted, so that what is refused leaves nothing behind; with keys, once it is known which
        are new: whoever waits for a key must not keep a backlog locked.
        """
        if not batch.is_capped:
            return
        places = range(len(batch.ids)) if verdicts is None else _new_places(batch, verdicts)
        entries = backlog.entries_of([batch.ids[each] for each in places], [batch.runs[each] for each in places])
        if entries:
            batch.backlogs = await backlog.enter(connection, entries, self._lanes)

    async def _copy(self, connection: Connection, batch: RunBatch) -> None:
        objection = await submissions.objection_to(connection, batch.known)
        if objection is not None:
            submissions.raise_objection(objection)
        for start in range(0, len(batch.ids), COPY_ROWS):
            some = slice(start, start + COPY_ROWS)
            await submissions.copy_plain(connection, batch.ids[some], batch.runs[some])

    async def _find_out(self, batch: RunBatch) -> bool:
        """After a lost answer: whether the batch is there, as a whole or not at all.

        The old connection must be gone first, and what is there must be on the standby before anyone is told. A key
        is its own answer: sent again, it is the same. A unique key is not: another run may hold it by now, or none. So
        runs that are there are not sent again; of their batch, the others were answered with earlier runs.
        """
        connection = await self._link.get()
        with patience(connection, STATEMENT_SECONDS):
            if not await end_connections(connection, batch.lost_senders, wait=GONE_SECONDS):
                raise OutcomeUnknown("A connection whose COMMIT went unanswered is still there, and may yet commit.")
            if batch.is_unique:
                tenant_id = batch.runs[0].tenant_id
                batch.accepted |= (await lists.states_of(connection, batch.ids, tenant_id=tenant_id)).keys()
                await confirm(connection, map(lane_of, batch.accepted))
                return False
            if batch.is_keyed or not await submissions.any_accepted(connection, batch.ids[0]):
                return False
            await confirm(connection, map(lane_of, batch.ids))
        return True

    async def close(self) -> None:
        async with self._turn:
            await self._link.close()


async def _submit_items(connection: Connection, batch: RunBatch) -> list[submissions.Verdict]:
    if batch.flow is not None:
        await flows.add(connection, batch.flow)
    if batch.is_waiting and not batch.is_keyed:
        await dependencies.add(connection, batch.ids, batch.runs)
    key_wait = KEY_WAIT if batch.is_keyed else None
    verdicts = await submissions.submit_items(
        connection, batch.ids, batch.runs, batch.known, key_wait=key_wait, accepted=batch.accepted
    )
    if batch.is_waiting and batch.is_keyed:
        await _add_dependencies_of_new(connection, batch, verdicts)
    if batch.adoption is not None:
        fan_out, may_fail = batch.adoption
        tenant_id = batch.runs[0].tenant_id
        await fan_outs.adopt(connection, fan_out, verdicts, may_fail=may_fail, tenant_id=tenant_id)
    if len(verdicts) > 1:  # all or none; what was found about a single one is committed, so that the standby has it
        check_verdicts(verdicts, batch.runs, is_child=batch.adoption is not None)
    return verdicts


async def _add_dependencies_of_new(
    connection: Connection, batch: RunBatch, verdicts: Sequence[submissions.Verdict]
) -> None:
    """Not of those that a key stands for: what they waited for may be forgotten by now."""
    new = _new_places(batch, verdicts)
    if new:
        await dependencies.add(connection, [batch.ids[place] for place in new], [batch.runs[place] for place in new])


def _new_places(batch: RunBatch, verdicts: Sequence[submissions.Verdict]) -> list[int]:
    """Of a batch with keys, the items that are new with this transaction."""
    return [each.ordinal for each in verdicts if each.verdict == "new" and each.run_id not in batch.accepted]


def _key_busy(batch: RunBatch) -> KeyBusy:
    if batch.is_unique:
        return KeyBusy(
            "The unique key is in use in another transaction that is still open.",
            code="unique-key-busy",
            hint="Try again when that transaction has ended.",
        )
    return KeyBusy(
        "The idempotency key is in use in another transaction that is still open.",
        hint="Try again when that transaction has ended.",
    )


def check_verdicts(verdicts: Sequence[submissions.Verdict], runs: Sequence[NewRun], *, is_child: bool = False) -> None:
    """Raise for the first item that was not accepted, for what its key or its numbers stand for."""
    for each in verdicts:
        if each.verdict in submissions.OBJECTIONS:
            submissions.raise_objection(each.verdict)
        if each.verdict == "conflict":
            key = runs[each.ordinal].key
            if is_child:
                raise changed_child(str(key), each.run_id)
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for run {each.run_id}, which has other content.",
                hint="Use another key, or submit exactly what was submitted before.",
                field="key",
                value=key,
                run_id=str(each.run_id),
            )
        _refuse_if_unwanted(each, runs[each.ordinal])


def _refuse_if_unwanted(verdict: submissions.Verdict, run: NewRun) -> None:
    if verdict.verdict == "earlier" and run.wish is not None and run.wish.refuses:
        raise UniqueConflict(
            f"Run {verdict.run_id} holds the unique key {run.wish.shown}.",
            hint=f"See where it is: mainspring run show {verdict.run_id}",
            field="unique",
            value=run.wish.shown,
            run_id=str(verdict.run_id),
        )


def accepted_from(
    ids: list[UUID],
    verdicts: Sequence[submissions.Verdict],
    runs: Sequence[NewRun],
    backlogs: Mapping[str, BacklogNotice],
) -> AcceptedBatch:
    """What stands for each item: its own run, unless an earlier one answers it; and which backlog is nearly full."""
    notices = [fullest(run.backlog, backlogs) for run in runs] if backlogs else ()
    earlier = {each.ordinal: each.run_id for each in verdicts if each.run_id != ids[each.ordinal]}
    if not earlier:
        return AcceptedBatch(ids, (), notices)
    return AcceptedBatch([earlier.get(place, run_id) for place, run_id in enumerate(ids)], earlier.keys(), notices)


def _raise_if_hopeless(error: Exception, waited: float, batch: RunBatch) -> None:
    """Give up after a while, saying what is known: what refuses all writes did nothing, else we cannot tell."""
    if isinstance(error, (OutcomeUnknown, DatabaseUnreachable)):
        if waited >= ACCEPT_SECONDS:
            raise batch.failure(error) from error
    elif waited >= REFUSED_SECONDS or not _may_pass(error):
        raise batch.failure(error) from error


def _may_pass(error: Exception) -> bool:
    """Whether to wait a while: for the end of a failover, or for room on the disk."""
    return isinstance(error, StoreError) and error.code in PASSING
