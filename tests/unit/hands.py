"""A monotonic clock that moves only by hand: for rules about spans, where a microsecond too many is a wrong answer."""

from __future__ import annotations


class HandClock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def micros(self) -> int:
        return 0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
