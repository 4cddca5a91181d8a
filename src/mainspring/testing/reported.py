"""What an attempt told its context, in memory: for tests of handlers, without a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.clock import instant
from mainspring.model.payload import decode
from mainspring.model.report import LogLine

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.clock import Clock


class Reported:
    """Every word about progress, every line, every checkpoint, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.progressed: list[tuple[float, str]] = []
        self.lines: list[LogLine] = []
        self.checkpoints: list[Any] = []

    def progress(self, fraction: float, message: str) -> None:
        self.progressed.append((fraction, message))

    def log(self, level: str, logger: str, text: str) -> None:
        at = instant(self._clock)
        self.lines.append(LogLine(at=at, level=level, logger=logger, text=text, attempt=1, fence=1))

    async def checkpoint(self, data: bytes) -> None:
        self.checkpoint_sync(data)

    def checkpoint_sync(self, data: bytes) -> None:
        self.checkpoints.append(decode(data))

    async def previous_success_at(self) -> datetime | None:
        return self.previous_success_at_sync()

    def previous_success_at_sync(self) -> datetime | None:
        """Nothing that was made inline is an occurrence."""
        return None
