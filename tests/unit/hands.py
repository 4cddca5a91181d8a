"""Made by hand: runs that nobody claimed, and a monotonic clock that moves only then.

That is for rules about spans, where a microsecond too many is a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mainspring.store.columns import CLAIMED
from mainspring.worker.successes import Success

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.leases import Settled


class HandClock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def micros(self) -> int:
        return 0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def correct(self, micros: int) -> None: ...


def claimed_row(**values: Any) -> Any:
    """A run as a claim returns it; what is not given is nothing, or zero."""
    usual = {"id": uuid4(), "attempt": 0, "fence": 1, "codec": 0, "priority": 5, "payload": b"{}"}
    return tuple((usual | values).get(name) for name in CLAIMED)


def settling(take: Callable[[Settled], None]) -> Callable[[Settled | Success], None]:
    """What an executor hands its results to: as if a flusher settled them one by one."""
    return lambda result: take(result.settled() if isinstance(result, Success) else result)
