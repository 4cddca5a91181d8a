"""Whose turn it is to be asked for runs: pairs of lane and line, one after the other.

Queues with weights get runs in proportion to them. Each has a pass that grows by what it was given, divided by its
weight, and the smallest pass is next: a queue that has something is never passed over for long, and one that comes
back after a rest begins where the others are, with nothing saved up. Without weights all queues share one turn.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Pair = tuple[int, int]  # lane, line

ALL = ""  # the one group there is without weights; no queue has this name


class Turns:
    """Pairs worth asking, in turn."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = dict(weights) or {ALL: 1}
        self._waiting: dict[str, deque[Pair]] = {group: deque() for group in self._weights}
        self._passes = dict.fromkeys(self._weights, 0.0)
        self._now = 0.0  # the pass of whoever had the last turn

    def group_of(self, queue: str) -> str:
        return queue if queue in self._weights else ALL

    def add(self, pair: Pair, queue: str, *, first: bool = False) -> None:
        """This pair is worth asking: after the others of its queue, or before them."""
        group = self.group_of(queue)
        waiting = self._waiting[group]
        if pair in waiting:
            return
        if not waiting:
            self._passes[group] = max(self._passes[group], self._now)
        if first:
            waiting.appendleft(pair)
        else:
            waiting.append(pair)

    def take(self, may_ask: Callable[[Pair], bool]) -> Pair | None:
        """The pair whose turn it is, among those that may be asked now; it does not wait any longer."""
        for group in sorted(self._waiting, key=self._passes.__getitem__):
            waiting = self._waiting[group]
            pair = next(filter(may_ask, waiting), None)
            if pair is not None:
                waiting.remove(pair)
                self._now = self._passes[group]
                return pair
        return None

    def charge(self, queue: str, runs: int) -> None:
        """A queue had a turn and got so many runs; even an empty turn counts."""
        group = self.group_of(queue)
        self._passes[group] += max(1, runs) / self._weights[group]

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(self._waiting.values())

    def __bool__(self) -> bool:
        return any(self._waiting.values())
