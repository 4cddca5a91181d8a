"""Runs handlers, as many at once as there is room for (`capacity.py`), and stops them when they have to.

Claimed runs wait in a small buffer, most urgent first; what waits too long is given back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from mainspring.store.columns import ID, JOB
from mainspring.store.instants import UNIX_TO_POSTGRES
from mainspring.worker import outcomes
from mainspring.worker.capacity import Capacity
from mainspring.worker.chunk_runner import ChunkRunner
from mainspring.worker.gatherer import ChunkCall
from mainspring.worker.handler_errors import unpacked
from mainspring.worker.launcher import Launcher
from mainspring.worker.time_limits import Timekeeper
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mainspring.store.connection import Record
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Lease, Settled
    from mainspring.worker.gating import Gating
    from mainspring.worker.lines import Lines
    from mainspring.worker.performer import Performer
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.registry import Handler
    from mainspring.worker.served_jobs import ServedJobs
    from mainspring.worker.settings import WorkerSettings
    from mainspring.worker.successes import Success

log = structlog.get_logger()

STALE_SECONDS = 1.0  # a run that waited here this long is given back


def tell_nobody(hard_limit: float) -> None:
    """Nobody supervises this process."""


class Executor:
    """Executes claimed runs and hands what became of each to `settle`.

    `has_room` is set when more may be claimed. `announce` is told by when the handlers of this process have to be over.
    """

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        settings: WorkerSettings,
        jobs: ServedJobs,
        lines: Lines,
        performer: Performer,
        settle: Callable[[Settled | Success], None],
        has_room: asyncio.Event,
        gating: Gating | None = None,
        announce: Callable[[float], None] = tell_nobody,
    ) -> None:
        self._worker_id = worker.id
        self.jobs = jobs
        self._lines = lines
        self._has_chunks = jobs.have_chunks
        self._cancel_grace = settings.cancel_grace
        self._clock = worker.clock
        self._settle = settle
        self._gating = gating
        self.capacity = Capacity(
            settings=settings,
            clock=worker.clock,
            has_room=has_room,
            start=self._start_run_or_call if self._has_chunks else self._start,
            now=self.now,
        )
        self._running, self._buffer, self._waits = self.capacity.running, self.capacity.buffer, self.capacity.waits
        self.timekeeper = Timekeeper(
            clock=worker.clock,
            grace=settings.cancel_grace,
            time_is_up=self._time_is_up,
            time_is_over=self._abandon,
            announce=announce,
        )
        self._performer = performer
        self._launcher = Launcher(clock=worker.clock, execute=self._execute)
        self._chunks = ChunkRunner(
            capacity=self.capacity,
            timekeeper=self.timekeeper,
            performer=performer,
            settle=settle,
            now=self.now,
            cancel_grace=settings.cancel_grace,
        )

    # ── taking runs in ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._buffer and not self.capacity.gatherer

    @property
    def running(self) -> int:
        return len(self._running)

    def take(self, lease: Lease, line: int, rows: Sequence[Record]) -> list[Work]:
        """Accept the runs of a new lease; answers with them in the order of their positions."""
        now = self.now()
        handlers, worker_id, waits = self.jobs.handlers, self._worker_id, self._waits
        delivery, tenant = self._lines[line].delivery, self._lines.tenant(line)
        works = [
            Work(row, lease, position, line, worker_id, now, handlers.get(row[JOB]), delivery, waits, tenant)
            for position, row in enumerate(rows)
        ]
        gating = self._gating
        free = works if gating is None or not gating.has_limits(line) else self._without_gated(gating, works)
        if self._lines[line].is_claimed_singly:
            self._start_or_give_back(free)
            return works
        self._buffer.add(self.capacity.gatherer.take(free) if self._has_chunks else free)
        if self.capacity.is_closed:
            self._give_back_everything()
        self.capacity.fill_slots()
        return works

    def _without_gated(self, gating: Gating, works: list[Work]) -> list[Work]:
        """Those that may start under the limits there are; the others go to wait for their turn."""
        free, gated = gating.sort(works)
        for work, hold in gated:
            self._settle(work.held_at(hold, self.now()))
        return free

    def hold_gated(self) -> None:
        """Of what waits here, let those that have to pass a gate by now do so: a breaker has opened."""
        if self._gating is not None:
            waiting = [run for work in self._buffer for run in work.runs] + self.capacity.gatherer.runs
            self._without_gated(self._gating, [run for run in waiting if not run.is_settled and not run.is_cancelled])

    def _start_or_give_back(self, works: list[Work]) -> None:
        """Runs that may not wait here: if their claim was answered so late that the slot is gone, so are they."""
        for work in works:
            if not self.capacity.is_closed and self.capacity.has_slot_for(work):
                self._start(work)
            else:
                self._settle(work.given_back(self.now()))

    # ── executing one ───────────────────────────────────────────────────────────────────────────────────────

    def _start(self, work: Work) -> bool:
        """Begin a run, or settle it at once if it may not begin; answers whether it takes a slot."""
        handler = work.handler
        if outcomes.may_be_refused(work, handler):
            refusal = outcomes.refused(work, handler, self.now())
            if refusal is not None:
                self._settle(refusal)
                return False
        assert handler is not None
        self.capacity.begin(work)
        self._launcher.start(work, handler)
        return True

    def _may_begin(self, work: Work) -> bool:
        """Whether its handler may be called now; if it was told to stop before that, it ends here."""
        if work not in self._running:
            return False  # it has ended before it began
        if work.is_told_to_stop:
            self._finish(work, work.cancelled(self.now()) if work.is_cancelled else work.given_back(self.now()))
            return False
        return True

    def _start_run_or_call(self, work: Work) -> bool:
        return self._chunks.start(work) if isinstance(work, ChunkCall) else self._start(work)

    async def _execute(self, work: Work, handler: Handler) -> None:
        if not self._may_begin(work):
            return
        work.started_at = self.now()
        try:
            result = await self._performer.perform(work, handler, self.timekeeper.watch)
            settled: Settled | Success = outcomes.returned(work, handler, result, self.now())
        except asyncio.CancelledError as error:
            settled = outcomes.cancelled(work, error, self.now())
        except BaseException as error:  # whatever a handler raises ends its attempt only
            if isinstance(error, GeneratorExit) and not work.is_in_its_task:
                raise  # nobody raised it: the event loop is gone, and Python puts away what was still waiting
            settled = outcomes.raised(work, unpacked(error), self.now())
        self._finish(work, settled)

    def _finish(self, work: Work, settled: Settled | Success) -> None:
        work.task = None  # its context knows the work: a circle that would wait for the garbage collector
        if work.limit is not None:
            self.timekeeper.forget(work)
        if self.capacity.finish(work):
            self._settle(settled)  # else it was given up, and settled, a while ago
        self.capacity.refill(work)

    # ── stopping ────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, work: Work) -> None:
        """Someone wants this run to stop: tell it, and abandon it if it has not stopped after the grace."""
        if work.is_cancelled or work.is_settled:
            return
        work.is_cancelled = True
        stopped = self._chunks.cancel(work) if self._has_chunks else work
        if stopped is not None and stopped in self._running:
            self._tell(stopped)
            asyncio.get_running_loop().call_later(self._cancel_grace, self._abandon, stopped)

    def interrupt(self, works: Iterable[Work], grace: float) -> None:
        """Stop these runs, which did nothing wrong; they go back in line."""
        for work in list(works):
            if work in self._running and not work.is_interrupted:
                work.interrupt()
                self._tell(work)
                asyncio.get_running_loop().call_later(grace, self._abandon, work)

    def _time_is_up(self, work: Work) -> None:
        """Its time is up: tell it. If it has not stopped at the hard limit, it is abandoned."""
        work.exceed_limit()
        if work in self._running and not work.is_cancelled and not work.is_interrupted:
            self._tell(work)

    def _tell(self, work: Work) -> None:
        self._waits.stop_queueing(work)
        self._performer.tell(work)

    def _abandon(self, work: Work) -> None:
        """As much force as there is: killed if it can be; else settled, while code that would not stop runs on."""
        if work in self._running and not work.has_begun:
            self._finish(work, work.stopped(self.now()))
        elif work in self._running and not self._performer.kill(work):
            abandoned = self.capacity.abandon(work)
            self.capacity.share(work, -1)
            for run in work.runs:
                if not run.is_settled:
                    self._settle(run.stopped(self.now()))
            log.warning("a handler would not stop and was abandoned", run=str(work.row[ID]), abandoned=abandoned)

    def give_back_waiting(self, *, older_than: float = 0.0) -> None:
        """Return runs that wait for a slot or a thread."""
        for work in self._buffer.take_out((self.now()[0] - int(older_than * 1_000_000),)):
            self.capacity.share(work, -1)
            self._give_back(work.runs)

    def _give_back_everything(self) -> None:
        """Return all that has not started: what waits for others to share a call with it, too."""
        self._give_back(self.capacity.gatherer.take_out())
        self.give_back_waiting()

    def _give_back(self, runs: Iterable[Work]) -> None:
        now = self.now()
        for run in runs:
            if not run.is_settled:
                self._settle(run.cancelled(now) if run.is_cancelled else run.given_back(now))

    def stop_taking(self) -> None:
        """The first step of a drain: nothing new begins, what has not begun goes back."""
        self.capacity.is_closed = True
        self._give_back_everything()

    def stop_running(self) -> None:
        """The last step of a drain: what still runs goes back in line now."""
        self.interrupt(self._running, grace=0.0)

    def close(self) -> None:
        self._launcher.close()
        self.timekeeper.close()
        self._performer.close()

    @property
    def running_works(self) -> set[Work]:
        return self._running

    def now(self) -> Micros:
        return (self._clock.micros() - UNIX_TO_POSTGRES,)
