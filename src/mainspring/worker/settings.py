"""How a worker is to behave."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from mainspring.errors import InvalidInput
from mainspring.model.job import checked_name

MOST_PROCESSES = 256
MAX_WEIGHT = 1_000
THREADS_PER_CORE, MOST_THREADS = 4, 32  # unless told


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Spans are in seconds. Heartbeats must come at least three times as often as the lease time runs out."""

    queues: tuple[str, ...] = ("default",)
    weights: dict[str, int] = field(default_factory=dict)  # of all these queues, or of none: then they are alike
    labels: tuple[str, ...] = ()  # what this worker has, for runs that require it
    slots: int = 200
    threads: int | None = None  # for handlers that are not async; 4 for each core, at most 32, unless told
    processes: int = 1
    autoscale: tuple[int, int] | None = None  # fewest and most processes, by how much work there is
    lease_time: float = 30.0
    heartbeat_interval: float | None = None  # a sixth of the lease time unless told
    grace: float = 25.0  # how long a drain waits for handlers
    cancel_grace: float = 5.0  # how long a cancelled handler has before it is abandoned
    poll_interval: float = 0.5
    max_unsettled: int = 4_000  # results not settled yet; beyond it nothing is claimed
    give_up_after: float = 120.0  # how long to try in vain to settle, before another process takes over
    keeper: bool = True

    def __post_init__(self) -> None:
        if not self.queues:
            raise _invalid("queues", self.queues, "must name at least one queue")
        for queue in self.queues:
            checked_name(queue, "queue")
        if self.weights and set(self.weights) != set(self.queues):
            raise _invalid("weights", self.weights, "must give a weight to each queue, or to none")
        for weight in self.weights.values():
            if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
                raise _invalid("weights", weight, f"must be whole numbers from 1 to {MAX_WEIGHT}")
        for label in self.labels:
            checked_name(label, "label")
        _check_range("slots", self.slots, 1, 10_000)
        if self.threads is not None:
            _check_range("threads", self.threads, 1, 10_000)
        _check_range("processes", self.processes, 1, MOST_PROCESSES)
        if self.autoscale is not None:
            _check_autoscale(*self.autoscale)
        _check_range("lease_time", self.lease_time, 0.5, 3600)
        _check_range("grace", self.grace, 0, 86_400)
        _check_range("cancel_grace", self.cancel_grace, 0, 86_400)
        _check_range("poll_interval", self.poll_interval, 0.01, 10)
        _check_range("max_unsettled", self.max_unsettled, 1, 1_000_000)
        _check_range("give_up_after", self.give_up_after, 1, 86_400)
        if self.heartbeat_interval is not None and not 0 < self.heartbeat_interval <= self.lease_time / 3:
            raise _invalid(
                "heartbeat_interval",
                self.heartbeat_interval,
                f"must be at most a third of lease_time ({self.lease_time} s)",
            )

    @property
    def thread_count(self) -> int:
        return self.threads or min(MOST_THREADS, THREADS_PER_CORE * _cores())

    @property
    def heartbeat_every(self) -> float:
        return self.heartbeat_interval if self.heartbeat_interval is not None else self.lease_time / 6


def _cores() -> int:
    """As many as this process may use, where the system tells; else all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_autoscale(least: int, most: int) -> None:
    if not 1 <= least <= most <= MOST_PROCESSES:
        raise _invalid("autoscale", f"{least}:{most}", f"must be FEWEST:MOST, from 1 to {MOST_PROCESSES}")


def _check_range(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise _invalid(name, value, f"must be a number from {least} to {most}")


def _invalid(name: str, value: object, rule: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is {value}; it {rule}.",
        code=f"invalid-{name.replace('_', '-')}",
        field=name,
        value=str(value),
        rule=rule,
    )
