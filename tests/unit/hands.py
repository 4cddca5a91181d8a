"""Made by hand: runs that nobody claimed, and a monotonic clock that moves only then.

That is for rules about spans, where a microsecond too many is a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mainspring.model.actor import DEFAULT_TENANT, Tenant
from mainspring.store.columns import CLAIMED
from mainspring.store.jobs import TenantLine
from mainspring.worker.served_jobs import ServedJobs
from mainspring.worker.successes import Success

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mainspring.model.line import Line
    from mainspring.store.leases import Settled
    from mainspring.worker.registry import Handler

DEFAULT = Tenant(DEFAULT_TENANT, "default")


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


def tenant_lines(numbers: Mapping[Line, int], tenant: Tenant = DEFAULT, weight: int = 1) -> list[TenantLine]:
    """Lines of a tenant, as a worker finds them in the database."""
    return [TenantLine(number, line, tenant.id, tenant.name, weight) for line, number in numbers.items()]


def served_jobs(handlers: Mapping[int, Handler], tenant: Tenant = DEFAULT) -> ServedJobs:
    """Jobs of a tenant by number, as a registered worker knows them."""
    served = ServedJobs(handlers.values())
    for number, handler in handlers.items():
        served.add(number, tenant.id, handler.name)
    return served


def settling(take: Callable[[Settled], None]) -> Callable[[Settled | Success], None]:
    """What an executor hands its results to: as if a flusher settled them one by one."""
    return lambda result: take(result.settled() if isinstance(result, Success) else result)
