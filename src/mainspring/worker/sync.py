"""Keeps a worker and the database in step: once per heartbeat, and at once when a notification asks for it.

It learns of new lines, limits and weights, acts on cancellations and unknown leases, and writes down what the worker
has done. When it has a new connection it listens on it, and sets the worker's clock by the database's.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.store import health, jobs, notify
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.link import Link
    from mainspring.worker.active_leases import LeaseReconciler
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.gating import Gating
    from mainspring.worker.lines import Lines
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.settlements import StatusWriter


class NotificationListener:
    """Hears that runs became ready or were put off, and of cancellations for this worker.

    Notifications are hints that may get lost; whatever they say is found without them, a little later. `wants_sync` is
    set when the worker had better compare itself with the database now.
    """

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        lines: Lines,
        claimer: Claimer,
        heard_of_later: Callable[[], None],
        heard_of_dependencies: Callable[[], None],
    ) -> None:
        self._worker = worker
        self._lines = lines
        self._claimer = claimer
        self._heard_of_later = heard_of_later
        self._heard_of_dependencies = heard_of_dependencies
        self._connection: Connection | None = None
        self.wants_sync = asyncio.Event()
        self.has_new_line = False  # someone spoke of a line we have not met

    def is_on(self, connection: Connection) -> bool:
        return connection is self._connection

    async def listen_on(self, connection: Connection) -> None:
        await notify.listen(connection, self._hear)
        self._connection = connection

    def _hear(self, channel: str, payload: str) -> None:
        if channel == notify.READY:
            with contextlib.suppress(ValueError):
                self._hear_of_ready(*notify.parse_ready(payload))
        elif channel == notify.LATER:
            self._heard_of_later()
        elif channel == notify.DEPENDENCY:
            self._heard_of_dependencies()
        elif channel == notify.LIMITS or payload == str(self._worker.id):
            self.wants_sync.set()

    def _hear_of_ready(self, lane: int, line: int, priority: int) -> None:
        if self._lines.is_news(line):
            self.has_new_line = True
            self.wants_sync.set()  # it may be one of ours: look at once, not at some heartbeat
        self._claimer.notice(lane, line, priority)


log = structlog.get_logger()

LINES_EVERY = 4  # rounds
RULES_SHARE = 0.2  # of the time, at most, goes into reading limits, breakers, weights and lines …
LONGEST_PAUSE = 0.5  # … unless these would not be in force within a second
ROUND_TRIPS = 5  # of which the quickest sets the clock


class SyncLoop:
    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        link: Link,
        every: float,
        lines: Lines,
        listener: NotificationListener,
        reconciler: LeaseReconciler,
        status: StatusWriter,
        gating: Gating,
    ) -> None:
        self._worker = worker
        self._link = link
        self._every = every
        self._lines = lines
        self._listener = listener
        self._reconciler = reconciler
        self._status = status
        self._gating = gating
        self._rounds_until_lines = 0
        self._rules = gating.rules  # at which the weights of tenants were read
        self._rules_at = float("-inf")  # when limits and the like may be read again …
        self._wants_rules = False  # … and whether they should have been read before that
        self.synced_at = float("-inf")  # when the database answered everything that was asked

    async def run(self) -> None:
        while True:
            self._listener.wants_sync.clear()  # before: what is notified during a round may be news to it
            try:
                await self.sync()
            except ALL_DATABASE_ERRORS as error:
                log.warning("synchronising waits for the database", cause=str(error))
                await self._link.mend(error)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._listener.wants_sync.wait()

    def _pause(self) -> float:
        if not self._wants_rules:
            return self._every
        return min(self._every, max(0.0, self._rules_at - self._worker.clock.monotonic()))

    async def sync(self) -> None:
        """One round."""
        connection = await self._link.get()
        if not self._listener.is_on(connection):
            await set_clock(self._worker.clock, connection)
            await self._listener.listen_on(connection)
        await self._learn_rules(connection)
        await self._reconciler.reconcile(connection)
        await self._status.write(connection)
        self.synced_at = self._worker.clock.monotonic()

    async def _learn_rules(self, connection: Connection) -> None:
        """Those of all tenants. Where there are many that takes a while, and somebody may write some all the time."""
        began = self._worker.clock.monotonic()
        self._wants_rules = began < self._rules_at
        if self._wants_rules:
            return
        await self._gating.refresh(connection)
        await self._learn_lines(connection)
        now = self._worker.clock.monotonic()
        self._rules_at = now + min(LONGEST_PAUSE, (now - began) / RULES_SHARE)

    async def _learn_lines(self, connection: Connection) -> None:
        """When a line is news or a weight may be, and now and then: idle workers should ask for little."""
        rules = self._gating.rules  # the weights of tenants are written under the same revision
        self._rounds_until_lines -= 1
        if self._listener.has_new_line or rules is not self._rules or self._rounds_until_lines <= 0:
            self._listener.has_new_line = False
            try:
                self._lines.learn(await jobs.all_lines(connection))
            except BaseException:
                self._listener.has_new_line = True  # it is news still
                raise
            self._rounds_until_lines, self._rules = LINES_EVERY, rules


class RoundTrip(NamedTuple):
    """A question for the database's time: how long the answer took, and how far ahead of ours it is."""

    seconds: float
    ahead: int  # microseconds


async def set_clock(clock: Clock, connection: Connection) -> None:
    """Date what happens here by the database's clock, as far as the quickest of some round trips can tell.

    One that took long says little: the server may have been stopped on the way, or this process busy on the way back.
    """
    trips = [await _round_trip(clock, connection) for _ in range(ROUND_TRIPS)]
    clock.correct(min(trips).ahead)


async def _round_trip(clock: Clock, connection: Connection) -> RoundTrip:
    asked_at, before = clock.monotonic(), clock.micros()
    theirs = await health.database_micros(connection)
    return RoundTrip(clock.monotonic() - asked_at, theirs - (before + clock.micros()) // 2)
