"""Where the line at a gate begins, as somebody who releases there remembers it.

While somebody's long transaction keeps the server from forgetting rows, those who have passed a gate still stand at the
front of its index, and each look would walk over all of them. Where a look was slow, the next ones begin where it found
the first of each priority. Some may come before that, who were put off or committed late: the very front is looked at
again now and then, for a small share of the time. Where order is strict, it always is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.gate_turns import BITS_OF_RANK, KEPT, TurnRange, of_each_priority, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mainspring.clock import Clock
    from mainspring.model.concurrency import Turn

SLOW_SECONDS, SLOW_SECONDS_PER_GATE = 0.005, 0.0001  # beyond that, a look has walked over many who are gone
LOOK_SHARE = 0.05  # looks at the very front may cost this much of the time …
LOOK_AT_MOST_EVERY, LOOK_AT_LEAST_EVERY = 0.02, 2.0  # … and are so far apart, in seconds
MOST_REMEMBERED = 1_000

Place = tuple[int, str]  # lane, gate


class GateFront:
    """Of one gate in one lane: the first turn of each priority, and when the very front is to be looked at."""

    __slots__ = ("look_at", "starts")

    def __init__(self, gate: str) -> None:
        self.starts = [span.start for span in of_each_priority(gate, 0)]
        self.look_at = 0.0

    def spans(self, gate: str, most: int) -> list[TurnRange]:
        each = of_each_priority(gate, most)
        begun = [span._replace(start=max(KEPT + 1, start)) for span, start in zip(each, self.starts, strict=True)]
        return [TurnRange(gate, KEPT, KEPT + 1, most), *begun]  # who kept his slot may come back at any time


class GateFronts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fronts: dict[Place, GateFront] = {}
        self._in_part: dict[str, float] = {}  # gates that the last looks saw in part, and when all is looked at

    def now(self) -> float:
        return self._clock.monotonic()

    def spans(self, lane: int, gate: str, most: int, oldest: int) -> list[TurnRange]:
        """Where to look for so many at a gate whose order is not strict, and for the oldest of all priorities."""
        front = self._fronts.get((lane, gate))
        if front is not None and self.now() < front.look_at:
            self._in_part[gate] = front.look_at
            return front.spans(gate, most)
        return [whole(gate, most), *(of_each_priority(gate, oldest) if oldest else ())]

    def learn(self, lane: int, spans: Iterable[TurnRange], found: Sequence[Turn], seconds: float) -> None:
        """A look at these took so long, and found those."""
        fully = {span.gate for span in spans if span == whole(span.gate, span.most)}
        is_slow = seconds > SLOW_SECONDS + SLOW_SECONDS_PER_GATE * len(fully)
        for gate in fully:
            front = self._fronts.pop((lane, gate), None) or GateFront(gate)
            if is_slow:
                front.look_at = self.now() + _pause_after(seconds)
                self._fronts[lane, gate] = front
        self._advance(lane, found)
        while len(self._fronts) > MOST_REMEMBERED:
            del self._fronts[next(iter(self._fronts))]

    def _advance(self, lane: int, found: Sequence[Turn]) -> None:
        for each in sorted(found, reverse=True):  # the first of each priority has the last word
            front = self._fronts.get((lane, each.gate))
            if front is not None and each.turn != KEPT:
                front.starts[each.turn >> BITS_OF_RANK] = each.turn

    def look_again(self, found: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, float]:
        """In how many seconds to look where fewer were found than may pass: somebody may stand before the front."""
        in_part, self._in_part = self._in_part, {}
        return {
            gate: max(LOOK_AT_MOST_EVERY, at - self.now())
            for gate, at in in_part.items()
            if found.get(gate, 0) < wanted.get(gate, 0)
        }


def _pause_after(seconds: float) -> float:
    return min(LOOK_AT_LEAST_EVERY, max(LOOK_AT_MOST_EVERY, seconds / LOOK_SHARE))
