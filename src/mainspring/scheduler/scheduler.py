"""A scheduler: heartbeats, the lanes that fall to it, and the loops that fire what is due in them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from mainspring.scheduler.cursors import ACTOR
from mainspring.scheduler.horizon import Horizon, rest_after_batch
from mainspring.scheduler.lanes import LiveSchedulers, lanes_of
from mainspring.scheduler.recomputing import recompute
from mainspring.store import notify, schedule_firing, schedulers
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.scheduler.firing import LaneFirer
    from mainspring.store.connection import Connection
    from mainspring.store.link import Link

log = structlog.get_logger()

HEARTBEAT_SECONDS = 1.0
POLL_SECONDS = 1.0  # a wake-up may get lost: look at least so often
STAGING_SINCE, PACKING_SINCE = 12, 19  # the migrations whose programs wait for ranks, and read packed occurrences
PASSED_OVER_SECONDS = 0.05  # what is due made no run, perhaps since somebody has locked it: not again at once


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerIdentity:
    """Who a scheduler is, how many lanes there are, and the clock it goes by."""

    id: UUID
    lanes: int
    clock: Clock
    version: str


class LaneAssignment:
    """What a scheduler knows of its surroundings: which lanes fall to it, and how far ahead it may fire."""

    def __init__(self, scheduler: SchedulerIdentity) -> None:
        self._scheduler = scheduler
        self._live = LiveSchedulers(scheduler.id)
        self.lanes: list[int] = []
        self.ahead = Horizon()
        self.horizon = 0.0  # as it was worked out with the last heartbeat
        self.packs = False  # whether all workers know the short form of which occurrence a run is for
        self._listeners: list[asyncio.Event] = []

    def news(self) -> asyncio.Event:
        """Set whenever something may be due sooner than was known, or in other lanes."""
        event = asyncio.Event()
        self._listeners.append(event)
        return event

    async def observe(self, connection: Connection) -> None:
        """Send a heartbeat, read those of the others, and share the lanes among all."""
        own = self._scheduler
        await schedulers.beat(connection, own.id, host=socket.gethostname(), pid=os.getpid(), version=own.version)
        rows = await schedulers.listed(connection)
        now = own.clock.monotonic()
        self._live.hear({row["id"]: row["beat"] for row in rows}, now)
        self._share(lanes_of(own.id, self._live.live(now), own.lanes))
        live, lately = await schedule_firing.known_by_workers(connection)
        self.packs = lately >= PACKING_SINCE
        lanes = connection.reach.lanes(self.lanes)
        self.horizon = await self.ahead.seconds(connection, lanes) if live >= STAGING_SINCE else 0.0
        if forgotten := self._live.forgotten(now):
            await schedulers.remove(connection, forgotten)

    def _share(self, lanes: list[int]) -> None:
        if lanes != self.lanes:
            log.info("lanes of this scheduler", lanes=len(lanes), of=self._scheduler.lanes)
            self.lanes = lanes
            self._tell()

    def hear(self, channel: str, payload: str) -> None:
        """A schedule is due sooner than was known."""
        self._tell()

    def _tell(self) -> None:
        for event in self._listeners:
            event.set()


class LaneLoop(ABC):
    """Does something for lanes over and over again, and rests until there is something to do, or news."""

    doing: str  # for the log

    def __init__(self, *, assignment: LaneAssignment, link: Link) -> None:
        self._assignment = assignment
        self._news = assignment.news()
        self._link = link

    @abstractmethod
    async def step(self, connection: Connection) -> float:
        """Do what there is to do; answers in how many seconds to look again."""

    async def run(self) -> None:
        try:
            while True:
                await self._rest(await self._try())
        finally:
            await self._link.close()

    async def _try(self) -> float:
        try:
            return await self.step(await self._link.get())
        except ALL_DATABASE_ERRORS as error:
            log.warning(f"{self.doing} waits for the database", cause=str(error))
            await self._link.mend(error)
            return 0.0

    async def _rest(self, seconds: float) -> None:
        """Until the next instant, or news."""
        if seconds <= 0:
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()


class FiringLoop(LaneLoop):
    """Fires what is due in its share of the lanes, and sleeps until the next instant."""

    doing = "firing"

    def __init__(
        self,
        *,
        assignment: LaneAssignment,
        clock: Clock,
        link: Link,
        firer: LaneFirer,
        share: Callable[[int], bool],
    ) -> None:
        super().__init__(assignment=assignment, link=link)
        self._clock = clock
        self._firer = firer
        self._share = share

    async def step(self, connection: Connection) -> float:
        """Fire what is due now; answers in how many seconds to look again."""
        own, horizon = filter(self._share, self._assignment.lanes), self._assignment.horizon
        lanes = connection.reach.lanes(own)
        if not lanes:
            return POLL_SECONDS
        rows = await schedule_firing.next_due(connection, lanes)
        pauses = {row["lane"]: pause for row in rows if (pause := schedule_firing.due_in(row, horizon)) is not None}
        due = [lane for lane, seconds in pauses.items() if seconds <= 0]
        if not due:
            return float(min([POLL_SECONDS, *pauses.values()]))
        begun = self._clock.monotonic()
        runs = await self._fire(connection, due, horizon)
        took = self._clock.monotonic() - begun
        self._assignment.ahead.fired(runs, took)
        if not runs:
            return PASSED_OVER_SECONDS
        due_in = min(seconds for row in rows if (seconds := schedule_firing.due_in(row)) is not None)
        return rest_after_batch(took, due_in=due_in)

    async def _fire(self, connection: Connection, lanes: Sequence[int], horizon: float) -> int:
        """A batch in each of the lanes; answers how many runs that made."""
        packs = self._assignment.packs
        return sum([(await self._firer.fire(connection, lane, horizon, packs=packs)).runs for lane in lanes])


class PausingLoop(LaneLoop):
    """Pauses schedules of its lanes whose runs failed too often. Who fires looks, too: nothing fires before that."""

    doing = "pausing schedules that fail"

    async def step(self, connection: Connection) -> float:
        for row in await schedule_firing.failing(connection, connection.reach.lanes(self._assignment.lanes)):
            if await schedule_firing.pause_failing(connection, row["lane"], row["schedule_id"], actor=ACTOR):
                log.warning("a schedule failed too often and is paused", schedule_id=str(row["schedule_id"]))
        return POLL_SECONDS


class RecomputingLoop(LaneLoop):
    """Computes cursors of its lanes again after what they were computed by has changed."""

    doing = "computing cursors again"

    async def step(self, connection: Connection) -> float:
        await recompute(connection, connection.reach.lanes(self._assignment.lanes))
        return POLL_SECONDS


class Scheduler:
    """One scheduler. Safety does not depend on it: any number of them may do the same."""

    def __init__(
        self, *, identity: SchedulerIdentity, assignment: LaneAssignment, heartbeats: Link, loops: Sequence[LaneLoop]
    ) -> None:
        self._identity = identity
        self._assignment = assignment
        self._heartbeats = heartbeats
        self._loops = loops
        self._listening: Connection | None = None

    async def run(self) -> None:
        """Until it is cancelled, or a fault of ours ends it; then others take its lanes at once."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in self._loops:
                    tasks.create_task(each.run())
                tasks.create_task(self._observe_on())
        finally:
            await self._leave()

    async def _observe_on(self) -> None:
        while True:
            try:
                connection = await self._heartbeats.get()
                if connection is not self._listening:
                    await notify.listen(connection, self._assignment.hear, notify.FOR_SCHEDULERS)
                    self._listening = connection
                await self._assignment.observe(connection)
            except ALL_DATABASE_ERRORS as error:
                log.warning("heartbeats wait for the database", cause=str(error))
                await self._heartbeats.mend(error)
                continue
            await self._identity.clock.sleep(HEARTBEAT_SECONDS)

    async def _leave(self) -> None:
        with contextlib.suppress(*ALL_DATABASE_ERRORS):
            await schedulers.remove(await self._heartbeats.get(), {self._identity.id: None})
        await self._heartbeats.close()
