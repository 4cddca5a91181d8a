"""A scheduler and its parts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from mainspring.scheduler.firing import LaneFirer
from mainspring.scheduler.scheduler import (
    FiringLoop,
    LaneAssignment,
    PausingLoop,
    RecomputingLoop,
    Scheduler,
    SchedulerIdentity,
)
from mainspring.scheduler.templates import Templates
from mainspring.store.link import Link
from mainspring.store.submissions import new_uuid
from mainspring.wiring.store import open_store, say_nothing
from mainspring.wiring.worker import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mainspring.clock import Clock
    from mainspring.wiring.location import DatabaseLocation
    from mainspring.wiring.store import Store

log = structlog.get_logger()

LOOPS = 2  # with a connection each: the database works for one while the other decides


def lane_firer(clock: Clock) -> LaneFirer:
    return LaneFirer(clock=clock, templates=Templates(clock))


def scheduler(store: Store, clock: Clock) -> Scheduler:
    """A scheduler on this store."""
    identity = SchedulerIdentity(id=new_uuid(), lanes=store.lanes, clock=clock, version=VERSION)
    assignment = LaneAssignment(identity)

    def loop(number: int) -> FiringLoop:
        return FiringLoop(
            assignment=assignment,
            clock=clock,
            link=Link(store.database, clock, f"scheduler {number}"),
            firer=lane_firer(clock),
            share=lambda lane: lane % LOOPS == number,
        )

    recomputing = RecomputingLoop(assignment=assignment, link=Link(store.database, clock, "scheduler recomputing"))
    pausing = PausingLoop(assignment=assignment, link=Link(store.database, clock, "scheduler pausing"))
    return Scheduler(
        identity=identity,
        assignment=assignment,
        heartbeats=Link(store.database, clock, "scheduler heartbeats"),
        loops=[*map(loop, range(LOOPS)), recomputing, pausing],
    )


@asynccontextmanager
async def scheduler_in_process(store: Store, clock: Clock) -> AsyncIterator[Scheduler]:
    """Fire schedules here for as long as this lasts."""
    schedules = scheduler(store, clock)
    running = asyncio.create_task(schedules.run())
    running.add_done_callback(_say_why_it_ended)
    try:
        yield schedules
    finally:
        running.cancel()
        await asyncio.wait([running])


def _say_why_it_ended(running: asyncio.Task[None]) -> None:
    """Whoever executes runs beside it goes on; another scheduler may be there, or the next start brings one."""
    if not running.cancelled() and (error := running.exception()) is not None:
        log.critical("the scheduler has ended by a fault of its own: nothing fires here any more", exc_info=error)


async def schedule_until_stopped(
    location: DatabaseLocation, clock: Clock, stopping: asyncio.Event, say: Callable[[str], None] = say_nothing
) -> None:
    """Run a scheduler until somebody sets `stopping`."""
    store = await open_store(location, say)
    try:
        running = asyncio.create_task(scheduler(store, clock).run())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if running.done():
            running.result()  # raises: nobody but a fault of its own ends a scheduler
        running.cancel()
        await asyncio.wait([running])
    finally:
        await store.close()
