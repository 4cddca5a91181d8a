"""The one clock of a process. Nothing else in the package asks the host what time it is.

Two kinds of time are kept apart: *wall* time (`micros`, `instant`) dates things for people and is corrected towards
the database where that matters; *monotonic* time measures spans and never steps.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What the rest of the package may know about time."""

    def micros(self) -> int: ...  # since 1970

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def correct(self, micros: int) -> None: ...  # the database's clock is ahead by so much


class SystemClock:
    """The host's clock, corrected towards the database's."""

    def __init__(self) -> None:
        self._offset = 0

    def micros(self) -> int:
        return time.time_ns() // 1_000 + self._offset

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def correct(self, micros: int) -> None:
        self._offset += micros


def instant(clock: Clock) -> datetime:
    """The clock's time as people read it."""
    return EPOCH + timedelta(microseconds=clock.micros())
