"""How far ahead of their instants runs are staged: so far that the herd which the cursors announce is ready in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import schedule_firing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mainspring.store.connection import Connection

CALM = 2.0  # so far ahead in any case
HURRIED = 1.0  # what is due so soon is staged without a rest
MARKS = (4.0, 8.0, 15.0, 30.0, 60.0)  # and up to one of these for a herd
FIRST_RATE = 2_000.0  # occurrences a second, until this scheduler has seen how many it fires
LEAST_RATE = 100.0
LEAST_COUNTED = 100  # a handful takes as long as a few hundred do, and says nothing about a herd
SLACK = 6.0  # a herd is given so many times the time it should take: it is staged slowly, beside other work
MOST_COUNTED = 100_000  # per lane: more than anybody fires in a minute


class Horizon:
    """Seconds ahead of their instants at which a scheduler stages runs."""

    def __init__(self, rate: float = FIRST_RATE) -> None:
        self._rate = rate
        self._next = 0

    def fired(self, count: int, seconds: float) -> None:
        """So many occurrences were fired in so much time: the rate follows slowly."""
        if count >= LEAST_COUNTED and seconds > 0:
            self._rate = max(LEAST_RATE, 0.9 * self._rate + 0.1 * count / seconds)

    async def seconds(self, connection: Connection, lanes: Sequence[int]) -> float:
        """For these lanes. One of them is counted, in turn: names spread schedules evenly over the lanes."""
        if not lanes:
            return CALM
        self._next = (self._next + 1) % len(lanes)
        announced = await schedule_firing.announced(connection, lanes[self._next], MARKS, MOST_COUNTED)
        return self.reaching({mark: count * len(lanes) for mark, count in announced.items()})

    def reaching(self, announced: Mapping[float, int]) -> float:
        """As far as the furthest mark whose occurrences would not all be fired in time if nothing began before."""
        urgent = (mark for mark, count in announced.items() if mark - SLACK * count / self._rate <= CALM)
        return max(urgent, default=CALM)


def rest_after_batch(took: float, *, due_in: float) -> float:
    """Seconds until the next one. What is due later is staged at half the speed: workers need the processors, too."""
    return 0.0 if due_in <= HURRIED else took
