"""How many of the runs that a claim takes may need a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.columns import JOB
from mainspring.worker.claim_front import LOOK_SHARE, pause_after

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from mainspring.clock import Clock
    from mainspring.store.connection import Record
    from mainspring.worker.capacity import Capacity
    from mainspring.worker.lines import Lines
    from mainspring.worker.served_jobs import ServedJobs
    from mainspring.worker.turns import Pair

NEVER = float("inf")
LONGEST_PAUSE = 10.0  # seconds until a pair is asked again where there was nothing but runs that need a thread


class ThreadQuota:
    """How many of the runs that a claim takes may need a thread, and in which lines such runs had to be left.

    Where some were left, the rest of the line can still be asked for runs that need none, but not all the time: if
    there was nothing else, the next such claim waits until it costs only a small share of the time. As soon as a thread
    is free the pair is worth asking again. Runs that may not wait inside a worker never get one from those that do, so
    the next thread that becomes free is kept for them.
    """

    def __init__(self, *, jobs: ServedJobs, capacity: Capacity, lines: Lines, clock: Clock) -> None:
        self._jobs = jobs
        self._capacity = capacity
        self._lines = lines
        self._clock = clock
        self._left: dict[Pair, float] = {}  # where some were left, and when to ask for others again
        self._to_be_asked: set[Pair] = set()  # of those, for the threads that are free now
        self._kept: Pair | None = None  # whom the next free thread is kept for

    def of(self, pair: Pair, count: int) -> int | None:
        """How many of `count` runs may need a thread; None if all of them may."""
        if not self._jobs.need_threads:
            return None
        room = self._room(pair)
        return None if room >= count else max(0, room)

    def jobs(self, pair: Pair, quota: int | None) -> Sequence[int]:
        """Whose runs such a quota is for. A thread serves a whole chunk: such runs are left only if none is free."""
        if quota is None:
            return ()
        return self._jobs.in_threads(self._lines.tenant_of(pair[1]), with_chunks=not quota)

    def _room(self, pair: Pair) -> int:
        if not self._lines[pair[1]].is_claimed_singly:
            return self._capacity.thread_room()
        is_kept = pair == self._kept and self._capacity.free_threads() > 0
        return int(is_kept or self._capacity.has_spare_thread)

    def learn(self, pair: Pair, quota: int | None, rows: Sequence[Record], began: float) -> Sequence[Record]:
        """This is what a claim took; answers with those runs before which none was left in line."""
        self._left.pop(pair, None)
        self._to_be_asked.discard(pair)
        if quota != 0:
            self._release(pair)
        if quota is None:
            return rows
        limited = self.jobs(pair, quota)
        in_threads = [row for row in rows if row[JOB] in limited]
        if len(in_threads) < quota:
            return rows
        self._leave(pair, 0.0 if rows else self._pause(self._clock.monotonic() - began))
        return in_threads

    def _pause(self, cost: float) -> float:
        """Until a pair is asked again that gave nothing: all such pairs together take a small share of the time."""
        return max(pause_after(cost), min(LONGEST_PAUSE, cost * len(self._left) / LOOK_SHARE))

    def _leave(self, pair: Pair, pause: float) -> None:
        self._left[pair] = self._clock.monotonic() + pause
        if self._kept is None and self._lines[pair[1]].is_claimed_singly:
            self._kept = pair
            self._capacity.keep_a_thread()

    def failed(self, pair: Pair) -> None:
        """A claim was not answered: the pair waits for a thread as before, and none is kept for it meanwhile."""
        if pair in self._to_be_asked:
            self._to_be_asked.discard(pair)
            self._left[pair] = self._clock.monotonic()
        self._release(pair)

    def _release(self, pair: Pair) -> None:
        if pair == self._kept:
            self._kept = None
            self._capacity.release_thread()

    def has_left(self, pair: Pair) -> bool:
        return pair in self._left

    def may_ask(self, pair: Pair) -> bool:
        return pair not in self._left or self._clock.monotonic() >= self._left[pair]

    def worth_asking(self, urgent: Container[Pair] = ()) -> list[Pair]:
        """Where runs were left for which there is a thread now: no more pairs than threads, the urgent ones first, then
        whoever waits longest.
        """
        if not self._left:
            return []
        most = max(self._capacity.thread_room(), self._capacity.free_threads()) - len(self._to_be_asked)
        ready = [pair for pair in self._left if self._room(pair) > 0]
        found = sorted(ready, key=lambda pair: pair not in urgent)[: max(0, most)]
        for pair in found:
            del self._left[pair]
        self._to_be_asked.update(found)
        return found

    @property
    def next_at(self) -> float:
        """When a pair may be asked that may not be asked now."""
        now = self._clock.monotonic()
        return min((at for at in self._left.values() if at > now), default=NEVER)
