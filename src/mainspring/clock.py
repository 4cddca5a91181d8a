"""The one clock of a process. Nothing else in the package asks the host what time it is.

Two kinds of time are kept apart: *wall* time (`now`) dates things for people and is corrected towards the
database where that matters; *monotonic* time (`monotonic`) measures spans and never steps.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the package may know about time."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The host's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
