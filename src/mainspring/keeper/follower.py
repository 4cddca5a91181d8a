"""Looks after jobs that follow others, so that no run that is to follow depends on a hint that got lost.

Nobody hints when a run is cancelled, expires, or is lost with its worker; and who would have hinted may be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.keeper.lane_turns import LaneTurns
from mainspring.keeper.look import Look, LookFor
from mainspring.store import notify, triggering

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.connection import Connection

EVERY = 0.5


class Follower:
    def __init__(self, *, lanes: int, clock: Clock, look: Look | None = None) -> None:
        self._lanes = lanes
        self._look = look or Look(lanes=lanes, clock=clock)
        self._quietener = notify.Quietener(clock)
        self._turns = LaneTurns()

    def forget(self) -> None:
        self._look.forget()

    async def step(self, connection: Connection) -> float:
        lanes = await self._look.lanes(connection, LookFor.FOLLOWERS)
        for lane in self._turns.of(lanes):
            triggered = await triggering.trigger(connection, lane, self._lanes)
            notify.send(connection, self._quietener.pass_on(triggered.wake_ups))
        return 0.0 if lanes else self._look.pause(EVERY)
