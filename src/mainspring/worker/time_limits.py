"""When attempts have to stop: because their time is up, or because somebody else may start the same run soon.

How long an attempt may take follows from what its job, its run and the time since its first start say. There are two
limits. At the first one the handler is told to stop; it then has the same grace as one that was cancelled. At the
second, the *hard* limit, it is killed or abandoned.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import AttemptTimedOut
from mainspring.model.line import Delivery
from mainspring.model.policy import MICROSECOND, NO_OVERRIDES, Overrides
from mainspring.store.instants import UNIX_TO_POSTGRES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.clock import Clock
    from mainspring.model.job import JobDefinition
    from mainspring.store.instants import Micros
    from mainspring.worker.executor import Executor
    from mainspring.worker.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """What sets a run apart from a plain first attempt: see `special_of` in the schema."""

    crashes: int = 0
    first_started_at: int | None = None  # microseconds since 1970
    overrides: Overrides | None = None
    gates: str | None = None  # of which the run holds slots, one per line

    def first_start(self, now: Micros) -> int:
        """When the run started first, in microseconds since 2000: now, if it never did."""
        return now[0] if self.first_started_at is None else self.first_started_at - UNIX_TO_POSTGRES


PLAIN = Special()
_special = msgspec.json.Decoder(Special)


def special_of(text: str | None) -> Special:
    if text is None:
        return PLAIN
    document, _, gates = text.partition("\n")
    special = _special.decode(document) if document else PLAIN
    return replace(special, gates=gates) if gates else special


class _Mark(msgspec.Struct):
    schedule_gate: str | None = None


class _Marked(msgspec.Struct):
    overrides: _Mark | None = None


_marked = msgspec.json.Decoder(_Marked)


def schedule_gate_of(text: str) -> str | None:
    """The mark of a run whose schedule has to know of its end: see `watch_schedule_runs`."""
    if '"schedule_gate"' not in text:
        return None
    mark = _marked.decode(text.partition("\n")[0]).overrides
    return None if mark is None else mark.schedule_gate


@dataclass(slots=True, kw_only=True)
class TimeLimit:
    """How long an attempt may take."""

    seconds: float
    run_ends_at: int | None = None  # when the run's own time is up, in microseconds since 2000
    is_last: bool = False  # it is the run's time that runs out first
    exceeded: AttemptTimedOut | None = None  # once the time is up

    def exceed(self) -> None:
        if self.is_last:
            error = AttemptTimedOut("The run's time is up, counted from its first start.", code="run-timed-out")
        else:
            error = AttemptTimedOut(f"The attempt took longer than {self.seconds:g} s.")
        self.exceeded = error

    def leaves_time_until(self, due: int) -> bool:
        """Whether the run's time is not up yet at that instant."""
        return self.run_ends_at is None or due < self.run_ends_at


def limit_of(definition: JobDefinition, special: Special, now: Micros) -> TimeLimit | None:
    """The attempt's own timeout, or what is left of the run's if that is less."""
    overrides = special.overrides or NO_OVERRIDES
    timeout = overrides.timeout or definition.timeout
    run_timeout = overrides.run_timeout or definition.run_timeout
    seconds = None if timeout is None else timeout.total_seconds()
    if run_timeout is None:
        return None if seconds is None else TimeLimit(seconds=seconds)
    run_ends_at = special.first_start(now) + run_timeout // MICROSECOND
    left = (run_ends_at - now[0]) / 1_000_000
    if seconds is None or left <= seconds:
        return TimeLimit(seconds=left, run_ends_at=run_ends_at, is_last=True)
    return TimeLimit(seconds=seconds, run_ends_at=run_ends_at)


SWEEP_SECONDS = 0.05
NEVER = float("inf")


class Timekeeper:
    """Watches attempts that may take only so long, and says when their time is up.

    Attempts without a limit cost nothing here; for the others there is one sweep every 50 milliseconds, not a timer
    each. Whoever supervises this process is told when the next hard limit is, before the handler begins: if by then the
    event loop is blocked, nobody here can say so any more.
    """

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


DISCONNECT_MARGIN = 0.2  # of the lease time: when to stop what must not overlap


class OverlapGuard:
    """Stops runs that must not overlap before somebody else may start them: when heartbeats do not reach the database.

    A worker's registration counts as a heartbeat.
    """

    def __init__(self, *, clock: Clock, lease_time: float, executor: Executor) -> None:
        self._clock = clock
        self._lease_time = lease_time
        self._executor = executor
        self._last_heartbeat = clock.monotonic()

    def heartbeat_arrived(self) -> None:
        """A heartbeat of this worker reached the database."""
        self._last_heartbeat = self._clock.monotonic()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(min(0.5, self._lease_time / 10))
            self.look()

    def look(self) -> None:
        if self._clock.monotonic() - self._last_heartbeat > self._lease_time * (1 - DISCONNECT_MARGIN):
            self._executor.interrupt(filter(_must_not_overlap, self._executor.running_works), grace=0.0)


def _must_not_overlap(work: Work) -> bool:
    if work.delivery is Delivery.AT_MOST_ONCE:
        return True
    return work.handler is not None and work.handler.definition.on_disconnect == "stop"
