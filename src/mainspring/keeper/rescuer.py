"""Finds workers whose heartbeats have stopped and puts their runs back in line.

Heartbeats are counters. The rescuer judges by its own monotonic clock: a worker is lost when the same count was read
again and again for as long as its lease time, without a failed read or a long pause in between. So an outage, a
restart or a stepped clock of the database, or a pause of the rescuer itself, makes nobody look dead. Nor does a lock
on the table of workers: each look takes the lock that a heartbeat takes, and one that cannot have it counts as failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from mainspring.errors import NodeUnreachable
from mainspring.store import workers
from mainspring.store.run_log import RunLog

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.workers import Pulse

log = structlog.get_logger()

READS_PER_LEASE = 4
LEAST_READS = 4
MOST_LOST_AT_ONCE, MOST_LOST_SHARE = (
    3,
    0.1,
)  # a rate cap: many at once are more likely our mistake than theirs
NOBODY_ALIVE_PAUSE = 5.0


@dataclass(slots=True)
class Observation:
    """The same heartbeat, seen since when and how often."""

    beat: int
    since: float
    last: float
    reads: int = 1


class Rescuer:
    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self._lanes = lanes
        self._clock = clock
        self._lines = RunLog(clock)
        self._observed: dict[UUID, Observation] = {}
        self._last_losses: list[float] = []

    def forget(self) -> None:
        self._observed.clear()

    async def step(self, connection: Connection) -> float:
        pulses = await self._pulses(connection)
        suspects = self.suspects(pulses)
        for pulse in suspects[: self._allowance(pulses)]:
            await self._lose(connection, pulse)
        await self.sweep(connection)
        self._lines.sum_up()
        return min([NOBODY_ALIVE_PAUSE, *(pulse.lease_seconds / READS_PER_LEASE for pulse in pulses)])

    async def _pulses(self, connection: Connection) -> list[Pulse]:
        """All heartbeats there are. Where a node is down that has some, nobody is judged, and nobody could be declared
        lost: that is written to all nodes. The runs of workers that ended before are rescued all the same.
        """
        try:
            await workers.check_writable(connection)
            pulses = await workers.pulses(connection)
        except NodeUnreachable:
            await self.sweep(connection)
            raise
        if not all(pulse.beats_in_lane for pulse in pulses):
            await workers.check_writable_before(connection)
        return pulses

    def suspects(self, pulses: list[Pulse]) -> list[Pulse]:
        """Note what was read just now; answers with those that have been silent for their lease time."""
        now = self._clock.monotonic()
        seen = {pulse.worker_id for pulse in pulses}
        self._observed = {worker: each for worker, each in self._observed.items() if worker in seen}
        return [pulse for pulse in pulses if self._is_silent(pulse, now)]

    def _is_silent(self, pulse: Pulse, now: float) -> bool:
        known = self._observed.get(pulse.worker_id)
        blind = known is not None and now - known.last > pulse.lease_seconds / 2  # we were the ones who slept
        if known is None or known.beat != pulse.beat or blind:
            self._observed[pulse.worker_id] = Observation(pulse.beat, now, now)
            return False
        if now - known.last < pulse.lease_seconds / (2 * READS_PER_LEASE):
            return False  # too soon after the last read to count as another one
        known.last = now
        known.reads += 1
        return known.reads >= LEAST_READS and now - known.since >= pulse.lease_seconds

    def _allowance(self, pulses: list[Pulse]) -> int:
        now = self._clock.monotonic()
        longest = max((pulse.lease_seconds for pulse in pulses), default=0.0)
        self._last_losses = [at for at in self._last_losses if now - at < longest]
        cap = max(MOST_LOST_AT_ONCE, int(len(pulses) * MOST_LOST_SHARE))
        return max(0, cap - len(self._last_losses))

    async def _lose(self, connection: Connection, pulse: Pulse) -> None:
        del self._observed[pulse.worker_id]
        if await workers.lose_if_silent(connection, pulse.worker_id, pulse.beat):
            self._last_losses.append(self._clock.monotonic())
            log.warning("a worker's heartbeats stopped; it is lost", worker=str(pulse.worker_id))

    async def sweep(self, connection: Connection) -> None:
        """Rescue from every worker that ended: a claim of theirs may still have appeared since the last time."""
        for worker_id in await workers.ended_with_leases(connection, self._lanes):
            total = await workers.rescue_all(connection, self._lanes, worker_id, self._lines.note_bad_end)
            log.warning("runs of a lost worker were rescued", worker=str(worker_id), **total._asdict())
