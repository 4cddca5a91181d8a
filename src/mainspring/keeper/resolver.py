"""Looks after runs that wait for others to end, so that none of them depends on a hint that got lost.

Nobody hints when a run that others wait for is cancelled, expires, or is lost with its worker; and whoever was told to
wait for a run that was submitted before may have been told too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.keeper.lane_turns import LaneTurns
from mainspring.keeper.look import Look, LookFor
from mainspring.store import notify, resolving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection

EVERY = 0.5


class Resolver:
    def __init__(
        self, *, lanes: int, clock: Clock, heard_of_gates: Callable[[Iterable[str]], None], look: Look | None = None
    ) -> None:
        self._look = look or Look(lanes=lanes, clock=clock)
        self._heard_of_gates = heard_of_gates
        self._quietener = notify.Quietener(clock)
        self._turns = LaneTurns()

    def forget(self) -> None:
        self._look.forget()

    async def step(self, connection: Connection) -> float:
        lanes = await self._look.lanes(connection, LookFor.DEPENDENCIES)
        released = [await self._resolve(connection, lane) for lane in self._turns.of(lanes)]
        return 0.0 if any(released) else self._look.pause(EVERY)

    async def _resolve(self, connection: Connection, lane: int) -> int:
        resolved = await resolving.resolve(connection, lane, self._quietener.pass_on)
        self._heard_of_gates(resolved.gates)
        return resolved.runs
