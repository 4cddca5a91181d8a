"""A worker at work, until it drains. It is registered before it is constructed: see `wiring.start_worker`."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import structlog

from mainspring.store import workers
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.worker.executor import STALE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mainspring.store.admission import Admitter
    from mainspring.store.database import Database
    from mainspring.store.link import Link
    from mainspring.worker.attempt_log import AttemptLog
    from mainspring.worker.breakers import BreakerMonitor
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.executor import Executor
    from mainspring.worker.flusher import Flusher
    from mainspring.worker.gating import Gating
    from mainspring.worker.lines import Lines
    from mainspring.worker.performer import Performer
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.reporter import Reporter
    from mainspring.worker.settlements import SettlementMonitor
    from mainspring.worker.sync import SyncLoop
    from mainspring.worker.tenant_jobs import TenantJobs
    from mainspring.worker.time_limits import OverlapGuard

log = structlog.get_logger()

CLOSING_SECONDS = 10.0  # how long a drain waits for resources and shutdown hooks
DEPARTURE_SECONDS = 3.0  # how long it tries to say good-bye: less than its supervisor waits before it kills
DELIVERY_SECONDS = 10.0  # how long a drain tries to deliver its last results
STALE_LOOK_SECONDS = 0.5
REASON_LOOK_SECONDS = 0.5


def say_nothing() -> None:
    """Nobody has to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What a worker consists of. `background` loops run beside it: the keeper, for instance."""

    lines: Lines
    claimer: Claimer
    executor: Executor
    performer: Performer
    flusher: Flusher
    reporter: Reporter
    attempt_log: AttemptLog
    sync: SyncLoop
    overlap_guard: OverlapGuard
    monitor: SettlementMonitor
    admitter: Admitter
    gating: Gating
    breakers: BreakerMonitor
    tenant_jobs: TenantJobs
    links: Sequence[Link]
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()

    async def close(self) -> None:
        self.attempt_log.lines.sum_up(at_once=True)
        self.executor.close()
        await self.admitter.close()
        for link in self.links:
            await link.close()


class Ending(Enum):
    """Why a worker has to end, and whether its handlers have time to finish."""

    STOPPED = "stopped"
    FAULT = "fault"
    GAVE_UP = "gave up"
    WORN = "worn"

    @property
    def is_urgent(self) -> bool:
        return self in (Ending.FAULT, Ending.GAVE_UP)


class RunningWorker:
    """Its loops run from its construction on. `surroundings` is closed when it has drained."""

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        database: Database,
        parts: WorkerParts,
        surroundings: contextlib.AsyncExitStack,
    ) -> None:
        self.id = worker.id
        self.has_departed = False  # whoever misses its heartbeats from then on is told so by the database
        self.parts = parts
        self._clock = worker.clock
        self._database = database
        self._surroundings = surroundings
        self._claiming = asyncio.create_task(parts.claimer.run())
        others = [parts.flusher.run, parts.sync.run, parts.reporter.run, parts.overlap_guard.run]
        own = [parts.attempt_log.run, parts.breakers.run, parts.tenant_jobs.run]
        loops = [*others, *own, self._give_back_stale, self._hold_gated, *parts.background]
        self._loops = [self._claiming, *(asyncio.create_task(loop()) for loop in loops)]

    async def _give_back_stale(self) -> None:
        """What waits here too long may start elsewhere."""
        while True:
            await self._clock.sleep(STALE_LOOK_SECONDS)
            self.parts.executor.give_back_waiting(older_than=STALE_SECONDS)

    async def _hold_gated(self) -> None:
        """What waits here when a breaker opens would start all the same."""
        while True:
            await self.parts.gating.has_opened.wait()
            self.parts.gating.has_opened.clear()
            self.parts.executor.hold_gated()

    def heartbeat_arrived(self) -> None:
        """A heartbeat of this worker reached the database."""
        self.parts.overlap_guard.heartbeat_arrived()

    @property
    def has_given_up(self) -> bool:
        """Whether results could not be settled for so long that another process had better take over."""
        return self.parts.monitor.should_give_up(self.parts.sync.synced_at)

    async def until_it_has_to_end(self, stopping: asyncio.Event) -> Ending:
        """Wait for somebody to stop it, or for a reason of its own."""
        while not stopping.is_set():
            if (ending := self._reason_to_end()) is not None:
                return ending
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REASON_LOOK_SECONDS):
                    await stopping.wait()
        return Ending.STOPPED

    def _reason_to_end(self) -> Ending | None:
        if (fault := self.failure()) is not None:
            log.error("a loop of this worker ended", exc_info=fault)
            return Ending.FAULT
        if self.has_given_up:
            log.error("results could not be settled for too long; another worker takes over")
            return Ending.GAVE_UP
        if self.parts.executor.capacity.needs_replacement:
            log.warning("too many handlers would not stop; a fresh worker takes over")
            return Ending.WORN
        return None

    def failure(self) -> BaseException | None:
        """Why one of the loops ended, if one did: a fault of ours."""
        for loop in self._loops:
            if loop.done() and not loop.cancelled() and (error := loop.exception()):
                return error
        return None

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────

    async def drain(
        self, grace: float, hurry: asyncio.Event | None = None, departs: Callable[[], None] = say_nothing
    ) -> None:
        """Stop claiming, let handlers finish within the grace, give back the rest at once, deliver, and end.

        `departs` is called before the database is told that this worker has stopped.
        """
        self.parts.claimer.stop()
        self.parts.executor.stop_taking()
        await self._until_idle(grace, hurry or asyncio.Event())
        self.parts.executor.stop_running()
        await self._deliver_last_results()
        departs()
        await self._depart()
        await self._stop_loops()
        await self._leave_surroundings()

    async def _until_idle(self, grace: float, hurry: asyncio.Event) -> None:
        until = self._clock.monotonic() + grace
        while self.parts.executor.running and self._clock.monotonic() < until and not hurry.is_set():
            await asyncio.sleep(0.01)

    async def _deliver_last_results(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DELIVERY_SECONDS):
                await asyncio.wait([self._claiming])  # a claim under way is answered first, and given back
                while not self.parts.executor.is_idle:
                    await asyncio.sleep(0.005)
                await self.parts.flusher.drained()
                await self.parts.breakers.flush()

    async def _depart(self) -> None:
        """Say good-bye. What could not be given back is taken over, and nobody calls it a crash."""
        self.has_departed = True
        try:
            async with asyncio.timeout(DEPARTURE_SECONDS), self._database.acquire() as connection:
                await workers.stop_if_live(connection, self.id)
        except (*DATABASE_ERRORS, TimeoutError) as error:
            log.warning("the database is away; this worker ends without saying so", cause=str(error))

    async def _stop_loops(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.parts.close()

    async def _leave_surroundings(self) -> None:
        """Close resources and call shutdown hooks. They had their chance: what fails or hangs here is only told."""
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._surroundings.aclose()
        except Exception:
            log.exception("what surrounds handlers was not closed properly")
