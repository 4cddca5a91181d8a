"""Stops runs that must not overlap before somebody else may start them: when heartbeats do not reach the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.line import Delivery

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.worker.executor import Executor
    from mainspring.worker.work import Work

DISCONNECT_MARGIN = 0.2  # of the lease time: when to stop what must not overlap


class OverlapGuard:
    """Beginning with a worker's registration, which counts as a heartbeat."""

    def __init__(self, *, clock: Clock, lease_time: float, executor: Executor) -> None:
        self._clock = clock
        self._lease_time = lease_time
        self._executor = executor
        self._last_heartbeat = clock.monotonic()

    def heartbeat_arrived(self) -> None:
        """A heartbeat of this worker reached the database."""
        self._last_heartbeat = self._clock.monotonic()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(min(0.5, self._lease_time / 10))
            self.look()

    def look(self) -> None:
        if self._clock.monotonic() - self._last_heartbeat > self._lease_time * (1 - DISCONNECT_MARGIN):
            self._executor.interrupt(filter(_must_not_overlap, self._executor.running_works), grace=0.0)


def _must_not_overlap(work: Work) -> bool:
    if work.delivery is Delivery.AT_MOST_ONCE:
        return True
    return work.handler is not None and work.handler.definition.on_disconnect == "stop"
