"""Wake-ups between processes. Polling is the guarantee; these only make it quick.

`ready` says that a line has something to claim, `later` that something was scheduled for soon, `cancel` that a
worker should look at its leases. Each process sends at most one wake-up per line in a short while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    import asyncpg

    from mainspring.clock import Clock
    from mainspring.store.database import Connection

READY, LATER, CANCEL = "mainspring_ready", "mainspring_later", "mainspring_cancel"
QUIET_SECONDS = 0.01


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


async def send(connection: Connection, wake_ups: Sequence[WakeUp]) -> None:
    for wake_up in wake_ups:
        await connection.execute("select pg_notify($1, $2)", wake_up.channel, wake_up.payload)


async def listen(connection: asyncpg.Connection[asyncpg.Record], hear: Callable[[str, str], None]) -> None:
    """Call `hear(channel, payload)` for every wake-up that reaches this connection."""

    def on_notify(_connection: object, _pid: int, channel: str, payload: object) -> None:
        hear(channel, str(payload))

    for channel in (READY, LATER, CANCEL):
        await connection.add_listener(channel, on_notify)
