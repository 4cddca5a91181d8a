"""Lines: a queue, the labels its runs require of a worker, and how they are delivered.

To the database a line is a queue and a set of words that a worker must have. A mode of delivery is such a word too:
a worker that does not know the mode, because its program is older, lacks the word and leaves those runs alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_DELIVERY = "delivery="  # no label contains `=`


class Delivery(StrEnum):
    """What may happen to a run whose worker is lost."""

    AT_LEAST_ONCE = "at_least_once"  # it starts again
    AT_MOST_ONCE = "at_most_once"  # it ends as lost
    TRANSACTIONAL = "transactional"  # it starts again, unless its handler's own transaction has finished it


class Line(NamedTuple):
    """Where runs wait that the same workers may claim in the same way."""

    queue: str
    labels: tuple[str, ...] = ()
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    @classmethod
    def of(cls, queue: str, requirements: Iterable[str]) -> Line:
        """A line as it is stored. A mode of delivery that we do not know stays among what is required."""
        words = set(requirements)
        known = next((mode for mode in Delivery if _word(mode) in words), Delivery.AT_LEAST_ONCE)
        return cls(queue, tuple(sorted(words - {_word(known)})), known)

    @property
    def requirements(self) -> list[str]:
        """What a worker must have, in the order in which it is stored."""
        words = {*self.labels} if self.delivery is Delivery.AT_LEAST_ONCE else {*self.labels, _word(self.delivery)}
        return sorted(words)

    def is_served_by(self, queues: Collection[str], labels: frozenset[str]) -> bool:
        """Whether a worker with these queues and labels claims its runs."""
        return self.queue in queues and labels.issuperset(self.labels)

    @property
    def is_claimed_singly(self) -> bool:
        """Whether its runs get a lease of their own, claimed only into a free slot: nothing waits inside a worker."""
        return self.delivery is not Delivery.AT_LEAST_ONCE


def _word(delivery: Delivery) -> str:
    return _DELIVERY + delivery.value
