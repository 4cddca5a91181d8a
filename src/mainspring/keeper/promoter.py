"""Moves runs whose time has come from `later` into the line, the most urgent first.

Sleeps until the next one is due. Like the claimer, it remembers where each (lane, priority) begins, and looks at
the very front only as often as that is cheap: dead entries pile up there under somebody's long transaction.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mainspring.model.run import PRIORITIES
from mainspring.store import notify, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection, Record

BATCH = 1_000
LOOK_EVERY = 1.0  # seconds; sooner when something is due sooner, or when woken
LOOK_SHARE = 0.05
FRONT_AT_LEAST_EVERY = 2.0

LanePriority = tuple[int, int]  # lane, priority


def tell_nobody(gates: Iterable[str]) -> None:
    """Whoever looks at gates does so without being told."""


class Promoter:
    def __init__(
        self, *, lanes: int, clock: Clock, heard_of_gates: Callable[[Iterable[str]], None] = tell_nobody
    ) -> None:
        self._lanes = lanes
        self._clock = clock
        self._heard_of_gates = heard_of_gates
        self._places = [(lane, priority) for lane in range(lanes) for priority in PRIORITIES]
        self._fronts: dict[LanePriority, datetime] = dict.fromkeys(self._places, runs.LONG_AGO)
        self._front_due = 0.0
        self._quietener = notify.Quietener(clock)
        self._promoted: Counter[int] = Counter()  # runs of each line, since somebody asked

    def forget(self) -> None:
        self._fronts = dict.fromkeys(self._places, runs.LONG_AGO)

    def take_promoted(self) -> dict[int, int]:
        """How many runs of each line were promoted since this was asked last."""
        promoted, self._promoted = self._promoted, Counter()
        return dict(promoted)

    async def step(self, connection: Connection) -> float:
        next_due = await self._look(connection)
        due_lanes = sorted({row["lane"] for row in next_due if row["seconds"] <= 0})
        for lane in due_lanes:
            await self._promote(connection, lane)
        if due_lanes:
            return 0.0  # more may be due by now
        return max(0.0, min([LOOK_EVERY, *(float(row["seconds"]) for row in next_due)]))

    async def _look(self, connection: Connection) -> list[Record]:
        began = self._clock.monotonic()
        from_the_front = began >= self._front_due
        if from_the_front:
            self._fronts = dict.fromkeys(self._places, runs.LONG_AGO)
        lanes = set(connection.reach.lanes(range(self._lanes)))
        places = [(lane, priority) for lane, priority in self._places if lane in lanes]
        rows = await runs.next_due(
            connection,
            [lane for lane, _ in places],
            [priority for _, priority in places],
            [self._fronts[place] for place in places],
        )
        if from_the_front:
            cost = self._clock.monotonic() - began
            self._front_due = began + min(FRONT_AT_LEAST_EVERY, cost / LOOK_SHARE)
        for row in rows:
            self._fronts[row["lane"], row["priority"]] = row["due_at"]
        return rows

    async def _promote(self, connection: Connection, lane: int) -> None:
        """Promote what is due in one lane, batch by batch: the next lane's turn comes after BATCH runs."""
        fronts = [self._fronts[lane, priority] for priority in PRIORITIES]
        groups = await runs.promote(connection, lane, fronts, BATCH)
        for group in groups:
            place = (lane, group["priority"])
            self._fronts[place] = max(self._fronts[place], group["due_at"])
            self._promoted[group["line_id"]] += group["runs"]
        gates = [gate for group in groups for gate in group["gates"] or ()]
        if gates:
            self._heard_of_gates(gates)  # some wait there now
        in_line = [group for group in groups if group["gates"] is None]
        wake_ups = [notify.ready(lane, group["line_id"], group["priority"]) for group in in_line]
        notify.send(connection, self._quietener.pass_on(wake_ups))
