"""How fast runs finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.clock import Clock

_RATE_WINDOW = 0.1


class Rate:
    """How many runs finish per second, lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._per_second = 0.0
        self.count = 0

    @property
    def per_second(self) -> float:
        span = self._clock.monotonic() - self._since
        if span >= _RATE_WINDOW:
            self._per_second = (self._per_second + self.count / span) / 2
            self._since += span
            self.count = 0
        return self._per_second
