"""Where claims of one pair of lane and line begin, and how often a look at its very front is worth its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.run import LEAST_URGENT, PRIORITIES
from mainspring.store.columns import PRIORITY, RANK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Record

OLDEST_FIRST_EVERY = 16  # one claim in so many starts with whoever waits longest, so that nothing starves
LOOK_SHARE = 0.05  # looks at the very front may cost this much of the time …
LOOK_AT_MOST_EVERY, LOOK_AT_LEAST_EVERY = 0.02, 2.0  # … and are so far apart, in seconds


class ClaimFront:
    """What is remembered about one (lane, line): where each priority begins, and what looking costs."""

    __slots__ = ("claims", "extra_cost", "last_priority", "looked_at", "ranks", "usual_cost")

    def __init__(self, claims: int = 0) -> None:
        self.ranks = [0] * len(PRIORITIES)
        self.last_priority = LEAST_URGENT  # of the least urgent run that the last turn fetched
        self.looked_at = float("-inf")
        self.usual_cost = 0.0  # of a claim that starts where the last one ended
        self.extra_cost = 0.0  # of starting at the very front instead
        self.claims = claims

    def is_look_due(self, now: float) -> bool:
        return now - self.looked_at >= pause_after(self.extra_cost)

    def order(self) -> Sequence[int]:
        """The priorities in the order to serve them; now and then, whoever waits longest comes first."""
        self.claims += 1
        if self.claims % OLDEST_FIRST_EVERY:
            return PRIORITIES
        return sorted(PRIORITIES, key=self.ranks.__getitem__)

    def advance(self, rows: Sequence[Record]) -> None:
        ranks = self.ranks
        for row in rows:
            if row[RANK] > ranks[row[PRIORITY]]:
                ranks[row[PRIORITY]] = row[RANK]

    def learn(self, rows: Sequence[Record], *, from_the_front: bool, began: float, now: float) -> None:
        self.advance(rows)
        self.last_priority = max((row[PRIORITY] for row in rows), default=LEAST_URGENT)
        cost = now - began
        if from_the_front:
            self.looked_at = now
            self.extra_cost = max(0.0, cost - self.usual_cost)
        else:
            self.usual_cost = (self.usual_cost + cost) / 2 if self.usual_cost else cost


def pause_between_looks(cost: float) -> float:
    """How long to wait after a look at all lines that cost so much: claims have at least as much of the time."""
    return max(cost, pause_after(cost))


def pause_after(cost: float) -> float:
    """How long to wait after a look at the front that cost so much: it may take only a small share of the time."""
    return min(LOOK_AT_LEAST_EVERY, max(LOOK_AT_MOST_EVERY, cost / LOOK_SHARE))
