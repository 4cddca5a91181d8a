"""Claimed runs that have not started, most urgent first, and within a priority in the order they came.

A run whose handler needs a thread steps aside while none is free, and others of its priority go before it: they need a
slot only. Those that stepped aside came before all that are still in line, so they are the first to get a thread.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from mainspring.model.run import PRIORITIES
from mainspring.store.columns import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mainspring.store.instants import Micros
    from mainspring.worker.work import Work


class Buffer:
    def __init__(self, *, has_thread: Callable[[], bool], start: Callable[[Work], bool]) -> None:
        self._has_thread = has_thread
        self._start = start
        self._in_line: list[deque[Work]] = [deque() for _ in PRIORITIES]
        self._aside: list[deque[Work]] = [deque() for _ in PRIORITIES]
        self.in_line = 0  # who would take a slot that becomes free
        self.aside = 0  # who would take a thread, and a slot
        self.need_thread = 0  # of both

    def __len__(self) -> int:
        return self.in_line + self.aside

    def __iter__(self) -> Iterator[Work]:
        return chain.from_iterable((*self._in_line, *self._aside))

    def add(self, works: Sequence[Work]) -> None:
        in_line = self._in_line
        self.in_line += len(works)
        for work in works:
            in_line[work.row[PRIORITY]].append(work)
            if work.needs_thread:
                self.need_thread += 1

    def start_some(self, free: int) -> int:
        """Start as many as there are slots free, and threads for those that need one; answers how many slots are left.

        `start` answers whether a run took its slot: one that may not begin any more does not.
        """
        for in_line, aside in zip(self._in_line, self._aside, strict=True):
            while aside and free > 0 and self._has_thread():
                self.aside -= 1
                free -= self._start_in_thread(aside.popleft())
            while in_line and free > 0:
                work = in_line.popleft()
                self.in_line -= 1
                if not work.needs_thread:
                    free -= not work.is_settled and self._start(work)
                elif self._has_thread():
                    free -= self._start_in_thread(work)
                else:
                    aside.append(work)
                    self.aside += 1
        return free

    def _start_in_thread(self, work: Work) -> bool:
        self.need_thread -= 1
        return not work.is_settled and self._start(work)

    def take_out(self, claimed_until: Micros) -> Iterator[Work]:
        """Everything that was claimed by then and has not started."""
        for queue in self._in_line:
            for work in _taken_from(queue, claimed_until):
                self.in_line -= 1
                self.need_thread -= work.needs_thread
                yield work
        for queue in self._aside:
            for work in _taken_from(queue, claimed_until):
                self.aside -= 1
                self.need_thread -= 1
                yield work


def _taken_from(queue: deque[Work], claimed_until: Micros) -> list[Work]:
    found = [work for work in queue if work.claimed_at <= claimed_until]
    for work in found:
        queue.remove(work)
    return found
