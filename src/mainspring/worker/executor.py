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
from mainspring.worker.handler_errors import unpacked
from mainspring.worker.launcher import Launcher
from mainspring.worker.time_limits import Timekeeper
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mainspring.store.connection import Record
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Lease, Settled
    from mainspring.worker.performer import Performer
    from mainspring.worker.registration import Lines, WorkerIdentity
    from mainspring.worker.registry import Handler
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
        handlers: dict[int, Handler],
        lines: Lines,
        performer: Performer,
        settle: Callable[[Settled | Success], None],
        has_room: asyncio.Event,
        announce: Callable[[float], None] = tell_nobody,
    ) -> None:
        self._worker_id = worker.id
        self._handlers = handlers
        self._lines = lines
        self.jobs_in_threads = [job for job, handler in handlers.items() if handler.needs_thread]
        self._cancel_grace = settings.cancel_grace
        self._clock = worker.clock
        self._settle = settle
        self.capacity = Capacity(settings=settings, clock=worker.clock, has_room=has_room, start=self._start)
        self._running, self._buffer, self._waits = self.capacity.running, self.capacity.buffer, self.capacity.waits
        self.timekeeper = Timekeeper(
            clock=worker.clock,
            grace=settings.cancel_grace,
            time_is_up=self._time_is_up,
            time_is_over=self._abandon,
            announce=announce,
        )
        self._performer = performer
        self._launcher = Launcher(clock=worker.clock, execute=self._execute, may_begin=self._may_begin)

    # ── taking runs in ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._buffer

    @property
    def running(self) -> int:
        return len(self._running)

    def take(self, lease: Lease, line: int, rows: Sequence[Record]) -> list[Work]:
        """Accept the runs of a new lease; answers with them in the order of their positions."""
        now = self.now()
        handlers, worker_id, waits = self._handlers, self._worker_id, self._waits
        delivery = self._lines[line].delivery
        works = [
            Work(row, lease, position, line, worker_id, now, handlers.get(row[JOB]), delivery, waits)
            for position, row in enumerate(rows)
        ]
        if self._lines[line].is_claimed_singly:
            self._start_or_give_back(works)
            return works
        self._buffer.add(works)
        if self.capacity.is_closed:
            self.give_back_waiting()
        self.capacity.fill_slots()
        return works

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
            return False  # it was abandoned
        if work.is_told_to_stop:
            self._finish(work, work.cancelled(self.now()) if work.is_cancelled else work.given_back(self.now()))
            return False
        return True

    async def _execute(self, work: Work, handler: Handler) -> None:
        work.started_at = self.now()
        try:
            result = await self._performer.perform(work, handler, self.timekeeper.watch)
            settled: Settled | Success = outcomes.returned(work, handler, result, self.now())
        except asyncio.CancelledError as error:
            settled = outcomes.cancelled(work, error, self.now())
        except BaseException as error:  # whatever a handler raises ends its attempt only
            if isinstance(error, GeneratorExit) and not _is_in_its_task(work):
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
        if work in self._running:
            self._tell(work)
            asyncio.get_running_loop().call_later(self._cancel_grace, self._abandon, work)

    def interrupt(self, works: Iterable[Work], grace: float) -> None:
        """Stop these runs, which did nothing wrong; they go back in line."""
        for work in list(works):
            if work in self._running and not work.is_interrupted:
                work.is_interrupted = True
                self._tell(work)
                asyncio.get_running_loop().call_later(grace, self._abandon, work)

    def _time_is_up(self, work: Work) -> None:
        """Its time is up: tell it. If it has not stopped at the hard limit, it is abandoned."""
        assert work.limit is not None
        work.limit.exceed()
        if work in self._running and not work.is_cancelled and not work.is_interrupted:
            self._tell(work)

    def _tell(self, work: Work) -> None:
        self._waits.stop_queueing(work)
        self._performer.tell(work)

    def _abandon(self, work: Work) -> None:
        """As much force as there is: killed if it can be; else settled, while code that would not stop runs on."""
        if work in self._running and not self._performer.kill(work):
            abandoned = self.capacity.abandon(work)
            self._settle(work.stopped(self.now()))
            log.warning("a handler would not stop and was abandoned", run=str(work.row[ID]), abandoned=abandoned)

    def give_back_waiting(self, *, older_than: float = 0.0) -> None:
        """Return runs that have not started."""
        now = self.now()
        for work in self._buffer.take_out((now[0] - int(older_than * 1_000_000),)):
            if not work.is_settled:
                self._settle(work.cancelled(now) if work.is_cancelled else work.given_back(now))

    def stop_taking(self) -> None:
        """The first step of a drain: nothing new begins, what has not begun goes back."""
        self.capacity.is_closed = True
        self.give_back_waiting()

    def stop_running(self) -> None:
        """The last step of a drain: what still runs goes back in line now."""
        self.interrupt(self._running, grace=0.0)

    def close(self) -> None:
        self.timekeeper.close()
        self._performer.close()

    @property
    def running_works(self) -> set[Work]:
        return self._running

    def now(self) -> Micros:
        return (self._clock.micros() - UNIX_TO_POSTGRES,)


def _is_in_its_task(work: Work) -> bool:
    try:
        return asyncio.current_task() is work.task
    except RuntimeError:  # there is no event loop
        return False
