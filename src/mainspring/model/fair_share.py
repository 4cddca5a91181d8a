"""Fair share: the values of a key take turns at one limit, so that nobody's backlog delays others beyond its share.

Whose turn it is follows from how much each has at the moment, and from chance between those that have the same: so
nothing has to be remembered about who was served last, and nobody can be passed over for long.

A limit that names nothing but a share is about the workers: no more of its runs are in line than workers take in a
moment, since what is in line has had its turn. How many that are is learned from how fast the line empties.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mainspring.model.concurrency import Turn

LEAST_IN_LINE, MOST_IN_LINE = 32, 4_000
IN_LINE_SECONDS = 0.03  # what is in line should last for so long, at least


class Window(NamedTuple):
    """How many runs to keep in line, how many there were after the last release, and when that was."""

    size: float
    filled: int
    at: float  # seconds since 1970, by the database's clock

    def next_size(self, depth: int, now: float) -> float:
        """Twice what is taken between two looks: then the line neither runs dry nor becomes long."""
        elapsed = now - self.at
        if elapsed <= 0:
            return self.size
        if depth <= 0:
            wanted = max(self.size, 2.0 * self.filled)  # nobody knows how much more would have been taken
        else:
            wanted = 2 * max(0, self.filled - depth) * max(1.0, IN_LINE_SECONDS / elapsed)
        return min(float(MOST_IN_LINE), max(float(LEAST_IN_LINE), (self.size + wanted) / 2 if depth else wanted))


NO_WINDOW = Window(LEAST_IN_LINE, 0, 0.0)


def in_turns(waiting: Iterable[Turn], used: Mapping[str, int], most: int) -> list[Turn]:
    """Those who pass, up to so many: whoever has least comes first, each gate by its own order."""
    at: defaultdict[str, list[Turn]] = defaultdict(list)
    for each in sorted(waiting):
        at[each.gate].append(each)
    chances = {gate: random.random() for gate in at}
    ranked = [
        (used.get(gate, 0) + place, chances[gate], each) for gate, some in at.items() for place, each in enumerate(some)
    ]
    return [each for _, _, each in sorted(ranked)[:most]]
