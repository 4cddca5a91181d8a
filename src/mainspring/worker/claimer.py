"""Takes runs out of the line, as many as the executor has room for, wherever there are some.

One claim is one statement for one (lane, line). Which pairs are worth asking is known from wake-ups, from the last
claim, and from a look at all of them at once now and then. Tenants take turns by their weights, and so do their lines
(`turns.py`); only what is announced as more urgent than what its line gave last is fetched out of turn. For each pair
the claimer remembers where the line begins, per priority: under a transaction held open elsewhere, a scan from the very
front crawls over dead entries.

Runs that may not wait inside a worker are claimed one at a time, when a slot is free. If none is when their turn comes,
the next one that becomes free is kept for them: else, behind a buffer that is never empty, their turn would never come.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

import structlog

from mainspring.model.run import LEAST_URGENT, PRIORITIES
from mainspring.store import jobs, leases, runs
from mainspring.store.columns import DUE_AT, JOB, SUBMITTED_AT
from mainspring.store.confirming import confirm
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.leases import Lease
from mainspring.store.submissions import new_uuid
from mainspring.worker.claim_front import (
    LOOK_AT_LEAST_EVERY,
    LOOK_SHARE,
    OLDEST_FIRST_EVERY,
    ClaimFront,
    pause_between_looks,
)
from mainspring.worker.thread_quota import ThreadQuota
from mainspring.worker.turns import StagedPairs, TenantTurns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection, Record
    from mainspring.store.link import Link
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.executor import Executor
    from mainspring.worker.flusher import Flusher
    from mainspring.worker.lines import Lines
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.settings import WorkerSettings
    from mainspring.worker.turns import Pair

log = structlog.get_logger()

MAX_BATCH = 500
GAP_SECONDS = 0.005  # between two claims that would fetch only a few
FEW = 50
URGENT_PER_TURN = 3  # claims out of turn before a turn must come: the others wait as well
ECHO_SECONDS = 0.02  # wake-ups are sent sparingly: look once more a little after one


class Claimer:
    """Keeps the executor supplied."""

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        settings: WorkerSettings,
        lines: Lines,
        link: Link,
        executor: Executor,
        flusher: Flusher,
        leases: ActiveLeases,
    ) -> None:
        self._worker_id = worker.id
        self._lines = lines
        self._lanes = worker.lanes
        self._link = link
        self._clock = worker.clock
        self._poll_interval = settings.poll_interval
        self._executor = executor
        self._capacity = executor.capacity
        self._flusher = flusher
        self._leases = leases
        self._fronts: dict[Pair, ClaimFront] = {}
        self._hot = TenantTurns(settings.weights, lines)  # worth asking
        self._quota = ThreadQuota(
            jobs=executor.jobs,
            capacity=executor.capacity,
            lines=lines,
            clock=worker.clock,
        )
        self._kept: Pair | None = None  # whose turn came when no slot was free: it gets the next one
        self._urgent: dict[Pair, int] = {}  # to ask out of turn, for this priority and more urgent ones
        self._urgent_claims = 0  # since the last turn
        self._seen: set[Pair] = set()  # a look found something there
        self._staged = StagedPairs(worker.clock)
        self._front_look_at = 0.0  # when some pair may be looked at from the very front again
        self._look_at = 0.0  # when to look at all lines again
        self._looked_at = float("-inf")
        self._look_cost = 0.0
        self._is_stopping = False
        self._is_resting = False
        self.under_way: dict[UUID, Pair] = {}  # claims sent and not answered, by their lease

    # ── being told ──────────────────────────────────────────────────────────────────────────────────────────

    def notice(self, lane: int, line: int, priority: int = LEAST_URGENT) -> None:
        """Someone says that there is something in this line."""
        pair = (lane, line)
        if line in self._lines and 0 <= lane < self._lanes:
            if pair != self._kept:
                self._hot.add(pair, announced=True)
            is_single = self._lines[line].is_claimed_singly
            if not is_single and pair in self._fronts and priority < self._fronts[pair].last_priority:
                self._ask_out_of_turn(pair, priority)
            self._look_soon()
            self._capacity.has_room.set()

    def _look_soon(self) -> None:
        soon = self._clock.monotonic() + ECHO_SECONDS
        self._look_at = min(self._look_at, max(soon, self._looked_at + pause_between_looks(self._look_cost)))

    def _ask_out_of_turn(self, pair: Pair, priority: int) -> None:
        self._urgent[pair] = max(priority, self._urgent.get(pair, priority))

    def stop(self) -> None:
        self._is_stopping = True
        self._capacity.has_room.set()

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        while not self._is_stopping:
            try:
                await self._find_unanswered()
                await self._step()
            except ALL_DATABASE_ERRORS as error:
                log.warning("claiming waits for the database", cause=str(error))
                await self._link.mend(error)

    async def _step(self) -> None:
        for pair in self._quota.worth_asking(self._urgent):
            self._hot.add(pair)
        for pair in self._staged.take_due():
            self._ask_whose_instant_came(pair)
        if self._kept is not None and not self._link.reach.has(self._kept[0]):
            self._give_up_kept(self._kept)
        if self._kept is not None and self._capacity.free_slots() > 0 and self._unsettled_room() > 0:
            await self._claim_one(self._kept)
        elif not self._has_room():
            await self._rest(None)
        elif self._clock.monotonic() >= self._look_at:
            await self.look()
        elif (urgent := self._next_urgent()) is not None:
            await self._claim_urgent(urgent)
        elif (next_pair := self._hot.take(self._may_ask)) is not None:
            await self._claim_next(next_pair)
        else:
            wake_at = min(self._look_at, self._quota.next_at, self._staged.next_at)
            await self._rest(max(0.0, wake_at - self._clock.monotonic()))

    def _give_up_kept(self, pair: Pair) -> None:
        """Its node is down: others may have the slot that was kept for it."""
        self._kept = None
        self._capacity.release_slot()
        self._hot.add(pair)

    def _ask_whose_instant_came(self, pair: Pair) -> None:
        if pair != self._kept:
            self._hot.add(pair)
        self._look_soon()  # when does the next one follow?

    def _next_urgent(self) -> Pair | None:
        if not self._urgent or (self._urgent_claims >= URGENT_PER_TURN and self._hot):
            return None
        return next(filter(self._may_jump, self._urgent), None)

    def _has_room(self) -> bool:
        return self._room() > 0 or any(self._room(line) > 0 for line in self._capacity.gatherer.lines)

    def _room(self, line: int | None = None) -> int:
        """As much as fits here, and no more than may be unsettled: that is what a crash would repeat."""
        return min(self._capacity.room(line), self._unsettled_room())

    def _unsettled_room(self) -> int:
        return self._flusher.room() - self._capacity.in_hand

    async def _rest(self, seconds: float | None) -> None:
        """Until there is room, someone says something, or the time is over."""
        something = self._capacity.has_room
        something.clear()
        self._is_resting = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await something.wait()
        self._is_resting = False

    @property
    def is_resting(self) -> bool:
        """Whether it has asked everywhere it knows of, and was told nothing new."""
        return self._is_resting and not self._capacity.has_room.is_set()

    def _may_ask(self, pair: Pair) -> bool:
        """One slot is kept at a time: who needs another waits, and the others have their turns."""
        if self._kept is not None and self._lines[pair[1]].is_claimed_singly:
            return False
        return self._may_ask_urgent(pair)

    def _may_ask_urgent(self, pair: Pair) -> bool:
        """Where there is room for what completes a chunk, there may be none for others."""
        if not self._link.reach.has(pair[0]):
            return False
        return self._quota.may_ask(pair) and (not self._capacity.gatherer or self._room(pair[1]) > 0)

    def _may_jump(self, pair: Pair) -> bool:
        return self._may_ask_urgent(pair) and self._hot.may_jump(pair)

    async def look(self) -> None:
        """Look at the lines of all tenants, in all lanes, that are not known to be worth asking anyway.

        One statement finds where there is something, and another one since when or from when on.
        """
        began = self._clock.monotonic()
        connection = await self._link.get()
        cold = await self._cold_pairs(connection)
        rows = await runs.waiting_lines(connection, cold) if cold else []
        self._looked_at = self._clock.monotonic()
        self._look_cost = self._looked_at - began
        self._look_at = self._looked_at + max(self._poll_interval, pause_between_looks(self._look_cost))
        self._staged.learn({(row["lane"], row["line"]): row["seconds"] for row in rows if row["seconds"] > 0})
        found = [(row["lane"], row["line"]) for row in rows if row["seconds"] <= 0]
        self._seen.update(found)
        for pair in found:
            self._hot.add(pair)

    async def _cold_pairs(self, connection: Connection) -> list[Pair]:
        """Those of our lines, each in one lane, in which something is and which are not worth asking anyway; all such
        pairs there are, where it cannot be told in which something is.
        """
        hot = {*self._hot.pairs(), *(() if self._kept is None else (self._kept,))}
        if len(hot) >= self._lanes * len(self._lines):
            return []  # all that is known is worth asking; what is not is learned in a while (`sync.py`)
        found = await runs.lines_in_use(connection, hot)
        if found is None:
            lanes = self._link.reach.lanes(range(self._lanes))
            return [(lane, line) for lane in lanes for line in self._lines if (lane, line) not in hot]
        if any(self._lines.is_news(line) for _, line in found):
            self._lines.learn(await jobs.all_lines(connection))
        return [pair for pair in found if pair[1] in self._lines]

    async def _claim_urgent(self, pair: Pair) -> None:
        """Fetch what is more urgent than the rest of its line, and only that; the pair's turn comes as before."""
        order = PRIORITIES[: self._urgent[pair] + 1]
        front, wanted = self._fronts[pair], min(MAX_BATCH, self._room(pair[1]))
        from_the_front = self._is_front_look_due(front)
        rows, passed = await self._claim(pair, front, order, wanted, from_the_front=from_the_front)
        front.advance(passed)
        if rows or not self._quota.has_left(pair):  # who waits for a thread takes nothing from the others
            self._urgent_claims += 1
        self._hot.charge(pair, len(rows))

    async def _claim_next(self, pair: Pair) -> None:
        self._urgent_claims = 0
        if not self._lines[pair[1]].is_claimed_singly:
            wanted = min(MAX_BATCH, self._room(pair[1]))
            await self._claim_and_come_again(pair, wanted)
            if wanted < FEW:
                await self._clock.sleep(GAP_SECONDS)  # let a few more slots become free before asking again
        elif self._capacity.has_spare_slot:
            await self._claim_and_come_again(pair, 1)
        else:
            self._kept = pair
            self._capacity.keep_a_slot()

    async def _claim_one(self, pair: Pair) -> None:
        """Into the slot that was kept for it."""
        await self._claim_and_come_again(pair, 1)
        self._kept = None
        self._capacity.release_slot()

    async def _claim_and_come_again(self, pair: Pair, wanted: int) -> None:
        """One turn of a pair, and another one later if it gave all that was wanted."""
        front = self._fronts.setdefault(pair, ClaimFront(random.randrange(OLDEST_FIRST_EVERY)))  # not all at once
        from_the_front = self._is_front_look_due(front)
        rows = await self._claim_turn(pair, front, wanted, from_the_front=from_the_front)
        if not rows and not from_the_front and pair in self._seen and not self._quota.has_left(pair):
            # Something is there, yet not behind the hints: it went back to the front of the line.
            rows = await self._claim_turn(pair, front, wanted, from_the_front=True)
        self._seen.discard(pair)
        self._hot.charge(pair, len(rows))
        if len(rows) >= wanted:
            self._hot.add(pair)
        elif rows and rows[-1][SUBMITTED_AT] < rows[-1][DUE_AT]:
            self._staged.come_again(pair)

    async def _claim_turn(self, pair: Pair, front: ClaimFront, count: int, *, from_the_front: bool) -> list[Record]:
        began, order = self._clock.monotonic(), front.order()
        rows, passed = await self._claim(pair, front, order, count, from_the_front=from_the_front)
        front.learn(passed, from_the_front=from_the_front, began=began, now=self._clock.monotonic())
        if from_the_front:
            self._front_look_at = front.looked_at + min(LOOK_AT_LEAST_EVERY, front.extra_cost / LOOK_SHARE)
        return rows

    def _is_front_look_due(self, front: ClaimFront) -> bool:
        """Looks at the very front share one budget: a small share for each of many pairs would be most of the time."""
        now = self._clock.monotonic()
        return now >= self._front_look_at and front.is_look_due(now)

    async def _claim(
        self, pair: Pair, front: ClaimFront, order: Sequence[int], count: int, *, from_the_front: bool
    ) -> tuple[list[Record], Sequence[Record]]:
        """Answers with what was claimed, and with those of it before which nothing was left in line."""
        lease_id, began, quota = new_uuid(), self._clock.monotonic(), self._quota.of(pair, count)
        urgent = self._urgent.pop(pair, None) if _is_by_urgency(order) else None
        try:
            connection = await self._link.get()
            self.under_way[lease_id] = pair
            rows = await leases.claim(
                connection,
                lane=pair[0],
                line=pair[1],
                priorities=order,
                fronts=[0 if from_the_front else front.ranks[priority] for priority in order],
                count=count,
                lease_id=lease_id,
                worker_id=self._worker_id,
                jobs_in_threads=self._quota.jobs(pair, quota),
                threads=quota or 0,
            )
            await self._answered(connection, lease_id, pair, rows, quota)
        except Exception:
            self._quota.failed(pair)
            if urgent is not None:
                self._ask_out_of_turn(pair, urgent)
            raise
        passed = self._quota.learn(pair, quota, rows, began)
        if urgent is not None and self._quota.has_left(pair):
            self._ask_out_of_turn(pair, urgent)  # what was left for want of a thread is as urgent as before
        return rows, passed

    async def _answered(
        self, connection: Connection, lease_id: UUID, pair: Pair, rows: list[Record], quota: int | None = None
    ) -> None:
        """Take what was claimed, as soon as its jobs are known: other tenants' are met when they come."""
        beyond_quota = await self._executor.jobs.meet(connection, {row[JOB] for row in rows}) and quota is not None
        del self.under_way[lease_id]
        if rows:
            works = self._executor.take(Lease(pair[0], lease_id, len(rows)), pair[1], rows)
            self._leases.add(lease_id, works)
        if beyond_quota:
            self._executor.give_back_waiting()  # to others, who have threads

    async def _find_unanswered(self) -> None:
        """A claim whose answer was lost may have happened all the same: then its lease is there.

        One that commits even later than this look is found at the next heartbeat and given back.
        """
        for lease_id, pair in list(self.under_way.items()):
            if not self._link.reach.has(pair[0]):
                continue  # its node is down: the others do not wait for it
            connection = await self._link.get()
            rows = await leases.find(connection, pair[0], lease_id, self._worker_id)
            if rows:
                await confirm(connection, [pair[0]])  # or a failover would give them to someone else as well
            await self._answered(connection, lease_id, pair, rows)


def _is_by_urgency(order: Sequence[int]) -> bool:
    return tuple(order) == PRIORITIES[: len(order)]
