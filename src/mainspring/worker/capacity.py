"""How many runs fit into an executor: who has a slot or a thread, who waits for one, and how many more may come.

Never more handlers run at once than there are slots; those that wait for other runs are not counted (`waits.py`). A
handler that is not async also needs a thread, and there are fewer of these: a hundred threads that compute do no more
than a few, because Python runs one at a time, and each takes its turn before the event loop has its own.

Claimed runs wait in a small buffer. How many may wait adapts to how fast handlers finish, so that long runs are not
hoarded here while another worker idles. A chunk of runs that share a call needs one slot, and one thread at most; runs
that wait for others to share one are no part of the buffer (`gatherer.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.worker.buffer import Buffer
from mainspring.worker.gatherer import Gatherer
from mainspring.worker.waits import MOST_PER_SLOT, Waits

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from mainspring.clock import Clock
    from mainspring.store.instants import Micros
    from mainspring.worker.gatherer import ChunkCall
    from mainspring.worker.settings import WorkerSettings
    from mainspring.worker.work import Work

PREFETCH_SECONDS = 0.05  # how much work, at the present speed, may wait here
MAX_PREFETCH = 2_000
MOST_ABANDONED = 3  # handlers that would not stop; with more of them, a process had better be replaced
_RATE_WINDOW = 0.1


class TurnoverRate:
    """How many runs finish per second, lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._per_second = 0.0
        self.count = 0

    @property
    def per_second(self) -> float:
        span = self._clock.monotonic() - self._since
        if span >= _RATE_WINDOW:
            self._per_second = (self._per_second + self.count / span) / 2
            self._since += span
            self.count = 0
        return self._per_second


class Capacity:
    """`start` begins a run and answers whether it took its slot. `has_room` is set when more may be claimed."""

    def __init__(
        self,
        *,
        settings: WorkerSettings,
        clock: Clock,
        has_room: asyncio.Event,
        start: Callable[[Work], bool],
        now: Callable[[], Micros],
    ) -> None:
        self._slots = settings.slots
        self._threads = settings.thread_count
        self.running: set[Work] = set()
        self._in_threads = 0  # of those; one that was abandoned does not count: its slot does
        self._abandoned = 0  # handlers that would not stop: their slots are not reused until they do
        self._kept = 0  # slots that stay free for a run that may not wait here
        self._kept_threads = 0  # threads, likewise
        self.buffer = Buffer(has_thread=self._has_thread_for_new, start=start)
        self.gatherer = Gatherer(now=now, call=self._add_call)
        self._sharing = 0  # runs beyond the first of each call that is in the buffer or running
        self.waits = Waits(
            most=MOST_PER_SLOT * settings.slots,
            running=self.running,
            has_slot_for=self.has_slot_for,
            slot_is_free=self.fill_slots,
        )
        self._rate = TurnoverRate(clock)
        self._thread_rate = TurnoverRate(clock)
        self.is_closed = False  # nothing new begins here any more
        self.has_room = has_room
        self.has_room.set()

    # ── what is free ────────────────────────────────────────────────────────────────────────────────────────

    def room(self, line: int | None = None) -> int:
        """How many more runs it would be good to have here; of a line, if it may have chunks to fill."""
        if self.is_closed:
            return 0
        room = self.free_slots() - self._kept + _prefetch(self._rate) - self.buffer.in_line
        if not self.gatherer:
            return room
        return room - len(self.gatherer) + (0 if line is None else self.gatherer.space_in(line))

    def thread_room(self) -> int:
        """How many of them may need a thread."""
        return self.free_threads() - self._kept_threads + _prefetch(self._thread_rate) - self.buffer.need_thread

    def free_threads(self) -> int:
        return self._threads - self._in_threads + self.waits.without_thread

    def _has_thread_for_new(self) -> bool:
        return self.free_threads() > self._kept_threads

    def has_slot_for(self, work: Work) -> bool:
        return self._unused_slots() > 0 and (not work.needs_thread or self.free_threads() > 0)

    def free_slots(self) -> int:
        return 0 if self.is_closed else self._unused_slots()

    def _unused_slots(self) -> int:
        return self._slots - len(self.running) - self._abandoned + self.waits.without_slot

    @property
    def has_spare_slot(self) -> bool:
        """Whether a slot is free that nothing here waits for."""
        return self.free_slots() > self.buffer.in_line + len(self.gatherer)

    @property
    def has_spare_thread(self) -> bool:
        """Whether a thread is free that nothing here waits for."""
        return self.free_threads() - self._kept_threads > self.buffer.need_thread

    @property
    def in_hand(self) -> int:
        """How many runs wait here or have a slot: they will soon have a result to settle.

        Who waits for another run does not count: that one must be claimed.
        """
        alone = len(self.running) - self.waits.without_slot + len(self.buffer)
        return alone + self._sharing + self.gatherer.waiting

    @property
    def needs_replacement(self) -> bool:
        """Whether so many handlers would not stop that a fresh process is better than this one."""
        return self._abandoned >= min(MOST_ABANDONED, self._slots)

    # ── keeping one free ────────────────────────────────────────────────────────────────────────────────────

    def keep_a_slot(self) -> None:
        """Let the next slot that becomes free stay so."""
        self._kept = 1

    def release_slot(self) -> None:
        self._kept = 0
        self.fill_slots()

    def keep_a_thread(self) -> None:
        """Let the next thread that becomes free stay so."""
        self._kept_threads = 1

    def release_thread(self) -> None:
        self._kept_threads = 0
        self.fill_slots()

    # ── who comes and goes ──────────────────────────────────────────────────────────────────────────────────

    def fill_slots(self) -> None:
        if self.waits.without_slot:
            self.waits.grant()
        if self.is_closed:
            return
        free = self.buffer.start_some(self._unused_slots() - self._kept)
        if free > 0 or self._kept or self.buffer.in_line * 2 < MAX_PREFETCH:
            self.has_room.set()

    def _add_call(self, call: ChunkCall) -> None:
        """A chunk is to be called."""
        self.share(call, 1)
        self.buffer.add([call])
        self.fill_slots()

    def share(self, work: Work, change: int) -> None:
        """So many more calls like this one are here, or fewer."""
        self._sharing += change * (len(work.runs) - 1)

    def finish_sharing(self, call: ChunkCall) -> None:
        """The runs of a call are over."""
        self._rate.count += len(call.runs) - 1
        self.share(call, -1)

    def begin(self, work: Work) -> None:
        self.running.add(work)
        if work.needs_thread:
            self._in_threads += 1

    def _end(self, work: Work) -> None:
        self.running.discard(work)
        if work.needs_thread:
            self._in_threads -= 1
            self._thread_rate.count += 1

    def abandon(self, work: Work) -> int:
        """It would not stop: its thread is given up, its slot is kept from others. Answers how many did so."""
        self._end(work)
        self.waits.forget(work)
        self._abandoned += 1
        return self._abandoned

    def finish(self, work: Work) -> bool:
        """It is over; answers whether it still counted as running, and was not abandoned before."""
        was_running = work in self.running
        if was_running:
            self._end(work)
        else:
            self._abandoned -= 1
        self._rate.count += 1
        return was_running

    def refill(self, work: Work) -> None:
        """Give what this run had, which has finished, to others."""
        if self.waits.without_slot:
            self.waits.forget(work)
            self.fill_slots()
        elif self.buffer.in_line or self.buffer.aside:
            self.fill_slots()
        else:
            self.has_room.set()


def _prefetch(rate: TurnoverRate) -> int:
    return min(MAX_PREFETCH, int(rate.per_second * PREFETCH_SECONDS))
