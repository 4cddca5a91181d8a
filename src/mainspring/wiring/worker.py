"""A worker and its parts."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from mainspring.clock import SystemClock
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.store.admission import Admitter
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.link import Link
from mainspring.store.submissions import new_uuid
from mainspring.wiring.keeper import keeper
from mainspring.worker.active_leases import ActiveLeases, LeaseReconciler
from mainspring.worker.attempt_log import AttemptLog
from mainspring.worker.breakers import BreakerMonitor
from mainspring.worker.claimer import Claimer
from mainspring.worker.current_attempt import captured
from mainspring.worker.environment import NOTHING
from mainspring.worker.executor import Executor, tell_nobody
from mainspring.worker.flusher import Flusher
from mainspring.worker.gating import Gating
from mainspring.worker.performer import Performer
from mainspring.worker.registration import Registration, WorkerIdentity
from mainspring.worker.reporter import Reporter
from mainspring.worker.running import RunningWorker, WorkerParts
from mainspring.worker.settlements import LineStatistics, SettlementLog, SettlementMonitor, StatusWriter
from mainspring.worker.sync import NotificationListener, SyncLoop
from mainspring.worker.tenant_jobs import TenantJobs
from mainspring.worker.time_limits import OverlapGuard
from mainspring.worker.waits import MOST_PER_SLOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.database import Database
    from mainspring.wiring.store import Store
    from mainspring.worker.environment import Surroundings
    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registration import RegisteredWorker
    from mainspring.worker.registry import Registry
    from mainspring.worker.settings import WorkerSettings

VERSION = version("mainspring")


async def start_worker(
    store: Store,
    registry: Registry,
    settings: WorkerSettings,
    *,
    clock: Clock | None = None,
    worker_id: UUID | None = None,
    isolation: Isolation | None = None,
    announce: Callable[[float], None] = tell_nobody,
    tenant: str = DEFAULT_TENANT_NAME,
) -> RunningWorker:
    """A worker that is registered and at work, with a keeper beside it if its settings say so; `drain` ends it.

    Without `isolation` no run has its own process. `announce` is told, on the monotonic clock, by when the handlers of
    the worker have to be over. Its jobs are registered for `tenant`; it serves all tenants.
    """
    worker = WorkerIdentity(id=worker_id or new_uuid(), tenant=tenant, lanes=store.lanes, clock=clock or SystemClock())
    registration = Registration(
        worker=worker, database=store.database, registry=registry, settings=settings, version=VERSION
    )
    opened = AsyncExitStack()
    async with AsyncExitStack() as failing:
        failing.push_async_exit(opened)
        surroundings = await opened.enter_async_context(registry.environment.opened())
        parts = WorkerAssembly(
            worker=worker,
            database=store.database,
            settings=settings,
            registered=await registration.register(),
            surroundings=NOTHING if registry.environment.is_empty else surroundings,
            isolation=isolation,
            announce=announce,
        ).parts()
        opened.enter_context(captured(parts.performer.hear, registry.capture_level))
        failing.push_async_callback(parts.close)
        with suppress(*DATABASE_ERRORS):  # who has registered stays; the loop looks again by itself
            await parts.sync.sync()
        failing.pop_all()
    return RunningWorker(worker=worker, database=store.database, parts=parts, surroundings=opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAssembly:
    """What the parts of a registered worker are made from."""

    worker: WorkerIdentity
    database: Database
    settings: WorkerSettings
    registered: RegisteredWorker
    surroundings: Surroundings
    isolation: Isolation | None
    announce: Callable[[float], None]

    def parts(self) -> WorkerParts:
        links = {name: self._link(name) for name in ("claim", "flush", "sync")}
        keeping, hints = keeper(self.database, self.worker.lanes, self.worker.clock)
        reporter = Reporter(
            worker_id=self.worker.id,
            database=self.database,
            clock=self.worker.clock,
        )
        performer = self._performer(reporter)
        leases, statistics, has_room = ActiveLeases(), LineStatistics(self.worker.id), asyncio.Event()
        attempt_log = AttemptLog(clock=self.worker.clock, leases=leases)
        admitter = Admitter(
            database=self.database,
            clock=self.worker.clock,
            name="worker admit",
            lanes=self.worker.lanes,
            heard_of_ready=lambda lane, line, priority: claimer.notice(lane, line, priority),  # which is made below
        )
        gating = Gating(worker=self.worker, lines=self.registered.lines, jobs=self.registered.jobs)
        breakers = BreakerMonitor(
            worker=self.worker,
            database=self.database,
            jobs=self.registered.jobs,
            gating=gating,
            heard_of_gates=admitter.hint,
        )
        settlements = SettlementLog(
            attempts=attempt_log,
            leases=leases,
            statistics=statistics,
            has_room=has_room,
            heard_of_later=hints.heard_of_later,
            heard_of_gates=admitter.hint,
            heard_of_parents=admitter.hint_at_parents,
            heard_of_ends=admitter.hint_at_ends,
            breakers=breakers,
        )
        flusher = Flusher(
            worker=self.worker,
            link=links["flush"],
            settled=settlements.note,
            completed=settlements.note_completed,
            followed_jobs=gating.followed_jobs,
            max_unsettled=self.settings.max_unsettled,
            failed_probes=breakers.failed_probes,
        )
        executor = self._executor(performer, flusher, has_room, gating)
        claimer = self._claimer(links["claim"], executor, flusher, leases)
        monitor = SettlementMonitor(
            worker_id=self.worker.id, flusher=flusher, give_up_after=self.settings.give_up_after
        )
        sync = SyncLoop(
            worker=self.worker,
            link=links["sync"],
            every=self.settings.heartbeat_every,
            lines=self.registered.lines,
            listener=NotificationListener(
                worker=self.worker,
                lines=self.registered.lines,
                claimer=claimer,
                heard_of_later=hints.heard_of_later,
                heard_of_dependencies=hints.heard_of_dependencies,
            ),
            reconciler=LeaseReconciler(worker=self.worker, leases=leases, claimer=claimer, executor=executor),
            status=StatusWriter(worker_id=self.worker.id, leases=leases, statistics=statistics, monitor=monitor),
            gating=gating,
        )
        return WorkerParts(
            lines=self.registered.lines,
            claimer=claimer,
            executor=executor,
            performer=performer,
            flusher=flusher,
            reporter=reporter,
            attempt_log=attempt_log,
            sync=sync,
            overlap_guard=OverlapGuard(clock=self.worker.clock, lease_time=self.settings.lease_time, executor=executor),
            monitor=monitor,
            admitter=admitter,
            gating=gating,
            breakers=breakers,
            tenant_jobs=TenantJobs(worker=self.worker, database=self.database, registered=self.registered),
            links=tuple(links.values()),
            background=(keeping.run,) if self.settings.keeper else (),
        )

    def _link(self, name: str) -> Link:
        return Link(self.database, self.worker.clock, f"worker {name}", raw_time=True)

    def _performer(self, reporter: Reporter) -> Performer:
        if self.isolation is not None and any(
            handler.definition.isolated for handler in self.registered.jobs.handlers.values()
        ):
            self.isolation.start()  # now rather than when the first run waits for it
        return Performer(
            threads=self.settings.slots * (1 + MOST_PER_SLOT),  # made when needed; who waits for a run keeps its own
            reporter=reporter,
            surroundings=self.surroundings,
            isolation=self.isolation,
        )

    def _executor(self, performer: Performer, flusher: Flusher, has_room: asyncio.Event, gating: Gating) -> Executor:
        return Executor(
            worker=self.worker,
            settings=self.settings,
            jobs=self.registered.jobs,
            lines=self.registered.lines,
            performer=performer,
            settle=flusher.add,
            has_room=has_room,
            gating=gating,
            announce=self.announce,
        )

    def _claimer(self, link: Link, executor: Executor, flusher: Flusher, leases: ActiveLeases) -> Claimer:
        return Claimer(
            worker=self.worker,
            settings=self.settings,
            lines=self.registered.lines,
            link=link,
            executor=executor,
            flusher=flusher,
            leases=leases,
        )
