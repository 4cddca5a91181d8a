"""Looks at every gate at which runs wait, so that none of them depends on a hint that got lost; and recounts slots.

A hint gets lost with the process that would have followed it, and nobody hints when a limit is raised or removed,
when a run that was put off becomes due, or when somebody else's transaction commits late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from mainspring.store import limits, notify
from mainspring.store.admission import MOST_GATES, admit

if TYPE_CHECKING:
    from mainspring.clock import Clock
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

    def forget(self) -> None:
        self._after.clear()

    async def step(self, connection: Connection) -> float:
        began = self._clock.monotonic()
        if began >= self._recount_at:
            await self._recount(connection)
        released = 0
        for lane in await limits.lanes_with_gates(connection, self._lanes):
            released += await self._look_at(connection, lane)
        if released:
            return 0.0
        return max(EVERY, (self._clock.monotonic() - began) / SHARE)

    async def _look_at(self, connection: Connection, lane: int) -> int:
        gates = await limits.waiting_gates(connection, lane, self._after.get(lane, ""), MOST_GATES)
        self._after[lane] = gates[-1] if len(gates) == MOST_GATES else ""
        admitted = await admit(connection, gates, self._lanes)
        notify.send(connection, self._quietener.pass_on(admitted.wake_ups))
        return admitted.runs

    async def _recount(self, connection: Connection) -> None:
        self._recount_at = self._clock.monotonic() + RECOUNT_EVERY
        for lane in connection.reach.lanes(range(self._lanes)):
            for run_id, gate in await limits.free_leaked(connection, lane):
                log.error("a slot was held by no run and was given back", run_id=str(run_id), gate=gate, lane=lane)
