"""Watches attempts that may take only so long, and says when their time is up.

There are two limits. At the first one the handler is told to stop; it then has the same grace as one that was
cancelled. At the second, the *hard* limit, it is killed or abandoned. Attempts without a limit cost nothing here; for
the others there is one sweep every 50 milliseconds, not a timer each.

Whoever supervises this process is told when the next hard limit is, before the handler begins: if by then the event
loop is blocked, nobody here can say so any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.clock import Clock
    from mainspring.worker.work import Work

SWEEP_SECONDS = 0.05
NEVER = float("inf")


class Timekeeper:
    def __init__(
        self,
        *,
        clock: Clock,
        grace: float,
        time_is_up: Callable[[Work], None],
        time_is_over: Callable[[Work], None],
        announce: Callable[[float], None],
    ) -> None:
        self._clock = clock
        self._grace = grace
        self._time_is_up = time_is_up
        self._time_is_over = time_is_over
        self._announce = announce
        self._hard_limits: dict[Work, float] = {}  # on the monotonic clock
        self._announced = NEVER
        self._sweeping: asyncio.TimerHandle | None = None

    def watch(self, work: Work) -> None:
        """The handler of this limited run begins now."""
        assert work.limit is not None
        hard_limit = self._clock.monotonic() + work.limit.seconds + self._grace
        self._hard_limits[work] = hard_limit
        if hard_limit < self._announced:
            self._announce_if_new(hard_limit)
        if self._sweeping is None:
            self._sweep_later()

    def forget(self, work: Work) -> None:
        self._hard_limits.pop(work, None)

    @property
    def next_limit(self) -> float:
        """When something happens next, on the monotonic clock, if nothing else does."""
        return min(
            (hard - (0.0 if work.is_over_time else self._grace) for work, hard in self._hard_limits.items()),
            default=NEVER,
        )

    def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        for work, hard_limit in list(self._hard_limits.items()):
            if now >= hard_limit and work.is_over_time:
                del self._hard_limits[work]
                self._time_is_over(work)
            elif now >= hard_limit - self._grace and not work.is_over_time:
                self._hard_limits[work] = now + self._grace  # counted from being told, which may have been late
                self._time_is_up(work)
        self._announce_if_new(min(self._hard_limits.values(), default=NEVER))
        self._sweeping = None
        if self._hard_limits:
            self._sweep_later()

    def _announce_if_new(self, hard_limit: float) -> None:
        if hard_limit != self._announced:
            self._announced = hard_limit
            self._announce(hard_limit)
