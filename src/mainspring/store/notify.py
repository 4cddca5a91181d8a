"""Wake-ups between processes. Polling is the guarantee; these only make it quick.

`ready` says that a line has something to claim, `later` that something was scheduled for soon, `cancel` that a
worker should look at its leases, `schedule` that a schedule is due sooner than was known, `limits` that somebody set
one, `dependency` that a run may wait for another that has ended. Each process sends at most one wake-up per line in a
short while.

A wake-up is sent after its COMMIT, over a connection of its own. Inside, it would take a lock that the whole cluster
shares and hold it until the disk and the standby have confirmed: one commit at a time.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.store.connection import patience
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection

log = structlog.get_logger()

READY, LATER, CANCEL = "mainspring_ready", "mainspring_later", "mainspring_cancel"
SCHEDULE, LIMITS, DEPENDENCY = "mainspring_schedule", "mainspring_limits", "mainspring_dependency"
FOR_WORKERS, FOR_SCHEDULERS = (READY, LATER, CANCEL, LIMITS, DEPENDENCY), (SCHEDULE,)
QUIET_SECONDS = 0.01
# A caller's own transaction commits when its owner likes: wake a little later, and again.
CALLERS_COMMIT_SECONDS = (0.01, 0.05, 0.25)
SEND_SECONDS = 5.0
CLOSE_SECONDS = 1.0
MOST_PENDING = 10_000


class WakeUp(NamedTuple):
    channel: str
    payload: str

    def __str__(self) -> str:
        return f"{self.channel} {self.payload}"


def ready(lane: int, line: int, priority: int) -> WakeUp:
    return WakeUp(READY, f"{lane}:{line}:{priority}")


def later() -> WakeUp:
    return WakeUp(LATER, "")


def cancel(worker_id: UUID) -> WakeUp:
    return WakeUp(CANCEL, str(worker_id))


def schedule(lane: int) -> WakeUp:
    return WakeUp(SCHEDULE, str(lane))


def limits() -> WakeUp:
    return WakeUp(LIMITS, "")


def dependency() -> WakeUp:
    return WakeUp(DEPENDENCY, "")


def parse_ready(payload: str) -> tuple[int, int, int]:
    lane, line, priority = payload.split(":")
    return int(lane), int(line), int(priority)


class Quietener:
    """Lets through one wake-up per line and urgency in a short while; the rest would tell nobody anything new."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}

    def pass_on(self, wake_ups: Iterable[WakeUp]) -> list[WakeUp]:
        now = self._clock.monotonic()
        if len(self._last) > 10_000:
            self._last = {key: at for key, at in self._last.items() if now - at < QUIET_SECONDS}
        return [each for each in dict.fromkeys(wake_ups) if self._is_due(self._subject(each), now)]

    def _subject(self, wake_up: WakeUp) -> str:
        # The lane does not count: a worker that looks at a line soon sees its other lanes too.
        return wake_up.channel + wake_up.payload.partition(":")[2]

    def _is_due(self, subject: str, now: float) -> bool:
        if now - self._last.get(subject, -1.0) < QUIET_SECONDS:
            return False
        self._last[subject] = now
        return True


class Waker:
    """Sends wake-ups in the background, those of a moment in one statement. What fails is lost: it was a hint."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._pending: dict[WakeUp, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False

    def wake(self, wake_ups: Iterable[WakeUp]) -> None:
        """Send these soon; nobody waits for it, and nobody hears of a failure."""
        if self._is_closed:
            return
        if len(self._pending) < MOST_PENDING:
            self._pending.update(dict.fromkeys(wake_ups))
        if self._pending and (self._sending is None or self._sending.done()):
            # In a context of its own: what it logs is none of the attempt's that happens to wake somebody.
            self._sending = asyncio.create_task(self._send_all(), context=Context())

    def wake_after_callers_commit(self, wake_ups: Sequence[WakeUp]) -> None:
        """For what a caller's own transaction will show to others."""
        for seconds in CALLERS_COMMIT_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self.wake, wake_ups)

    async def _send_all(self) -> None:
        while self._pending:
            wake_ups, self._pending = list(self._pending), {}
            try:
                await self._send(wake_ups)
            except DATABASE_ERRORS as error:
                log.info("wake-ups were not sent", count=len(wake_ups), cause=str(error))
                self._drop_connection()

    async def _send(self, wake_ups: list[WakeUp]) -> None:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        with patience(self._connection, SEND_SECONDS):
            await load("notify/send").execute(
                self._connection,
                channels=[each.channel for each in wake_ups],
                payloads=[each.payload for each in wake_ups],
            )

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Send what is pending if that is quick, and end."""
        self._is_closed = True
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=CLOSE_SECONDS)
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._drop_connection()


def send(connection: Connection, wake_ups: Iterable[WakeUp]) -> None:
    """Send these once the open transaction of this connection has committed; at once if none is open."""
    connection.wake_after_commit(wake_ups)


async def listen(
    connection: Connection, hear: Callable[[str, str], None], channels: Sequence[str] = FOR_WORKERS
) -> None:
    """Call `hear(channel, payload)` for every wake-up that reaches this connection."""

    def on_notify(_connection: object, _pid: int, channel: str, payload: object) -> None:
        hear(channel, str(payload))

    for channel in channels:
        await connection.add_listener(channel, on_notify)
