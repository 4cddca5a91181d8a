"""Accepts runs. Single submissions that arrive together share one commit; a batch is all or nothing.

A submission is answered after COMMIT and never before. When COMMIT's answer is lost, the submitter makes sure that
its old connection is gone, looks whether the runs are there, and only then sends them again. What it found there is
confirmed by the standby before it is answered; once a COMMIT was sent, the answer is the runs or *unknown*.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import Context
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.clock import instant
from mainspring.control.definitions import document_of
from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    IdempotencyConflict,
    InvalidInput,
    KeyBusy,
    OutcomeUnknown,
    StoreError,
    ValueNotStorable,
)
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.store import notify, submissions
from mainspring.store.confirming import confirm
from mainspring.store.connection import patience, transaction, uncancelled
from mainspring.store.database import end_connections
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.link import Link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.definitions import Known
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.notify import WakeUp

log = structlog.get_logger()

MAX_BATCH = 100_000
COPY_ROWS = 1_000  # per lane before the next lane takes its turn
GATHER = 1_000  # single submissions per commit
ACCEPT_SECONDS = 30.0  # how long to find out what became of a COMMIT
STATEMENT_SECONDS = 10.0  # how long one server may take for one step: then there is time left to ask another one
GONE_SECONDS = 5.0  # how long the server's side of a lost connection may take to end
REFUSED_SECONDS = 5.0  # how long a server may refuse all writes: during a failover, or while its disk is full
PASSING = ("database-read-only", "database-disk-full")
# A key may be in use in somebody's open transaction. We wait for it a moment at a time and step aside in between, so
# that nobody waits behind us.
KEY_WAIT = "20ms"
KEY_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25


class Submitter:
    """Accepts runs for one process: plain ones over one connection, those with keys over another.

    Two connections, because a key may be in use in somebody's open transaction: whoever waits for it must not make
    others wait.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        lanes: int,
        tenant_id: int = DEFAULT_TENANT,
    ) -> None:
        self._clock = clock
        self._lanes = lanes
        self._waker = database.waker
        self._tenant_id = tenant_id
        self._turn = count()
        self._lane = next(self._turn) % lanes
        self._quietener = notify.Quietener(clock)
        self._plain = Desk(Link(database, clock, "submit"), clock)
        self._keyed = Desk(Link(database, clock, "submit keyed"), clock)
        self._pending: list[Pending] = []
        self._gathering: asyncio.Task[None] | None = None
        self._accepting: set[asyncio.Future[list[UUID]]] = set()

    async def submit_one(self, run: NewRun, known: Known) -> UUID:
        """Accept one run, in one commit with others that arrive at the same time."""
        if run.key is not None:
            return (await self.submit([run], known))[0]
        future: asyncio.Future[UUID] = asyncio.get_running_loop().create_future()
        self._pending.append(Pending(run, known, future, self._clock.monotonic()))
        if self._gathering is None:
            # In a context of its own: it serves many, and is none of their attempts.
            self._gathering = asyncio.create_task(self._gather(), context=Context())
        return await asyncio.shield(future)

    async def submit(self, runs: Sequence[NewRun], known: Known) -> list[UUID]:
        """Accept all of these runs, or none of them. `known` is what their numbers take for granted."""
        if len(runs) > MAX_BATCH:
            raise InvalidInput(
                f"{len(runs):,} runs in one batch; at most {MAX_BATCH:,} are allowed.",
                code="batch-too-large",
                hint="Submit them in several batches.",
                field="runs",
            )
        if not runs:
            return []
        desk = self._keyed if any(run.key is not None for run in runs) else self._plain
        accepting = asyncio.ensure_future(self._accept(desk, runs, frozenset([known]), self._clock.monotonic()))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)
        return await uncancelled(accepting)

    async def _gather(self) -> None:
        while self._pending:
            batch, self._pending = self._pending[:GATHER], self._pending[GATHER:]
            # Numbers of two installations, while one replaces the other, are not compared with one of them.
            for installation in dict.fromkeys(each.known.installation for each in batch):
                await self._accept_singles([each for each in batch if each.known.installation == installation])
        self._gathering = None

    async def _accept_singles(self, batch: list[Pending]) -> None:
        """One commit for all; if it fails for what one of them carries, one for each."""
        known = frozenset({id(each.known): each.known for each in batch}.values())
        try:
            ids = await self._accept(self._plain, [each.run for each in batch], known, batch[0].arrived_at)
        except Exception as error:
            if len(batch) > 1 and isinstance(error, (ValueNotStorable, ValueError, TypeError)):
                for single in batch:
                    await self._accept_singles([single])
            else:
                for each in batch:
                    each.future.set_exception(error)
        else:
            for each, run_id in zip(batch, ids, strict=True):
                each.future.set_result(run_id)

    async def _accept(
        self, desk: Desk, runs: Sequence[NewRun], known: frozenset[Known], arrived_at: float
    ) -> list[UUID]:
        ids = self.new_ids(runs)
        wake_ups = self.wake_ups(ids, runs)
        submission = Submission(self._tenant_id, ids, runs, document_of(known), arrived_at)
        verdicts = await self._accept_in_turn(desk, submission)
        self._waker.wake(wake_ups)
        return _resolved(ids, verdicts)

    async def _accept_in_turn(self, desk: Desk, submission: Submission) -> list[submissions.Verdict]:
        """Until it is accepted or refused. Who waits for a key steps aside in between, so that nobody waits behind."""
        until, pause = self._clock.monotonic() + KEY_SECONDS, FIRST_PAUSE
        while True:
            try:
                verdicts = await desk.accept(submission)
            except (KeyBusy, DatabaseBusy) as error:
                if self._clock.monotonic() >= until:
                    raise submission.failure(error) from error
                await self._clock.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 1.5)
                continue
            if not any(each.verdict == "gone" for each in verdicts):  # a key was forgotten just now: once more
                return verdicts

    def new_ids(self, runs: Sequence[NewRun]) -> list[UUID]:
        """An id, and so a lane, for each run: a key decides, the others take turns in long stretches."""
        now = instant(self._clock)
        ids: list[UUID] = []
        for start in range(0, len(runs), COPY_ROWS):
            some = runs[start : start + COPY_ROWS]
            stretch = submissions.new_run_ids(len(some), self._lane, now)
            for at, run in enumerate(some):
                if run.key is not None:
                    lane = lane_of_key(self._tenant_id, run.key, self._lanes)
                    stretch[at] = submissions.new_run_ids(1, lane, now)[0]
            ids += stretch
            if len(some) == COPY_ROWS:
                self._next_lane()
        return ids

    def _next_lane(self) -> None:
        self._lane = next(self._turn) % self._lanes

    def wake_ups(self, ids: Sequence[UUID], runs: Sequence[NewRun]) -> list[WakeUp]:
        """Whom to wake, sparingly. The lane changes with each wake-up that is sent: few claims find many runs."""
        # One run speaks for all of its line and priority: the quietener would not let a second one through.
        speakers = {
            (run.at is None and run.delay is None, run.line_id, run.priority): run_id
            for run_id, run in zip(ids, runs, strict=True)
        }
        wanted = [
            notify.ready(lane_of(run_id), line, priority) if is_ready else notify.later()
            for (is_ready, line, priority), run_id in speakers.items()
        ]
        passed = self._quietener.pass_on(wanted)
        if passed:
            self._next_lane()
        return passed

    async def close(self) -> None:
        """Close after whatever is being accepted: closing under it would cancel its COMMIT."""
        if self._gathering is not None:
            await self._gathering
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await self._plain.close()
        await self._keyed.close()


class Pending(NamedTuple):
    """A single run that waits for others, with which it shares a commit."""

    run: NewRun
    known: Known
    future: asyncio.Future[UUID]
    arrived_at: float


class Submission:
    """A batch on its way, and whether its COMMIT was ever sent: from then on nobody may say that it failed."""

    def __init__(self, tenant_id: int, ids: list[UUID], runs: Sequence[NewRun], known: str, arrived_at: float) -> None:
        self.tenant_id = tenant_id
        self.ids = ids
        self.runs = runs
        self.known = known
        self.arrived_at = arrived_at
        self.is_keyed = any(run.key is not None for run in runs)
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


class Desk:
    """One connection that accepts one batch after another."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self._turn = asyncio.Lock()

    async def accept(self, submission: Submission) -> list[submissions.Verdict]:
        """Accept a batch for certain, or raise; answers with verdicts for those that had a key."""
        async with self._turn_of(submission):
            while True:
                try:
                    if submission.lost_senders and await self._find_out(submission):
                        return []
                    connection = await self._link.get()
                    with patience(connection, STATEMENT_SECONDS):
                        return await self._send(connection, submission)
                except (DatabaseBusy, KeyBusy):
                    raise  # nothing happened, and others may go first
                except DATABASE_ERRORS as error:
                    if isinstance(error, OutcomeUnknown):
                        submission.lost_senders.append(self._link.full_name)
                    _raise_if_hopeless(error, self._clock.monotonic() - submission.arrived_at, submission)
                    log.warning("submitting waits for the database", runs=len(submission.ids), cause=str(error))
                    await self._link.mend(error)

    @asynccontextmanager
    async def _turn_of(self, submission: Submission) -> AsyncIterator[None]:
        """One after the other; whoever waits for its turn waits no longer than it would for the database."""
        left = submission.arrived_at + ACCEPT_SECONDS - self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._turn.acquire()
        except TimeoutError:
            error = DatabaseUnreachable(
                "Others wait for the database before this submission; it had no turn.", hint="Try again."
            )
            raise submission.failure(error) from None
        try:
            yield
        finally:
            self._turn.release()

    async def _send(self, connection: Connection, submission: Submission) -> list[submissions.Verdict]:
        if all(run.is_plain for run in submission.runs):
            async with transaction(connection):
                await self._copy(connection, submission)
            return []
        try:
            async with transaction(connection):
                verdicts = await _submit_items(connection, submission)
        except DatabaseBusy as error:
            if submission.is_keyed and not await submissions.has_locked_tables(connection):
                raise _key_busy() from error
            raise
        check_verdicts(verdicts, submission.runs)
        return verdicts

    async def _copy(self, connection: Connection, submission: Submission) -> None:
        objection = await submissions.objection_to(connection, submission.known)
        if objection is not None:
            submissions.raise_objection(objection)
        for start in range(0, len(submission.ids), COPY_ROWS):
            some = slice(start, start + COPY_ROWS)
            await submissions.copy_plain(connection, submission.tenant_id, submission.ids[some], submission.runs[some])

    async def _find_out(self, submission: Submission) -> bool:
        """After a lost answer: whether the batch is there, as a whole or not at all.

        The old connection must be gone first, and what is there must be on the standby before anyone is told. A key
        is its own answer: sent again, it is the same.
        """
        connection = await self._link.get()
        with patience(connection, STATEMENT_SECONDS):
            if not await end_connections(connection, submission.lost_senders, wait=GONE_SECONDS):
                raise OutcomeUnknown("A connection whose COMMIT went unanswered is still there, and may yet commit.")
            if submission.is_keyed or not await submissions.any_accepted(connection, submission.ids[0]):
                return False
            await confirm(connection, map(lane_of, submission.ids))
        return True

    async def close(self) -> None:
        async with self._turn:
            await self._link.close()


async def _submit_items(connection: Connection, submission: Submission) -> list[submissions.Verdict]:
    key_wait = KEY_WAIT if submission.is_keyed else None
    batch = (submission.tenant_id, submission.ids, submission.runs, submission.known)
    verdicts = await submissions.submit_items(connection, *batch, key_wait=key_wait)
    if len(verdicts) > 1:  # all or none; what was found about a single one is committed, so that the standby has it
        check_verdicts(verdicts, submission.runs)
    return verdicts


def _key_busy() -> KeyBusy:
    return KeyBusy(
        "The idempotency key is in use in another transaction that is still open.",
        hint="Try again when that transaction has ended.",
    )


def _resolved(ids: list[UUID], verdicts: Sequence[submissions.Verdict]) -> list[UUID]:
    """The ids with those of earlier runs in the places of items whose keys were used before."""
    earlier = {each.ordinal: each.run_id for each in verdicts}
    return [earlier.get(ordinal, run_id) for ordinal, run_id in enumerate(ids)]


def check_verdicts(verdicts: Sequence[submissions.Verdict], runs: Sequence[NewRun]) -> None:
    """Raise for the first item that was not accepted, for what its key or its numbers stand for."""
    for each in verdicts:
        if each.verdict in submissions.OBJECTIONS:
            submissions.raise_objection(each.verdict)
        if each.verdict == "conflict":
            key = runs[each.ordinal].key
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for run {each.run_id}, which has other content.",
                hint="Use another key, or submit exactly what was submitted before.",
                field="key",
                value=key,
                run_id=str(each.run_id),
            )


def _raise_if_hopeless(error: Exception, waited: float, submission: Submission) -> None:
    """Give up after a while, saying what is known: what refuses all writes did nothing, else we cannot tell."""
    if isinstance(error, (OutcomeUnknown, DatabaseUnreachable)):
        if waited >= ACCEPT_SECONDS:
            raise submission.failure(error) from error
    elif waited >= REFUSED_SECONDS or not _may_pass(error):
        raise submission.failure(error) from error


def _may_pass(error: Exception) -> bool:
    """Whether to wait a while: for the end of a failover, or for room on the disk."""
    return isinstance(error, StoreError) and error.code in PASSING
