"""Puts held runs back in line once a live worker knows their job.

A run is held by a worker that claims it and has no handler for its job. It is released when a worker that serves the
run's line knows the job. Another worker that serves the line may lack the handler still, as in the middle of a deploy,
or for good where two applications share a queue: then the run may be claimed and held again, any number of times, until
the right one claims it. So where not all of them know the job, runs are released only after they were held for a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.keeper.look import Look, LookFor
from mainspring.store import notify, runs, workers

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.model.worker import Server
    from mainspring.store.connection import Connection
    from mainspring.store.runs import HeldGroup

BATCH = 1_000
EVERY = 2.0
SHARED_PAUSE = 5.0  # how long a run stays held at least while some worker that may claim it lacks the handler


class Releaser:
    def __init__(self, *, lanes: int, clock: Clock, look: Look | None = None) -> None:
        self._look = look or Look(lanes=lanes, clock=clock)
        self._quietener = notify.Quietener(clock)

    def forget(self) -> None:
        self._look.forget()

    async def step(self, connection: Connection) -> float:
        lanes = await self._look.lanes(connection, LookFor.HELD)
        if not lanes:
            return EVERY
        servers = await workers.servers(connection)
        released = [await self._release(connection, lane, servers) for lane in lanes]
        return 0.0 if max(released) >= BATCH else EVERY

    async def _release(self, connection: Connection, lane: int, servers: list[Server]) -> int:
        """One batch of one lane, and no more: who serves a line may change meanwhile."""
        pauses = pauses_of(await runs.held_groups(connection, lane), servers)
        groups = await runs.release(connection, lane, pauses, BATCH) if pauses else []
        wake_ups = [notify.ready(lane, group["line_id"], group["priority"]) for group in groups]
        notify.send(connection, self._quietener.pass_on(wake_ups))
        return sum(group["runs"] for group in groups)


def pauses_of(groups: list[HeldGroup], servers: list[Server]) -> dict[tuple[int, int], float]:
    """How many seconds runs stay held at least, by job and line; those that no worker would execute are left out."""
    pauses = {}
    for group in groups:
        knowing = [
            group.job in server.handlers for server in servers if group.line.is_served_by(server.queues, server.labels)
        ]
        if any(knowing):
            pauses[group.job_id, group.line_id] = 0.0 if all(knowing) else SHARED_PAUSE
    return pauses
