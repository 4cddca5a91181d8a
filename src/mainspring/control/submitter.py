"""Accepts runs of all tenants. Single submissions that arrive together share one commit; a batch is all or nothing.

A submission is answered after COMMIT and never before (`accepting.py`).
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import structlog

from mainspring.clock import instant
from mainspring.control.accepting import COPY_ROWS, Acceptor, Adoption, RunBatch, accepted_from
from mainspring.control.definitions import document_of
from mainspring.control.group_commit import GroupCommit
from mainspring.errors import DatabaseBusy, InvalidInput, KeyBusy, NodeUnreachable
from mainspring.model.concurrency import home_of_gate, is_shared
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.model.run import AcceptedBatch
from mainspring.model.unique import DEBOUNCE, WITHIN
from mainspring.store import backlog, dependencies, notify, submissions
from mainspring.store.admission import Admitter
from mainspring.store.backlog import Overflow
from mainspring.store.connection import uncancelled
from mainspring.store.link import Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.definitions import Known
    from mainspring.model.backlog import BacklogNotice
    from mainspring.model.fan_out import FanOut
    from mainspring.model.run import Accepted, NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.flows import NewFlow
    from mainspring.store.notify import WakeUp

log = structlog.get_logger()

MAX_BATCH = 100_000
KEY_SECONDS = 5.0  # how long to wait for a key that is in use in somebody's open transaction
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25
# A process that stops in the middle keeps keys and backlogs locked, and the others wait for it to be ended.
LOCKING = {"idle_in_transaction_session_timeout": "5s"}
WARN_SECONDS, MOST_WARNED = 60.0, 1_000  # of one backlog that is nearly full; of how many
OTHER_LANES = 3  # that are tried until one is found whose node answers


class Submitter:
    """Accepts runs for one process: plain ones over one connection, those with keys or backlog caps over others.

    A key may be in use in somebody's open transaction, and a backlog by others: whoever waits for it must not make
    those wait who need none.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        lanes: int,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lanes = lanes
        self._waker = database.waker
        self._reach = database.reach
        self._turn = count()
        self._lane = next(self._turn) % lanes
        self._quietener = notify.Quietener(clock)
        self._plain = Acceptor(Link(database, clock, "submit"), clock, lanes)
        self._keyed = Acceptor(Link(database, clock, "submit keyed", settings=LOCKING), clock, lanes)
        self._capped = Acceptor(Link(database, clock, "submit capped", settings=LOCKING), clock, lanes)
        self._singles = GroupCommit(partial(self._accept, self._plain), clock)
        self._capped_singles = GroupCommit(partial(self._accept, self._capped), clock)
        self._warned: dict[str, float] = {}  # of backlogs that are nearly full, and when
        self._admitter = Admitter(database=database, clock=clock, name="admit", lanes=lanes)
        self._accepting: set[asyncio.Future[AcceptedBatch]] = set()

    async def submit_one(self, run: NewRun, known: Known) -> Accepted:
        """Accept one run, in one commit with others that arrive at the same time."""
        if run.key is not None or run.wish is not None or run.after is not None:
            return (await self.submit([run], known)).single()
        return await (self._singles if run.backlog is None else self._capped_singles).submit(run, known)

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
        accepting = asyncio.ensure_future(
            self._accept(self._acceptor_of(runs), runs, frozenset([known]), self._clock.monotonic())
        )
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)
        try:
            return await uncancelled(accepting)
        except Overflow as overflow:
            raise overflow.error() from None

    def _acceptor_of(self, runs: Sequence[NewRun]) -> Acceptor:
        if runs[0].wish is not None or any(run.key is not None for run in runs):
            return self._keyed
        return self._plain if runs[0].backlog is None else self._capped

    async def submit_children(
        self, runs: Sequence[NewRun], known: Known, fan_out: FanOut, *, may_fail: bool
    ) -> AcceptedBatch:
        """Accept children of a run, in its lane, and let it wait for them: all of them, or none."""
        if not runs:
            return AcceptedBatch([])
        ids = submissions.new_run_ids(len(runs), lane_of(fan_out.run_id), instant(self._clock))
        document = document_of(frozenset([known]))
        batch = RunBatch(ids, runs, document, self._clock.monotonic(), adoption=Adoption(fan_out, may_fail))
        accepting = asyncio.ensure_future(self._accept_children(batch))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)
        try:
            return await uncancelled(accepting)
        except Overflow as overflow:
            raise overflow.error() from None

    async def _accept_children(self, batch: RunBatch) -> AcceptedBatch:
        wake_ups = self.wake_ups(batch.ids, batch.runs)
        verdicts = await self._accept_in_turn(self._keyed, batch)
        self._waker.wake(wake_ups)
        self.hint_at_gates(batch.runs)
        self._warn(batch.backlogs)
        return accepted_from(batch.ids, verdicts, batch.runs, batch.backlogs)

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
        try:
            await uncancelled(accepting)
        except Overflow as overflow:
            raise overflow.error() from None

    async def _accept_flow(self, batch: RunBatch) -> AcceptedBatch:
        wake_ups = self.wake_ups(batch.ids, batch.runs)
        await self._accept_in_turn(self._capped if batch.is_capped else self._plain, batch)
        self._waker.wake(wake_ups)
        self.hint_at_gates(batch.runs)
        return AcceptedBatch(batch.ids)

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
        self._warn(batch.backlogs)
        return accepted_from(ids, verdicts, runs, batch.backlogs)

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
                if (lane := self._own_lane(run)) is not None:
                    stretch[at] = submissions.new_run_ids(1, lane, now)[0]
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

    def _own_lane(self, run: NewRun) -> int | None:
        """The lane that a run has to be in for its key, or had better be in for its parents or narrowest limit.

        Who shares a limit may be anywhere.
        """
        if run.wish is not None:
            return lane_of_key(run.tenant_id, f"{run.job_id} {run.wish.key}", self._lanes)
        if run.key is not None:
            return lane_of_key(run.tenant_id, run.key, self._lanes)
        if run.after is not None:
            return min(lane_of(run.after[0].run_id), self._lanes - 1)  # with its parent; an unknown one is refused
        if run.gates is None or is_shared(run.gates):
            return None
        return home_of_gate(run.gates.partition("\n")[0], self._lanes)

    def hint_at_gates(self, runs: Sequence[NewRun]) -> None:
        """These were accepted: it may be their turn at their gates."""
        self._admitter.hint(
            run.gates.partition("\n")[0]
            for run in runs
            if run.gates is not None and run.at is None and run.delay is None and run.after is None
        )

    # ── backlogs ────────────────────────────────────────────────────────────────────────────────────────────

    async def look_at_backlogs(self, ids: Sequence[UUID], runs: Sequence[NewRun]) -> dict[str, BacklogNotice]:
        """Before these are accepted in a caller's transaction: refuse them if their backlogs are full."""
        async with self._database.acquire() as connection:
            new = [
                (run_id, run)
                for run_id, run in zip(ids, runs, strict=True)
                if (run.key is None and run.wish is None) or not await self._is_answered(connection, run_id, run)
            ]
            entries = backlog.entries_of([run_id for run_id, _ in new], [run for _, run in new])
            notices = await backlog.look(connection, entries, self._lanes) if entries else {}
        self._warn(notices)
        return notices

    async def _is_answered(self, connection: Connection, run_id: UUID, run: NewRun) -> bool:
        holds_by_time = run.wish is not None and run.wish.rule in (WITHIN, DEBOUNCE)
        return await backlog.is_answered(connection, lane_of(run_id), run, holds_by_time=holds_by_time)

    def counting(self, ids: Sequence[UUID], runs: Sequence[NewRun]) -> list[tuple[str, tuple[str, str]]]:
        """What a caller's connection executes so that these are counted after its COMMIT."""
        return backlog.callers_statements(backlog.entries_of(ids, runs), self._lanes)

    def _warn(self, notices: Mapping[str, BacklogNotice]) -> None:
        """Say which backlogs are nearly full: each now and then."""
        now = self._clock.monotonic()
        for gate, notice in notices.items():
            if now - self._warned.get(gate, -WARN_SECONDS) >= WARN_SECONDS:
                if len(self._warned) >= MOST_WARNED:
                    self._warned.clear()
                self._warned[gate] = now
                log.warning("a backlog is nearly full", backlog=str(notice), waiting=notice.waiting, most=notice.most)

    # ── limits ──────────────────────────────────────────────────────────────────────────────────────────────

    async def until_admitted(self) -> None:
        """Wait until those of the accepted runs whose turn it is have passed their limits."""
        await self._admitter.until_idle()

    async def close(self) -> None:
        """Close after whatever is being accepted: closing under it would cancel its COMMIT."""
        await self._singles.finish()
        await self._capped_singles.finish()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for acceptor in (self._plain, self._keyed, self._capped):
            await acceptor.close()
        await self._admitter.close()
