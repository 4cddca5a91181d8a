"""Executes what there is to execute, here and now, with a worker that ends when nothing is left to do."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from mainspring import wiring
from mainspring.app.binding import blocking_call
from mainspring.errors import InvalidInput, NotIdle
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.releaser import Releaser
from mainspring.model.lifecycle import Outcome
from mainspring.model.run import PRIORITIES
from mainspring.store import history, jobs, runs
from mainspring.testing.frozen import FrozenClock
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.app.mainspring import Mainspring
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
    and delayed runs happen at once, and handlers that wait for something run into their timeouts. In the end no worker
    is left behind.
    """
    if travel and not isinstance(app.clock, FrozenClock):
        raise InvalidInput(
            "Only a frozen clock can travel.",
            code="clock-not-frozen",
            hint="Make the application with clock=FrozenClock().",
        )
    store = (await app.services()).store
    settings = WorkerSettings(
        queues=tuple(queues or app.registry.queues),
        labels=await _all_labels(app, store),
        keeper=False,
        lease_time=LEASE_SECONDS,
    )
    async with AsyncExitStack() as ending:
        worker = await wiring.start_worker(store, app.registry, settings, clock=app.clock)
        ending.push_async_callback(worker.drain, grace=0.0)
        connection = await store.database.connect("run until idle")
        ending.push_async_callback(connection.close)
        work = _Work(app, worker, connection, store.lanes, travels=travel)
        try:
            async with asyncio.timeout(timeout):
                while await work.go_on() or (travel and await work.travel()):
                    pass
        except TimeoutError:
            running = worker.parts.executor.running
            raise NotIdle(
                f"After {timeout:g} s there is still something to do; {running} run(s) are running.",
                hint="Does a handler never end, or submit itself again and again?",
            ) from None
        outcomes = await history.outcomes_of_worker(connection, worker.id)
    return Counter({Outcome(row["outcome"]): row["attempts"] for row in outcomes})


run_until_idle_sync = blocking_call("run_until_idle_sync", run_until_idle)


async def _all_labels(app: Mainspring, store: wiring.Store) -> tuple[str, ...]:
    """Whatever a run may require, this worker has it."""
    async with store.database.acquire() as connection:
        lines = {*await jobs.lines(connection, tenant_id=app.actor.tenant), *app.registry.lines}
    return tuple({label for line in lines for label in line.labels})


class _Work:
    """What is left to do for one worker."""

    def __init__(
        self,
        app: Mainspring,
        worker: RunningWorker,
        connection: Connection,
        lanes: int,
        *,
        travels: bool,
    ) -> None:
        self._travels = travels
        self._clock = app.clock
        self._tenant_id = app.actor.tenant
        self._worker = worker
        self._connection = connection
        self._lanes = lanes
        self._promoter = Promoter(lanes=lanes, clock=app.clock)
        self._releaser = Releaser(lanes=lanes, clock=app.clock)

    async def go_on(self) -> bool:
        """Let the worker finish what it has, then look for more; answers whether there may be more."""
        await self._until_quiet()
        done = self._worker.parts.flusher.accepted
        self._promoter.forget()  # look from the front: a retry may be due before what was promoted last
        is_due = await self._promoter.step(self._connection) == 0
        await self._releaser.step(self._connection)
        is_waiting = await self._stir()
        await self._until_quiet()  # it may have claimed something between the looks, and finished it
        return is_due or is_waiting or self._worker.parts.flusher.accepted != done

    async def _stir(self) -> bool:
        """Tell the worker which lines have something in them."""
        self._worker.parts.lines.learn(await jobs.lines(self._connection, tenant_id=self._tenant_id))
        pairs = [(lane, line) for lane in range(self._lanes) for line in self._worker.parts.lines]
        rows = [row for row in await runs.waiting_lines(self._connection, pairs) if row["seconds"] <= 0]
        for row in rows:
            self._worker.parts.claimer.notice(row["lane"], row["line"])
        return bool(rows)

    async def _until_quiet(self) -> None:
        await asyncio.sleep(GLANCE_SECONDS)
        glances, seen = 0, (-1, -1)
        while not self._is_quiet:
            await asyncio.sleep(GLANCE_SECONDS)
            glances += 1
            progress = self._worker.parts.executor.running, self._worker.parts.flusher.accepted
            if progress != seen or self._worker.parts.claimer.under_way:
                glances, seen = 0, progress
            elif self._travels and glances >= STUCK_GLANCES:
                await self._travel_to_limit()
                glances = 0
        await self._worker.parts.flusher.drained()
        if failure := self._worker.failure():
            raise failure

    @property
    def _is_quiet(self) -> bool:
        return self._worker.parts.executor.is_idle and not self._worker.parts.claimer.under_way

    async def _travel_to_limit(self) -> None:
        """Handlers wait and nothing finishes: if the time of one will be up, let it be up now."""
        assert isinstance(self._clock, FrozenClock)
        ahead = self._worker.parts.executor.timekeeper.next_limit - self._clock.monotonic()
        if 0 < ahead < float("inf"):
            await self._clock.advance(ahead)
            self._worker.heartbeat_arrived()

    async def travel(self) -> bool:
        """Move the clock to when the next run is due; answers whether there is one."""
        assert isinstance(self._clock, FrozenClock)
        places = [(lane, priority) for lane in range(self._lanes) for priority in PRIORITIES]
        rows = await runs.next_due(
            self._connection,
            [lane for lane, _ in places],
            [priority for _, priority in places],
            [runs.LONG_AGO] * len(places),
        )
        if rows:
            await self._clock.set(min(row["due_at"] for row in rows))
            self._worker.heartbeat_arrived()  # only we jumped: the database was never away
        return bool(rows)
