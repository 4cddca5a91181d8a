"""Puts runs in line anew whose rank lies ahead because the database's clock was set back since.

A claim takes ranks up to the present, so that what is staged waits for its instant. A run that was in line before the
clock was set back by an hour would wait for an hour. What is staged keeps its rank: its instant has not come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import health, jobs, notify, runs

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.connection import Connection

BATCH = 1_000  # ranked a microsecond apart, like all that becomes ready together
EVERY = 2.0  # seconds between looks at the clock …
LOOK_EVERY = 10.0  # … and at the lines, where it was not set back
# Usually nobody looks at ranks that may be those of a herd that is staged: they would be read again and again. Who sees
# that the clock was set back looks at all that is ahead, once; what is missed then waits for no longer than this.
AHEAD_SECONDS = 65.0
STEP_MICROS = 500_000


class Reranker:
    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self._lanes = lanes
        self._clock = clock
        self._look_at = 0.0
        self._offset: float | None = None  # microseconds by which the database's clock is ahead of our monotonic one

    def forget(self) -> None:
        """Whether it was set back meanwhile is unknown."""
        self._offset = None

    async def step(self, connection: Connection) -> float:
        ahead = 0.0 if await self._was_set_back(connection) else AHEAD_SECONDS
        if ahead and self._clock.monotonic() < self._look_at:
            return EVERY
        self._look_at = self._clock.monotonic() + LOOK_EVERY
        most = 0
        pairs = await self._pairs(connection)
        for lane, line in await runs.lines_to_rerank(connection, pairs, ahead) if pairs else ():
            priorities = await runs.rerank(connection, lane, line, ahead, BATCH)
            notify.send(connection, [notify.ready(lane, line, priority) for priority in set(priorities)])
            most = max(most, len(priorities))
        if most < BATCH:
            return EVERY
        self.forget()  # there is more
        return 0.0

    async def _pairs(self, connection: Connection) -> list[tuple[int, int]]:
        """Lanes and lines to look at: those with something in line, where that can be told."""
        found = await runs.lines_in_use(connection)
        if found is not None:
            return found
        lines = await jobs.all_lines(connection)
        return [(lane, line.number) for lane in connection.reach.lanes(range(self._lanes)) for line in lines]

    async def _was_set_back(self, connection: Connection) -> bool:
        """Since the last look; or perhaps, if there was none."""
        offset = await health.database_micros(connection) - self._clock.monotonic() * 1_000_000
        before, self._offset = self._offset, offset
        return before is None or offset < before - STEP_MICROS
