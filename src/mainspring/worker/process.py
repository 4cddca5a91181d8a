"""One worker: registers, claims, executes, settles, drains. This is what runs inside the supervised child."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any

import structlog

from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    OutcomeUnknown,
    QueueNotFound,
    RowExists,
    did_you_mean,
)
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.line import Delivery
from mainspring.store import jobs, workers
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.leases import Fate
from mainspring.store.link import Link
from mainspring.store.migrate import installation_of
from mainspring.store.submissions import new_uuid
from mainspring.worker.capture import captured
from mainspring.worker.claimer import Claimer
from mainspring.worker.environment import NOTHING
from mainspring.worker.executor import STALE_SECONDS, Executor, tell_nobody
from mainspring.worker.flusher import Flusher
from mainspring.worker.holdings import Holdings
from mainspring.worker.identity import WorkerIdentity
from mainspring.worker.lines import Lines
from mainspring.worker.listener import NotificationListener
from mainspring.worker.performer import Performer
from mainspring.worker.reconciler import LeaseReconciler
from mainspring.worker.reporter import Reporter
from mainspring.worker.settling import SettlingTrouble
from mainspring.worker.status import StatusWriter
from mainspring.worker.sync import SyncLoop
from mainspring.worker.tally import Tally
from mainspring.worker.waits import MOST_PER_SLOT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.leases import Lease, Settled, Settlement
    from mainspring.worker.environment import Surroundings
    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registry import Handler, Registry
    from mainspring.worker.settings import WorkerSettings
    from mainspring.worker.work import Work

log = structlog.get_logger()

CLOSING_SECONDS = 10.0  # how long a drain waits for resources and shutdown hooks
DEPARTURE_SECONDS = 3.0  # how long it tries to say good-bye: less than its supervisor waits before it kills
DELIVERY_SECONDS = 10.0  # how long a drain tries to deliver its last results
DISCONNECT_MARGIN = 0.2  # of the lease time: when to stop what must not overlap


class WorkerProcess:
    """A worker and its parts. `background` loops run beside it: the keeper, for instance."""

    def __init__(
        self,
        *,
        database: Database,
        registry: Registry,
        settings: WorkerSettings,
        clock: Clock,
        lanes: int,
        version: str,
        worker_id: UUID | None = None,
        background: Callable[[], Coroutine[Any, Any, None]] | None = None,
        heard_of_later: Callable[[], None] = lambda: None,
        isolation: Isolation | None = None,
        announce: Callable[[float], None] = tell_nobody,
    ) -> None:
        self.id = worker_id or new_uuid()
        self._database = database
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._lanes = lanes
        self._version = version
        self._background = background
        self._heard_of_later = heard_of_later
        self._isolation = isolation
        self._announce = announce
        self._holdings = Holdings()
        self._tally = Tally(self.id)
        self.lines = Lines(queues=settings.queues, labels=settings.labels)
        self._links = {
            name: Link(database, clock, f"worker {name}", raw_time=True) for name in ("claim", "flush", "sync")
        }
        self._loops: list[asyncio.Task[None]] = []
        self._last_beat = clock.monotonic()
        self._surroundings = contextlib.AsyncExitStack()  # hooks, resources, the capture of log lines
        self.executor: Executor
        self.claimer: Claimer
        self.flusher: Flusher
        self.reporter: Reporter
        self.sync: SyncLoop
        self._trouble: SettlingTrouble

    # ── beginning ───────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Open what surrounds handlers, register jobs and worker, and begin to work."""
        try:
            surroundings = await self._surroundings.enter_async_context(self._registry.environment.opened())
            await self._start(surroundings)
        except BaseException:
            await self._surroundings.aclose()
            raise

    async def _start(self, surroundings: Surroundings) -> None:
        handlers = await self._introduce()
        self._assemble(handlers, surroundings)
        if self._isolation is not None and any(handler.definition.isolated for handler in handlers.values()):
            self._isolation.start()  # now rather than when the first run waits for it
        with contextlib.suppress(*DATABASE_ERRORS):  # who has registered stays; the loop looks again by itself
            await self.sync.sync()
        self._last_beat = self._clock.monotonic()
        self._loops = [asyncio.create_task(loop) for loop in self._loops_to_run()]

    async def _introduce(self) -> dict[int, Handler]:
        """Register jobs, lines and this worker, however often the database goes away meanwhile: it may be repeated."""
        link = Link(self._database, self._clock, "worker start")
        try:
            while True:
                try:
                    await link.get()
                    await self._database.check_sessions()
                    return await self._try_to_introduce(await link.get())
                except (DatabaseUnreachable, DatabaseBusy, RowExists, OutcomeUnknown) as error:
                    log.warning("registering waits for the database", cause=str(error))
                    await link.mend(error)
        finally:
            await link.close()

    async def _try_to_introduce(self, connection: Connection) -> dict[int, Handler]:
        installation = await installation_of(connection)
        handlers = await register_jobs(connection, self._registry, self._version)
        await self._open_lines(connection)
        await self._register(connection)
        if await installation_of(connection) != installation:
            raise DatabaseBusy("The schema was made again while this worker registered.")
        await confirm(connection, [REGISTRATIONS_LANE])  # what was found there may not be on the standby yet
        return handlers

    async def _open_lines(self, connection: Connection) -> None:
        found = await jobs.open_lines(connection, self._registry.lines, tenant_id=DEFAULT_TENANT)
        known = {line.queue for line in found}
        missing = [queue for queue in self._settings.queues if queue not in known]
        if missing:
            raise QueueNotFound(
                f"There is no queue named {missing[0]!r}.",
                hint=did_you_mean(missing[0], known),
                field="queues",
            )
        self.lines.learn(found)

    async def _register(self, connection: Connection) -> None:
        await workers.register(
            connection,
            worker_id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=self._settings.queues,
            labels=self._settings.labels,
            handlers=self._registry.names,
            slots=self._settings.slots,
            lease_seconds=self._settings.lease_time,
            version=self._version,
        )

    def _assemble(self, handlers: dict[int, Handler], surroundings: Surroundings) -> None:
        self.flusher = Flusher(
            worker_id=self.id,
            link=self._links["flush"],
            clock=self._clock,
            settled=self._settled,
            max_unsettled=self._settings.max_unsettled,
        )
        self._trouble = SettlingTrouble(
            worker_id=self.id, flusher=self.flusher, give_up_after=self._settings.give_up_after
        )
        self.reporter = Reporter(worker_id=self.id, database=self._database, clock=self._clock)
        # Threads are made when they are needed; a handler that waits for a run keeps its own.
        threads = self._settings.slots * (1 + MOST_PER_SLOT)
        performer = Performer(
            threads=threads,
            reporter=self.reporter,
            surroundings=NOTHING if self._registry.environment.is_empty else surroundings,
            isolation=self._isolation,
        )
        self._surroundings.enter_context(captured(performer.hear, self._registry.capture_level))
        self.executor = Executor(
            worker_id=self.id,
            handlers=handlers,
            lines=self.lines,
            slots=self._settings.slots,
            cancel_grace=self._settings.cancel_grace,
            clock=self._clock,
            performer=performer,
            settle=self.flusher.add,
            announce=self._announce,
        )
        self.claimer = Claimer(
            worker_id=self.id,
            lines=self.lines,
            weights=self._settings.weights,
            lanes=self._lanes,
            link=self._links["claim"],
            clock=self._clock,
            poll_interval=self._settings.poll_interval,
            executor=self.executor,
            flusher=self.flusher,
            take=self._take,
        )
        worker = WorkerIdentity(id=self.id, tenant_id=DEFAULT_TENANT, lanes=self._lanes, clock=self._clock)
        self.sync = SyncLoop(
            worker=worker,
            link=self._links["sync"],
            every=self._settings.beat_every,
            lines=self.lines,
            listener=NotificationListener(
                worker=worker, lines=self.lines, claimer=self.claimer, heard_of_later=self._heard_of_later
            ),
            reconciler=LeaseReconciler(
                worker=worker, holdings=self._holdings, claimer=self.claimer, executor=self.executor
            ),
            status=StatusWriter(holdings=self._holdings, tally=self._tally, trouble=self._trouble),
        )

    def _loops_to_run(self) -> list[Coroutine[Any, Any, None]]:
        loops = [self.claimer.run(), self.flusher.run(), self.sync.run(), self.reporter.run(), self._watch()]
        return loops if self._background is None else [*loops, self._background()]

    # ── working ─────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, lease: Lease, line: int, rows: list[Record]) -> None:
        self._holdings.add(lease.id, self.executor.take(lease, line, rows))

    def _settled(self, batch: list[Settled], _settlement: Settlement) -> None:
        self._holdings.settled(batch)
        self._tally.add(batch)
        self.executor.has_room.set()  # whoever waits to claim may do so, now that less is unsettled
        if any(each.fate is Fate.RETRY for each in batch):
            self._heard_of_later()

    def beaten(self) -> None:
        """A beat of this worker reached the database."""
        self._last_beat = self._clock.monotonic()

    async def _watch(self) -> None:
        """Give back what waits too long, and stop what must not overlap before someone else may take it over."""
        limit = self._settings.lease_time * (1 - DISCONNECT_MARGIN)
        while True:
            await self._clock.sleep(min(0.5, self._settings.lease_time / 10))
            self.executor.give_back_waiting(older_than=STALE_SECONDS)
            if self._clock.monotonic() - self._last_beat > limit:
                self.executor.interrupt(filter(_must_not_overlap, self.executor.running_works), grace=0.0)

    @property
    def has_given_up(self) -> bool:
        """Whether results could not be settled for so long that another process had better take over."""
        return self._trouble.is_hopeless(self.sync.synced_at)

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────

    async def drain(self, grace: float, hurry: asyncio.Event | None = None) -> None:
        """Stop claiming, let handlers finish within the grace, give back the rest at once, deliver, and end."""
        self.claimer.stop()
        self.executor.stop_taking()
        await self._until_idle(grace, hurry or asyncio.Event())
        self.executor.stop_running()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DELIVERY_SECONDS):
                await asyncio.wait(self._loops[:1])  # a claim under way is answered first, and given back
                while not self.executor.is_idle:
                    await asyncio.sleep(0.005)
                await self.flusher.drained()
        await self._depart()
        await self._stop_loops()

    async def _until_idle(self, grace: float, hurry: asyncio.Event) -> None:
        until = self._clock.monotonic() + grace
        while self.executor.running and self._clock.monotonic() < until and not hurry.is_set():
            await asyncio.sleep(0.01)

    async def _depart(self) -> None:
        """Say good-bye. What could not be given back is taken over, and nobody calls it a crash."""
        try:
            async with asyncio.timeout(DEPARTURE_SECONDS), self._database.acquire() as connection:
                await workers.stop_if_live(connection, self.id)
        except (*DATABASE_ERRORS, TimeoutError) as error:
            log.warning("the database is away; this worker ends without saying so", cause=str(error))

    async def _stop_loops(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self.executor.close()
        for link in self._links.values():
            await link.close()
        await self._leave_surroundings()

    async def _leave_surroundings(self) -> None:
        """Close resources and call shutdown hooks. They had their chance: what fails or hangs here is only told."""
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._surroundings.aclose()
        except Exception:
            log.exception("what surrounds handlers was not closed properly")

    def failure(self) -> BaseException | None:
        """Why one of the loops ended, if one did: a fault of ours."""
        for loop in self._loops:
            if loop.done() and not loop.cancelled() and (error := loop.exception()):
                return error
        return None


def _must_not_overlap(work: Work) -> bool:
    if work.delivery is Delivery.AT_MOST_ONCE:
        return True
    return work.handler is not None and work.handler.definition.on_disconnect == "stop"


async def register_jobs(connection: Connection, registry: Registry, actor: str) -> dict[int, Handler]:
    """Make every job of an application known; answers with the handlers by job id."""
    handlers = {}
    for handler in registry:
        reference = await jobs.register(
            connection,
            handler.name,
            handler.definition.as_document(),
            actor=f"mainspring {actor}",
            tenant_id=DEFAULT_TENANT,
        )
        handlers[reference.id] = handler
    return handlers
