"""Accepts runs of all tenants. Single submissions that arrive together share one commit; a batch is all or nothing.

A submission is answered after COMMIT and never before (`accepting.py`).
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mainspring.clock import instant
from mainspring.control.accepting import COPY_ROWS, Acceptor, RunBatch, accepted_from
from mainspring.control.definitions import document_of
from mainspring.errors import DatabaseBusy, InvalidInput, KeyBusy, NodeUnreachable, ValueNotStorable
from mainspring.model.concurrency import home_of_gate
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.model.run import Accepted, AcceptedBatch
from mainspring.store import dependencies, notify, submissions
from mainspring.store.admission import Admitter
from mainspring.store.connection import uncancelled
from mainspring.store.link import Link

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.definitions import Known
    from mainspring.model.run import NewRun
    from mainspring.store.database import Database
    from mainspring.store.flows import NewFlow
    from mainspring.store.notify import WakeUp

MAX_BATCH = 100_000
GATHER = 1_000  # single submissions per commit
KEY_SECONDS = 5.0  # how long to wait for a key that is in use in somebody's open transaction
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25
OTHER_LANES = 3  # that are tried until one is found whose node answers


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
    ) -> None:
        self._clock = clock
        self._lanes = lanes
        self._waker = database.waker
        self._reach = database.reach
        self._turn = count()
        self._lane = next(self._turn) % lanes
        self._quietener = notify.Quietener(clock)
        self._plain = Acceptor(Link(database, clock, "submit"), clock)
        self._keyed = Acceptor(Link(database, clock, "submit keyed"), clock)
        self._admitter = Admitter(database=database, clock=clock, name="admit", lanes=lanes)
        self._pending: list[Pending] = []
        self._gathering: asyncio.Task[None] | None = None
        self._accepting: set[asyncio.Future[AcceptedBatch]] = set()

    async def submit_one(self, run: NewRun, known: Known) -> Accepted:
        """Accept one run, in one commit with others that arrive at the same time."""
        if run.key is not None or run.wish is not None or run.after is not None:
            return (await self.submit([run], known)).single()
        future: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._pending.append(Pending(run, known, future, self._clock.monotonic()))
        if self._gathering is None:
            # In a context of its own: it serves many, and is none of their attempts.
            self._gathering = asyncio.create_task(self._gather(), context=Context())
        return await asyncio.shield(future)

    async def submit(self, runs: Sequence[NewRun], known: Known) -> AcceptedBatch:
        """Accept all of these runs, or none of them. `known` is what their numbers take for granted."""
        if len(runs) > MAX_BATCH:
            raise InvalidInput(
                f"{len(runs):,} runs in one batch; at most {MAX_BATCH:,} are allowed.",
                code="batch-too-large",
                hint="Submit them in several batches.",
                field="runs",
            )
        if not runs:
            return AcceptedBatch([])
        acceptor = self._keyed if runs[0].wish is not None or any(run.key is not None for run in runs) else self._plain
        accepting = asyncio.ensure_future(self._accept(acceptor, runs, frozenset([known]), self._clock.monotonic()))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)
        return await uncancelled(accepting)

    def ids_in_one_lane(self, count: int) -> list[UUID]:
        """Ids of runs that belong together, and of what they belong to; the next ones are in another lane."""
        ids = submissions.new_run_ids(count, self._lane, instant(self._clock))
        self._next_lane()
        return ids

    async def submit_flow(
        self, flow: NewFlow, ids: list[UUID], runs: Sequence[NewRun], known: frozenset[Known]
    ) -> None:
        """Accept all runs of a flow, or none of them."""
        batch = RunBatch(ids, runs, document_of(known), self._clock.monotonic(), flow)
        accepting = asyncio.ensure_future(self._accept_flow(batch))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)
        await uncancelled(accepting)

    async def _accept_flow(self, batch: RunBatch) -> AcceptedBatch:
        wake_ups = self.wake_ups(batch.ids, batch.runs)
        await self._accept_in_turn(self._plain, batch)
        self._waker.wake(wake_ups)
        self.hint_at_gates(batch.runs)
        return AcceptedBatch(batch.ids)

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
            accepted = await self._accept(self._plain, [each.run for each in batch], known, batch[0].arrived_at)
        except Exception as error:
            if len(batch) > 1 and isinstance(error, (ValueNotStorable, ValueError, TypeError)):
                for single in batch:
                    await self._accept_singles([single])
            else:
                for each in batch:
                    each.future.set_exception(error)
        else:
            for each, run_id in zip(batch, accepted.ids, strict=True):
                each.future.set_result(Accepted(run_id))

    async def _accept(
        self,
        acceptor: Acceptor,
        runs: Sequence[NewRun],
        known: frozenset[Known],
        arrived_at: float,
        other_lanes: int = OTHER_LANES,
    ) -> AcceptedBatch:
        ids = self.new_ids(runs)
        wake_ups = self.wake_ups(ids, runs)
        batch = RunBatch(ids, runs, document_of(known), arrived_at)
        try:
            verdicts = await self._accept_in_turn(acceptor, batch)
        except NodeUnreachable:
            if batch.is_keyed or not other_lanes:
                raise
            self._next_lane()  # nothing happened: any lane on another node will do
            self._quietener = notify.Quietener(self._clock)
            return await self._accept(acceptor, runs, known, arrived_at, other_lanes - 1)
        self._waker.wake(wake_ups)
        self.hint_at_gates(runs)
        return accepted_from(ids, verdicts)

    async def _accept_in_turn(self, acceptor: Acceptor, batch: RunBatch) -> list[submissions.Verdict]:
        """Until it is accepted or refused. Who waits for a key steps aside in between, so that nobody waits behind."""
        until, pause = self._clock.monotonic() + KEY_SECONDS, FIRST_PAUSE
        while True:
            try:
                verdicts = await acceptor.accept(batch)
            except (KeyBusy, DatabaseBusy, NodeUnreachable) as error:
                if isinstance(error, NodeUnreachable) and not batch.is_keyed:
                    raise
                if self._clock.monotonic() >= until:
                    raise batch.failure(error) from error
                await self._clock.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 1.5)
                continue
            if not any(each.verdict == "gone" for each in verdicts):  # a key was forgotten just now: once more
                return verdicts

    def new_ids(self, runs: Sequence[NewRun]) -> list[UUID]:
        """An id, and so a lane, for each run: a key or a limit decides, the others take turns in long stretches."""
        now = instant(self._clock)
        ids: list[UUID] = []
        for start in range(0, len(runs), COPY_ROWS):
            some = runs[start : start + COPY_ROWS]
            stretch = submissions.new_run_ids(len(some), self._lane, now)
            for at, run in enumerate(some):
                if run.key is not None or run.gates is not None or run.wish is not None or run.after is not None:
                    stretch[at] = submissions.new_run_ids(1, self._own_lane(run), now)[0]
            ids += stretch
            if len(some) == COPY_ROWS:
                self._next_lane()
        return ids

    def _next_lane(self) -> None:
        for _ in range(self._lanes):
            self._lane = next(self._turn) % self._lanes
            if self._reach.has(self._lane):
                return

    def wake_ups(self, ids: Sequence[UUID], runs: Sequence[NewRun]) -> list[WakeUp]:
        """Whom to wake, sparingly. The lane changes with each wake-up that is sent: few claims find many runs."""
        # One run speaks for all of its line and priority: the quietener would not let a second one through.
        speakers = {
            (run.at is None and run.delay is None, run.line_id, run.priority): run_id
            for run_id, run in zip(ids, runs, strict=True)
            # Else it waits at a gate, or for others to end.
            if (run.gates is None or run.at is not None or run.delay is not None) and run.after is None
        }
        wanted = [
            notify.ready(lane_of(run_id), line, priority) if is_ready else notify.later()
            for (is_ready, line, priority), run_id in speakers.items()
        ]
        if dependencies.any_to_check(ids, runs):
            wanted.append(notify.dependency())
        passed = self._quietener.pass_on(wanted)
        if passed:
            self._next_lane()
        return passed

    def _own_lane(self, run: NewRun) -> int:
        """The lane that a run has to be in for its key, or had better be in for its parents or narrowest limit."""
        if run.wish is not None:
            return lane_of_key(run.tenant_id, f"{run.job_id} {run.wish.key}", self._lanes)
        if run.key is not None:
            return lane_of_key(run.tenant_id, run.key, self._lanes)
        if run.after is not None:
            return min(lane_of(run.after[0].run_id), self._lanes - 1)  # with its parent; an unknown one is refused
        assert run.gates is not None
        return home_of_gate(run.gates.partition("\n")[0], self._lanes)

    def hint_at_gates(self, runs: Sequence[NewRun]) -> None:
        """These were accepted: it may be their turn at their gates."""
        self._admitter.hint(
            run.gates.partition("\n")[0]
            for run in runs
            if run.gates is not None and run.at is None and run.delay is None and run.after is None
        )

    async def until_admitted(self) -> None:
        """Wait until those of the accepted runs whose turn it is have passed their limits."""
        await self._admitter.until_idle()

    async def close(self) -> None:
        """Close after whatever is being accepted: closing under it would cancel its COMMIT."""
        if self._gathering is not None:
            await self._gathering
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await self._plain.close()
        await self._keyed.close()
        await self._admitter.close()


class Pending(NamedTuple):
    """A single run that waits for others, with which it shares a commit."""

    run: NewRun
    known: Known
    future: asyncio.Future[Accepted]
    arrived_at: float
