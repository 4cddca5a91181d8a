"""Settles results in batches: everything that finished in the last few milliseconds.

Leases all of whose runs succeeded are completed first, then everything else is settled, each in its own transaction.
What went without an answer to its COMMIT is sent again as it was until the database says what became of it; nothing
newer overtakes it. Results wait here while the database is away and are delivered if their lease still stands. While a
node of a cluster is down, those of its lanes are put aside, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.errors import NodeUnreachable, ValueNotStorable
from mainspring.model.lifecycle import Outcome, State
from mainspring.store import completions, leases, openings
from mainspring.store.columns import AttemptRecord
from mainspring.store.completions import Completed
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.leases import Fate
from mainspring.worker.handler_errors import error_document
from mainspring.worker.successes import Success, Successes, in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mainspring.store.completions import Completion
    from mainspring.store.leases import L, Lease, Settled, Settlement
    from mainspring.store.link import Link
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.successes import WholeLease

log = structlog.get_logger()

FULL_BATCH = 500
MAX_BATCH = 2_000
MAX_UNSETTLED = 4_000
GAP_SECONDS = 0.02  # between two flushes at moderate load
TRICKLE = 2  # so few results in a flush are no load: the next one need not wait for others
ASIDE_SECONDS = 0.5  # between two looks whether what was put aside can be delivered
COALESCE_SECONDS = 0.002  # results that arrive together travel together

NONE_COMPLETED = Completed(set(), set(), set())
NOT_STORABLE = '"code":"result-not-storable"'

# What PostgreSQL says when a value itself cannot be stored.
DATA_ERRORS = (ValueNotStorable, ValueError, TypeError)


class Flusher:
    """Collects what became of runs and settles it."""

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        link: Link,
        settled: Callable[[list[Settled], Settlement], None],
        completed: Callable[[list[WholeLease], Completed], None],
        followed_jobs: Callable[[], Collection[int]] = tuple,
        max_unsettled: int = MAX_UNSETTLED,
        failed_probes: Callable[[list[Settled]], dict[int, str]] | None = None,
    ) -> None:
        self._worker_id = worker.id
        self._link = link
        self._clock = worker.clock
        self._settled = settled
        self._completed = completed
        self._followed_jobs = followed_jobs  # after whose runs others are submitted
        self._lanes = worker.lanes
        self._failed_probes = failed_probes
        self._max_unsettled = max_unsettled
        self._under_way = 0  # of a batch that is being delivered, or put aside
        self._leases_aside: list[SentLease] = []  # of lanes that cannot be reached
        self._aside: list[Settled] = []
        self.failing_since: float | None = None  # when a delivery failed after which none has succeeded
        self._pending: list[Settled] = []
        self._successes = Successes()
        self._arrived = asyncio.Event()
        self._is_full = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._last = 0.0
        self._last_size = 0
        self.accepted = 0
        self.stale = 0

    def add(self, result: Settled | Success) -> None:
        if isinstance(result, Success):
            self._successes.add(result)
        else:
            self._pending.append(result)
        waiting = len(self._pending) + self._successes.count  # not by the property: this happens once per run
        if waiting == 1:
            self._is_idle.clear()
            self._arrived.set()
        elif waiting == FULL_BATCH:
            self._is_full.set()

    @property
    def _waiting(self) -> int:
        return len(self._pending) + self._successes.count

    @property
    def unsettled(self) -> int:
        """Results that the database has not accepted yet: what a crash of this process would repeat."""
        return self._waiting + self._under_way

    def room(self) -> int:
        """How many more runs may be claimed: none while results cannot be settled."""
        return 0 if self.is_failing else self._max_unsettled - self.unsettled

    @property
    def is_failing(self) -> bool:
        return self.failing_since is not None

    @property
    def failing_seconds(self) -> float:
        return 0.0 if self.failing_since is None else self._clock.monotonic() - self.failing_since

    async def drained(self) -> None:
        """Wait until everything handed over so far is settled."""
        await self._is_idle.wait()

    async def run(self) -> None:
        while True:
            await self._until_there_is_something()
            await self._let_a_batch_gather()
            await self._flush()
            if not self._waiting and not self._has_aside:
                self._is_idle.set()

    async def _until_there_is_something(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASIDE_SECONDS if self._has_aside else None):
                await self._arrived.wait()

    @property
    def _has_aside(self) -> bool:
        return bool(self._aside or self._leases_aside)

    async def _flush(self) -> None:
        whole = self._successes.take_whole()
        rest = self._successes.take_rest(may_wait=bool(whole))
        fresh = [*self._pending, *(each.settled() for each in rest)]
        self._last_size = len(fresh) + sum(len(each.successes) for each in whole)
        self._pending.clear()
        self._is_full.clear()
        if not self._waiting:
            self._arrived.clear()
        self._under_way += self._last_size
        again, self._leases_aside = self._leases_aside, []
        batch, self._aside = [*self._aside, *fresh], []
        if again:
            batch += await self._complete(again)
        for some in in_batches(whole, MAX_BATCH):
            batch += await self._complete([self._sent(each) for each in some])
        for start in range(0, len(batch), MAX_BATCH):
            await self._deliver(batch[start : start + MAX_BATCH])

    def _sent(self, whole: WholeLease) -> SentLease:
        return SentLease(whole, whole.completion(self._followed_jobs()))

    async def _let_a_batch_gather(self) -> None:
        if self._waiting >= FULL_BATCH:
            return
        since = self._clock.monotonic() - self._last
        gap = 0.0 if self._last_size <= TRICKLE else GAP_SECONDS
        wait = max(COALESCE_SECONDS, gap - since)
        try:
            async with asyncio.timeout(wait):
                await self._is_full.wait()
        except TimeoutError:
            pass
        self._last = self._clock.monotonic()

    async def _complete(self, sent: list[SentLease]) -> list[Settled]:
        """Complete whole leases; answers with what has to be settled one by one.

        That is the runs of leases that are not as they should be: sent before, or no longer ours.
        """
        sent, found = await self._completed_leases(sent)
        self._note_completed([each.whole for each in sent if each.lease.id in found.leases], found)
        return [each.settled() for one in sent if one.lease.id not in found.leases for each in one.whole.successes]

    async def _completed_leases(self, sent: list[SentLease]) -> tuple[list[SentLease], Completed]:
        """What was sent of these, and which of it was completed, however often the connection breaks on the way."""
        while True:
            sent = self._reachable(sent, self._leases_aside)
            if not sent:
                return [], NONE_COMPLETED
            try:
                connection = await self._link.get()
                found = await completions.complete(connection, self._worker_id, [each.completion for each in sent])
            except NodeUnreachable as error:
                await self._link.mend(error)
            except DATABASE_ERRORS as error:
                await self._wait(sum(each.lease.size for each in sent), error)
            except DATA_ERRORS:  # settled one by one, it turns out which of them cannot be stored
                return sent, NONE_COMPLETED
            else:
                self.failing_since = None
                return sent, found

    def _reachable(self, batch: list[L], aside: list[L]) -> list[L]:
        """Those whose lanes can be reached; the others are put aside."""
        reach = self._link.reach
        if reach.has_all:
            return batch
        aside += [each for each in batch if not reach.has(each.lease.lane)]
        found = [each for each in batch if reach.has(each.lease.lane)]
        if not found:
            self.failing_since = None  # the database answers: it is the node that does not
        return found

    def _note_completed(self, completed: list[WholeLease], found: Completed) -> None:
        count = sum(len(each.successes) for each in completed)
        self._under_way -= count
        self.accepted += count
        self._completed(completed, found)

    async def _deliver(self, batch: list[Settled]) -> None:
        """Settle a batch, however often the connection breaks on the way."""
        while batch := self._reachable(batch, self._aside):
            try:
                settlement = await self._settle(batch)
            except NodeUnreachable as error:
                await self._link.mend(error)
            except DATABASE_ERRORS as error:
                await self._wait(len(batch), error)
            except DATA_ERRORS as error:
                if _is_replaced(batch):  # it is not about this value, whatever the database says
                    await self._wait(len(batch), error)
                    continue
                await self._deliver_around_culprit(batch, error)
                return
            else:
                self._note(batch, settlement)
                return

    async def _wait(self, results: int, error: Exception) -> None:
        log.warning("results wait for the database", results=results, cause=str(error))
        self.failing_since = self.failing_since or self._clock.monotonic()
        await self._link.mend(error)

    async def _settle(self, batch: list[Settled]) -> Settlement:
        connection = await self._link.get()
        if self._failed_probes is not None and (failed := self._failed_probes(batch)):
            await openings.put_off(connection, self._lanes, failed)  # before their slots are free for the next
        return await leases.settle(connection, self._worker_id, batch, self._followed_jobs())

    async def _deliver_around_culprit(self, batch: list[Settled], error: Exception) -> None:
        """One unstorable result must not hold up its neighbours: halve until it is alone, then say so."""
        if len(batch) == 1:
            await self._deliver([_not_storable(batch[0], error)])
            return
        middle = len(batch) // 2
        await self._deliver(batch[:middle])
        await self._deliver(batch[middle:])

    def _note(self, batch: list[Settled], settlement: Settlement) -> None:
        self.failing_since = None
        self._under_way -= len(batch)
        self.accepted += settlement.accepted + settlement.before
        self.stale += settlement.stale
        self._settled(batch, settlement)
        if settlement.stale:
            log.warning("results came too late and were refused", results=settlement.stale)


class SentLease(NamedTuple):
    """A whole lease, and what is sent of it: the same if it has to be sent again."""

    whole: WholeLease
    completion: Completion

    @property
    def lease(self) -> Lease:
        return self.completion.lease


def _is_replaced(batch: list[Settled]) -> bool:
    """Whether this is what was made of a result that could not be stored, and it was refused again."""
    return len(batch) == 1 and NOT_STORABLE in (AttemptRecord(*batch[0].record).error or "")


def _not_storable(settled: Settled, error: Exception) -> Settled:
    record = AttemptRecord(*settled.record)
    replaced = record._replace(
        outcome=Outcome.FAILED.value,
        state=State.DEAD.value,
        result=None,
        error=error_document(error).replace('"type"', f'{NOT_STORABLE},"type"', 1),
        payload=None,
    )
    return settled._replace(fate=Fate.BURY, record=tuple(replaced))
