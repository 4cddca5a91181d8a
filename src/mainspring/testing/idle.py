"""Executes what there is to execute, here and now, with a worker that ends when nothing is left to do."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring import wiring
from mainspring.app.binding import blocking_call
from mainspring.clock import instant
from mainspring.errors import InvalidInput, NotIdle
from mainspring.keeper.follower import Follower
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.releaser import Releaser
from mainspring.keeper.resolver import Resolver
from mainspring.model.lifecycle import Outcome
from mainspring.model.run import PRIORITIES
from mainspring.store import history, jobs, runs
from mainspring.testing.frozen import FrozenClock
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from datetime import datetime

    from mainspring.app.mainspring import Mainspring
    from mainspring.control.submitter import Submitter
    from mainspring.store.connection import Connection
    from mainspring.worker.running import RunningWorker

GLANCE_SECONDS = 0.001  # between two glances at what is still running
STUCK_GLANCES = 300  # without anything finishing: then only a timeout can help. Counted, as a slow machine is slow
LEASE_SECONDS = 3_600.0  # nobody sends heartbeats for this worker; nobody needs to


async def run_until_idle(
    app: Mainspring, *, queues: Iterable[str] | None = None, travel: bool = False, timeout: float = 30.0
) -> Counter[Outcome]:
    """Execute what is ready or due until nothing is; answers how many attempts came to which outcome.

    Runs go the way they always go: claimed into a lease, executed, settled, retried. What is due later stays, unless
    told to `travel`: then the application's FrozenClock moves to the next due time, again and again, so that retries
    and delayed runs happen at once, and handlers that wait for something run into their timeouts. Schedules do not
    fire: see `travel`. In the end no worker is left behind.
    """
    if travel:
        frozen_clock_of(app)
    async with working(app, queues) as work, in_time(timeout, work.not_idle):
        if travel:
            work.when_stuck = work.travel_to_limit
        while await work.go_on() or (travel and await work.travel()):
            pass
        return await work.outcomes()


run_until_idle_sync = blocking_call("run_until_idle_sync", run_until_idle)


def frozen_clock_of(app: Mainspring) -> FrozenClock:
    if not isinstance(app.clock, FrozenClock):
        raise InvalidInput(
            "Only a frozen clock can travel.",
            code="clock-not-frozen",
            hint="Make the application with clock=FrozenClock().",
        )
    return app.clock


@asynccontextmanager
async def working(app: Mainspring, queues: Iterable[str] | None) -> AsyncIterator[WaitingWork]:
    """A worker that works when told to, and is gone afterwards."""
    services = await app.services()
    store, submitter = services.store, services.submitter
    settings = WorkerSettings(
        queues=tuple(queues or app.registry.queues),
        labels=await _all_labels(app, store),
        keeper=False,
        lease_time=LEASE_SECONDS,
    )
    async with AsyncExitStack() as ending:
        worker = await wiring.start_worker(store, app.registry, settings, clock=app.clock, tenant=app.tenant)
        ending.push_async_callback(worker.drain, grace=0.0)
        connection = await store.database.connect("run until idle")
        ending.push_async_callback(connection.close)
        yield WaitingWork(app, worker, connection, store.lanes, submitter)


async def _all_labels(app: Mainspring, store: wiring.Store) -> tuple[str, ...]:
    """Whatever a run may require, this worker has it."""
    async with store.database.acquire() as connection:
        lines = {*(each.line for each in await jobs.all_lines(connection)), *app.registry.lines}
    return tuple({label for line in lines for label in line.labels})


@asynccontextmanager
async def in_time(timeout: float, refusal: Callable[[float], NotIdle]) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError:
        raise refusal(timeout) from None


async def _wait_on() -> None:
    """For handlers that take their time."""


class WaitingWork:
    """What is left to do for one worker."""

    def __init__(
        self, app: Mainspring, worker: RunningWorker, connection: Connection, lanes: int, submitter: Submitter
    ) -> None:
        self._submitter = submitter
        self._clock = app.clock
        self._worker = worker
        self._connection = connection
        self._lanes = lanes
        self._promoter = Promoter(lanes=lanes, clock=app.clock)
        self._releaser = Releaser(lanes=lanes, clock=app.clock)
        self._gatekeeper = Gatekeeper(lanes=lanes, clock=app.clock)
        self._resolver = Resolver(lanes=lanes, clock=app.clock, heard_of_gates=self._gatekeeper.hint)
        self._follower = Follower(lanes=lanes, clock=app.clock)
        self.next_due_at: datetime | None = None  # when the next run is due that waits for its time
        self.when_stuck: Callable[[], Awaitable[None]] = _wait_on  # called while handlers wait and nothing finishes

    @property
    def running(self) -> int:
        return self._worker.parts.executor.running

    def not_idle(self, timeout: float) -> NotIdle:
        return NotIdle(
            f"After {timeout:g} s there is still something to do; {self.running} run(s) are running.",
            hint="Does a handler never end, or submit itself again and again?",
        )

    async def outcomes(self) -> Counter[Outcome]:
        """How many attempts came to which outcome so far."""
        rows = await history.outcomes_of_worker(self._connection, self._worker.id)
        return Counter({Outcome(row["outcome"]): row["attempts"] for row in rows})

    async def until_idle(self) -> None:
        while await self.go_on():
            pass

    async def go_on(self) -> bool:
        """Let the worker finish what it has, then look for more; answers whether there may be more."""
        done = self._worker.parts.flusher.accepted  # before anything: what ends meanwhile may let others go
        await self._submitter.until_admitted()
        await self._until_quiet()
        has_resolved = await self._resolver.step(self._connection) == 0.0
        has_followed = await self._follower.step(self._connection) == 0.0
        self._gatekeeper.forget()  # look at all gates: it may have just done so, and rest
        has_passed = await self._gatekeeper.step(self._connection) == 0.0
        is_due = await self._promote()
        await self._releaser.step(self._connection)
        is_waiting = await self._stir()
        await self._until_quiet()  # it may have claimed something between the looks, and finished it
        return (
            has_resolved
            or has_followed
            or has_passed
            or is_due
            or is_waiting
            or self._worker.parts.flusher.accepted != done
        )

    async def _promote(self) -> bool:
        """Put what is due in line; answers whether there was something."""
        self.next_due_at = await self._find_next_due()
        if self.next_due_at is None or self.next_due_at > instant(self._clock):
            return False
        self._promoter.forget()  # look from the front: a retry may be due before what was promoted last
        await self._promoter.step(self._connection)
        return True

    async def _stir(self) -> bool:
        """Tell the worker which lines have something in them."""
        self._worker.parts.lines.learn(await jobs.all_lines(self._connection))
        pairs = [(lane, line) for lane in range(self._lanes) for line in self._worker.parts.lines]
        rows = [row for row in await runs.waiting_lines(self._connection, pairs) if row["seconds"] <= 0]
        await self._notice((row["lane"], row["line"]) for row in rows)
        return bool(rows)

    async def look_into(self, lanes: Iterable[int]) -> None:
        """There may be something new in these lanes."""
        await self._notice((lane, line) for lane in lanes for line in self._worker.parts.lines)

    async def _notice(self, pairs: Iterable[tuple[int, int]]) -> None:
        for lane, line in (some := list(pairs)):
            self._worker.parts.claimer.notice(lane, line)
        if some:
            await asyncio.sleep(GLANCE_SECONDS)  # for the claimer to begin

    async def _until_quiet(self) -> None:
        glances, seen = 0, (-1, -1)
        while not self._is_quiet:
            self._fill_no_chunks()
            await asyncio.sleep(GLANCE_SECONDS)
            glances += 1
            progress = self.running, self._worker.parts.flusher.accepted
            if progress != seen or self._worker.parts.claimer.under_way:
                glances, seen = 0, progress
            elif glances >= STUCK_GLANCES:
                await self.when_stuck()
                glances = 0
        await self._worker.parts.flusher.drained()
        await self._worker.parts.breakers.flush()
        await self._worker.parts.admitter.until_idle()  # what has ended may have let others pass their limits
        if failure := self._worker.failure():
            raise failure

    def _fill_no_chunks(self) -> None:
        """Where nothing is left to claim, what waits for others to share a call waits in vain."""
        if self._worker.parts.claimer.is_resting:
            self._worker.parts.executor.capacity.gatherer.call_all()

    @property
    def _is_quiet(self) -> bool:
        parts = self._worker.parts
        return parts.executor.is_idle and not parts.claimer.under_way and parts.admitter.is_idle

    # ── moving the clock ────────────────────────────────────────────────────────────────────────────────────

    async def move_to(self, at: datetime) -> None:
        assert isinstance(self._clock, FrozenClock)
        await self._clock.set(at)
        self._worker.heartbeat_arrived()  # only we jumped: the database was never away

    @property
    def limit_at(self) -> datetime | None:
        """When the time of a handler that runs will be up, if one has a limit."""
        ahead = self._worker.parts.executor.timekeeper.next_limit - self._clock.monotonic()
        return instant(self._clock) + timedelta(seconds=ahead) if 0 < ahead < float("inf") else None

    async def travel_to_limit(self) -> None:
        if (limit_at := self.limit_at) is not None:
            await self.move_to(limit_at)

    async def travel(self) -> bool:
        """Move the clock to when the next run is due, as the last look found it; answers whether there is one."""
        if self.next_due_at is not None:
            await self.move_to(self.next_due_at)
        return self.next_due_at is not None

    async def _find_next_due(self) -> datetime | None:
        places = [(lane, priority) for lane in range(self._lanes) for priority in PRIORITIES]
        rows = await runs.next_due(
            self._connection,
            [lane for lane, _ in places],
            [priority for _, priority in places],
            [runs.LONG_AGO] * len(places),
        )
        due = [row["due_at"] for row in rows]
        if self._gatekeeper.tokens_in is not None:
            due.append(instant(self._clock) + timedelta(seconds=self._gatekeeper.tokens_in, milliseconds=1))
        return min(due, default=None)
