"""Minds what lies between worker and database: wake-ups, cancellations, leases nobody remembers.

At each beat it compares the leases in the worker's name with those the worker holds. A lease that nobody here
knows came from a claim whose answer was lost: its runs go back in line.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from mainspring.clock import SystemClock
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.store import health, jobs, leases, notify
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.leases import Lease
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.instants import Micros
    from mainspring.store.link import Link
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.executor import Executor
    from mainspring.worker.holdings import Holdings
    from mainspring.worker.lines import Lines
    from mainspring.worker.settling import SettlingTrouble
    from mainspring.worker.tally import Tally

log = structlog.get_logger()

LINES_EVERY = 4  # beats


class Attendant:
    def __init__(
        self,
        *,
        worker_id: UUID,
        link: Link,
        clock: Clock,
        lanes: int,
        every: float,
        lines: Lines,
        holdings: Holdings,
        claimer: Claimer,
        executor: Executor,
        tally: Tally,
        trouble: SettlingTrouble,
        heard_of_later: Callable[[], None],
    ) -> None:
        self._worker_id = worker_id
        self._link = link
        self._clock = clock
        self._lanes = lanes
        self._every = every
        self._lines = lines
        self._holdings = holdings
        self._claimer = claimer
        self._executor = executor
        self._tally = tally
        self._trouble = trouble
        self.attended_at = float("-inf")  # when the database answered everything that was asked
        self._heard_of_later = heard_of_later
        self._listening: Connection | None = None
        self._woken = asyncio.Event()
        self._has_news = False  # someone spoke of a line we have not met
        self._beats_until_lines = 0

    async def run(self) -> None:
        while True:
            try:
                await self.attend()
            except ALL_DATABASE_ERRORS as error:
                log.warning("attending waits for the database", cause=str(error))
                await self._link.mend(error)
                continue
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._woken.wait()

    async def attend(self) -> None:
        """One look at everything."""
        connection = await self._link.get()
        if connection is not self._listening:
            await self._begin(connection)
        await self._learn_lines(connection)
        await self.reconcile(connection)
        await self._tally.tell(connection, self._holdings.by_line())
        await self._trouble.tell(connection)
        self.attended_at = self._clock.monotonic()

    async def _learn_lines(self, connection: Connection) -> None:
        """When a line is news, and now and then: wake-ups may get lost, and idle workers should ask for little."""
        self._beats_until_lines -= 1
        if self._has_news or self._beats_until_lines <= 0:
            self._has_news = False
            self._lines.learn(await jobs.lines(connection, tenant_id=DEFAULT_TENANT))
            self._beats_until_lines = LINES_EVERY

    async def _begin(self, connection: Connection) -> None:
        await notify.listen(connection, self._hear)
        await self._set_clock(connection)
        self._listening = connection

    async def _set_clock(self, connection: Connection) -> None:
        """Date what happens here by the database's clock, as far as one round trip can tell."""
        if isinstance(self._clock, SystemClock):
            self._clock.offset = 0
            before = self._clock.micros()
            theirs = await health.database_micros(connection)
            self._clock.offset = theirs - (before + self._clock.micros()) // 2

    def _hear(self, channel: str, payload: str) -> None:
        if channel == notify.READY:
            with contextlib.suppress(ValueError):
                self._hear_of_ready(*notify.parse_ready(payload))
        elif channel == notify.LATER:
            self._heard_of_later()
        elif payload == str(self._worker_id):
            self._woken.set()

    def _hear_of_ready(self, lane: int, line: int, priority: int) -> None:
        if self._lines.is_news(line):
            self._has_news = True
            self._woken.set()  # it may be one of ours: look at once, not at some beat
        self._claimer.stir(lane, line, priority)

    async def reconcile(self, connection: Connection) -> None:
        """Act on cancellations, and give back leases in our name that we do not hold."""
        for row in await leases.of_worker(connection, self._lanes, self._worker_id):
            lease_id = row["id"]
            if lease_id in self._holdings:
                for work in self._holdings.asked_to_cancel(lease_id, row["cancelled"] or ""):
                    self._executor.cancel(work)
            elif lease_id not in self._claimer.under_way:
                await self._give_back(connection, Lease(row["lane"], lease_id, row["size"]))

    async def _give_back(self, connection: Connection, lease: Lease) -> None:
        rows = await leases.find(connection, lease.lane, lease.id, self._worker_id)
        if lease.id in self._holdings or not rows:
            return
        now: Micros = self._executor.now()
        works = [Work(row, lease, at, 0, self._worker_id, now, None) for at, row in enumerate(rows)]
        settled = await leases.settle(connection, self._worker_id, [work.given_back(now) for work in works])
        log.warning("a lease whose claim went unanswered was given back", runs=settled.accepted)
