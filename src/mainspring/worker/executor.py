"""Runs handlers, never more at once than there are slots; those that wait for other runs are not counted (`waits.py`).

A handler that is not async also needs a thread, and there are fewer of these: a hundred threads that compute do no more
than a few, because Python runs one at a time, and each takes its turn before the event loop has its own.

Claimed runs wait in a small buffer, most urgent first. How many may wait adapts to how fast handlers finish, so
that long runs are not hoarded here while another worker idles; what waits too long is given back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from mainspring.store.columns import ID, JOB
from mainspring.store.instants import UNIX_TO_POSTGRES
from mainspring.worker import outcomes
from mainspring.worker.buffer import Buffer
from mainspring.worker.handler_errors import unpacked
from mainspring.worker.rate import Rate
from mainspring.worker.time_limits import Timekeeper
from mainspring.worker.waits import MOST_PER_SLOT, Waits
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

log = structlog.get_logger()

PREFETCH_SECONDS = 0.05  # how much work, at the present speed, may wait here
MAX_PREFETCH = 2_000
STALE_SECONDS = 1.0  # a run that waited here this long is given back
MOST_ABANDONED = 3  # handlers that would not stop; with more of them, a process had better be replaced


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
        settle: Callable[[Settled], None],
        has_room: asyncio.Event,
        announce: Callable[[float], None] = tell_nobody,
    ) -> None:
        self._worker_id = worker.id
        self._handlers = handlers
        self._lines = lines
        self._slots = settings.slots
        self._threads = settings.thread_count
        self.jobs_in_threads = [job for job, handler in handlers.items() if handler.needs_thread]
        self._cancel_grace = settings.cancel_grace
        self._clock = worker.clock
        self._settle = settle
        self._buffer = Buffer(has_thread=self._has_thread_for_new, start=self._start)
        self._running: set[Work] = set()
        self._in_threads = 0  # of those; one that was abandoned does not count: its slot does
        self._kept = 0  # slots that stay free for a run that may not wait here
        self._kept_threads = 0  # threads, likewise
        self._abandoned = 0  # handlers that would not stop: their slots are not reused until they do
        self.timekeeper = Timekeeper(
            clock=worker.clock,
            grace=settings.cancel_grace,
            time_is_up=self._time_is_up,
            time_is_over=self._abandon,
            announce=announce,
        )
        self._performer = performer
        self._waits = Waits(
            most=MOST_PER_SLOT * settings.slots,
            running=self._running,
            has_slot_for=self._has_slot_for,
            slot_is_free=self._fill_slots,
        )
        self._rate = Rate(worker.clock)
        self._thread_rate = Rate(worker.clock)
        self._is_stopping = False
        self.has_room = has_room
        self.has_room.set()

    # ── taking runs in ──────────────────────────────────────────────────────────────────────────────────────

    def room(self) -> int:
        """How many more runs it would be good to have here."""
        if self._is_stopping:
            return 0
        return self.free_slots() - self._kept + _prefetch(self._rate) - self._buffer.in_line

    def thread_room(self) -> int:
        """How many of them may need a thread."""
        return self.free_threads() - self._kept_threads + _prefetch(self._thread_rate) - self._buffer.need_thread

    def free_threads(self) -> int:
        return self._threads - self._in_threads + self._waits.without_thread

    def _has_thread_for_new(self) -> bool:
        return self.free_threads() > self._kept_threads

    def _has_slot_for(self, work: Work) -> bool:
        return self._unused_slots() > 0 and (not work.needs_thread or self.free_threads() > 0)

    def free_slots(self) -> int:
        return 0 if self._is_stopping else self._unused_slots()

    def _unused_slots(self) -> int:
        return self._slots - len(self._running) - self._abandoned + self._waits.without_slot

    @property
    def has_spare_slot(self) -> bool:
        """Whether a slot is free that nothing here waits for."""
        return self.free_slots() > self._buffer.in_line

    @property
    def has_spare_thread(self) -> bool:
        """Whether a thread is free that nothing here waits for."""
        return self.free_threads() - self._kept_threads > self._buffer.need_thread

    def keep_a_slot(self) -> None:
        """Let the next slot that becomes free stay so."""
        self._kept = 1

    def release_slot(self) -> None:
        self._kept = 0
        self._fill_slots()

    def keep_a_thread(self) -> None:
        """Let the next thread that becomes free stay so."""
        self._kept_threads = 1

    def release_thread(self) -> None:
        self._kept_threads = 0
        self._fill_slots()

    @property
    def in_hand(self) -> int:
        """How many runs wait here or have a slot: they will soon have a result to settle.

        Who waits for another run does not count: that one must be claimed.
        """
        return len(self._running) - self._waits.without_slot + len(self._buffer)

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._buffer

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_worn(self) -> bool:
        """Whether so many handlers would not stop that a fresh process is better than this one."""
        return self._abandoned >= min(MOST_ABANDONED, self._slots)

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
        if self._is_stopping:
            self.give_back_waiting()
        self._fill_slots()
        return works

    def _start_or_give_back(self, works: list[Work]) -> None:
        """Runs that may not wait here: if their claim was answered so late that the slot is gone, so are they."""
        for work in works:
            if not self._is_stopping and self._has_slot_for(work):
                self._start(work)
            else:
                self._settle(work.given_back(self.now()))

    def _fill_slots(self) -> None:
        if self._waits.without_slot:
            self._waits.grant()
        if self._is_stopping:
            return
        free = self._buffer.start_some(self._unused_slots() - self._kept)
        if free > 0 or self._kept or self._buffer.in_line * 2 < MAX_PREFETCH:
            self.has_room.set()

    # ── executing one ───────────────────────────────────────────────────────────────────────────────────────

    def _start(self, work: Work) -> bool:
        """Begin a run, or settle it at once if it may not begin; answers whether it takes a slot."""
        now, handler = self.now(), work.handler
        refusal = outcomes.refused(work, handler, now)
        if refusal is not None:
            self._settle(refusal)
            return False
        assert handler is not None
        work.started_at = now
        # Not by the loop's create_task: that makes up a name for each, which takes as long as the rest of it.
        work.task = asyncio.Task(self._execute(work, handler), name=handler.name)
        self._running.add(work)
        if work.needs_thread:
            self._in_threads += 1
        return True

    async def _execute(self, work: Work, handler: Handler) -> None:
        try:
            result = await self._performer.perform(work, handler, self.timekeeper.watch)
            settled = outcomes.returned(work, handler, result, self.now())
        except asyncio.CancelledError as error:
            settled = outcomes.cancelled(work, error, self.now())
        except BaseException as error:  # whatever a handler raises ends its attempt only
            if isinstance(error, GeneratorExit) and not _is_in_its_task(work):
                raise  # nobody raised it: the event loop is gone, and Python puts away what was still waiting
            settled = outcomes.raised(work, unpacked(error), self.now())
        self._finish(work, settled)

    def _finish(self, work: Work, settled: Settled) -> None:
        work.task = None  # its context knows the work: a circle that would wait for the garbage collector
        if work.limit is not None:
            self.timekeeper.forget(work)
        if work in self._running:
            self._running.discard(work)
            if work.needs_thread:
                self._leave_thread()
            self._settle(settled)
        else:
            self._abandoned -= 1  # it was given up, and settled, a while ago
        self._rate.count += 1
        if self._waits.without_slot:
            self._waits.forget(work)
            self._fill_slots()
        elif self._buffer.in_line or self._buffer.aside:
            self._fill_slots()
        else:
            self.has_room.set()

    def _leave_thread(self) -> None:
        self._in_threads -= 1
        self._thread_rate.count += 1

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
            self._running.discard(work)
            if work.needs_thread:
                self._leave_thread()
            self._waits.forget(work)
            self._abandoned += 1
            self._settle(work.stopped(self.now()))
            log.warning("a handler would not stop and was abandoned", run=str(work.row[ID]), abandoned=self._abandoned)

    def give_back_waiting(self, *, older_than: float = 0.0) -> None:
        """Return runs that have not started."""
        now = self.now()
        for work in self._buffer.take_out((now[0] - int(older_than * 1_000_000),)):
            if not work.is_settled:
                self._settle(work.cancelled(now) if work.is_cancelled else work.given_back(now))

    def stop_taking(self) -> None:
        """The first step of a drain: nothing new begins, what has not begun goes back."""
        self._is_stopping = True
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


def _prefetch(rate: Rate) -> int:
    return min(MAX_PREFETCH, int(rate.per_second * PREFETCH_SECONDS))
