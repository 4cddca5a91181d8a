"""The order at gates: turns, as `turn_of` in the schema makes them, and who passes before his, so that nobody starves.

Where order is strict, a turn is the microsecond of acceptance. Elsewhere it is the priority, and below it the
microsecond of coming there. 0 is for those who have kept their slot.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mainspring.model.run import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mainspring.model.concurrency import Turn

BITS_OF_RANK = 56
KEPT, NEXT = 0, 1
LAST = 2**63 - 1
OLDEST_FIRST_EVERY = 16  # of those who pass a gate, one in so many has waited longest, so that nothing starves


class TurnRange(NamedTuple):
    """So many of the turns from one to another, at a gate."""

    gate: str
    start: int
    before: int
    most: int


def whole(gate: str, count: int) -> TurnRange:
    return TurnRange(gate, 0, LAST, count)


def of_each_priority(gate: str, count: int) -> list[TurnRange]:
    return [
        TurnRange(gate, priority << BITS_OF_RANK, (priority + 1) << BITS_OF_RANK, count)
        for priority in sorted(PRIORITIES)
    ]


def oldest_first(wanted: int, chance: float) -> int:
    """How many of so many pass because they have waited longest, whatever their priority; chance settles the rest."""
    return int(wanted / OLDEST_FIRST_EVERY + chance)


def with_oldest_first(waiting: Iterable[Turn], counts: Mapping[str, int]) -> list[Turn]:
    """Those who wait, each once; at some gates so many of those who wait longest come next."""
    turns = {each.run_id: each for each in waiting}
    at: defaultdict[str, list[Turn]] = defaultdict(list)
    for each in turns.values():
        if each.gate in counts and each.turn != KEPT:
            at[each.gate].append(each)
    for gate, some in at.items():
        for each in sorted(some, key=_rank)[: counts[gate]]:
            turns[each.run_id] = each._replace(turn=NEXT)
    return list(turns.values())


def _rank(each: Turn) -> int:
    return each.turn & ((1 << BITS_OF_RANK) - 1)
