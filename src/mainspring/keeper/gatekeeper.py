"""Looks at every gate at which runs wait, so that none of them depends on a hint that got lost; and recounts slots.

A hint gets lost with the process that would have followed it, and nobody hints when a limit is raised or removed,
when a run that was put off becomes due, or when somebody else's transaction commits late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from mainspring.keeper.lane_turns import LaneTurns
from mainspring.model.concurrency import to_look_at
from mainspring.model.rate import TICK_SECONDS
from mainspring.store import limits, notify, openings
from mainspring.store.admission import MOST_GATES, admit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mainspring.clock import Clock
    from mainspring.store.admitted import Admitted
    from mainspring.store.connection import Connection

log = structlog.get_logger()

EVERY = 0.5
SHARE = 0.05  # of the time, at most, where very many gates are closed
RECOUNT_EVERY = 30.0


class Gatekeeper:
    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self._lanes = lanes
        self._clock = clock
        self._after: dict[int, str] = {}  # up to where the gates of each lane were looked at
        self._recount_at = clock.monotonic() + RECOUNT_EVERY
        self._quietener = notify.Quietener(clock)
        self._turns = LaneTurns()
        self._hinted: set[str] = set()
        self.tokens_in: float | None = None  # in so many seconds somebody may pass who waits for no more than that

    def forget(self) -> None:
        self._after.clear()

    async def step(self, connection: Connection) -> float:
        began = self._clock.monotonic()
        if began >= self._recount_at:
            await self._recount(connection)
        looks = [await self._look_at_hinted(connection)] if self._hinted else []
        lanes = await limits.lanes_with_gates(connection, self._lanes)
        seen: set[str] = set()  # who shares a limit waits in many lanes, and is looked at once
        looks += [await self._look_at(connection, lane, seen) for lane in self._turns.of(lanes)]
        self.tokens_in = min((seconds for admitted in looks for seconds in admitted.later.values()), default=None)
        if any(admitted.gates for admitted in looks):
            return 0.0
        wanted = EVERY if self.tokens_in is None else min(EVERY, max(TICK_SECONDS, self.tokens_in))
        return max(wanted, (self._clock.monotonic() - began) / SHARE)

    def hint(self, gates: Iterable[str]) -> None:
        """It may be somebody's turn at these: look there first."""
        self._hinted.update(gates)

    async def _look_at_hinted(self, connection: Connection) -> Admitted:
        gates, self._hinted = self._hinted, set()
        return await self._admit(connection, gates)

    async def _look_at(self, connection: Connection, lane: int, seen: set[str]) -> Admitted:
        gates = await limits.waiting_gates(connection, lane, self._after.get(lane, ""), MOST_GATES)
        self._after[lane] = gates[-1] if len(gates) == MOST_GATES else ""
        wanted = {to_look_at(gate) for gate in gates} - seen
        seen.update(wanted)
        return await self._admit(connection, wanted)

    async def _admit(self, connection: Connection, gates: Collection[str]) -> Admitted:
        admitted = await admit(connection, gates, self._lanes)
        self._hinted |= admitted.gates
        notify.send(connection, self._quietener.pass_on(admitted.wake_ups))
        return admitted

    async def _recount(self, connection: Connection) -> None:
        self._recount_at = self._clock.monotonic() + RECOUNT_EVERY
        for lane in connection.reach.lanes(range(self._lanes)):
            await limits.forget_full_buckets(connection, lane)
            await limits.forget_windows(connection, lane)
            await openings.forget(connection, lane)
            for run_id, gate in await limits.free_leaked(connection, lane):
                log.error("a slot was held by no run and was given back", run_id=str(run_id), gate=gate, lane=lane)
            for row in await limits.forget_ended(connection, lane):
                log.error("a run of a schedule had ended, and nobody had said so", run_id=str(row["run_id"]), lane=lane)
