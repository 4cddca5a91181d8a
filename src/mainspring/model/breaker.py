"""Circuit breakers: after so many failures the runs of a job wait, until one that is tried succeeds. Pure rules.

A breaker is *closed* while all goes well, for each value of its key. When too many attempts fail within a while it
*opens* for that value: runs wait at a gate like that of a limit, which has a number of its own, so that nobody has
passed it before. When the instant of the next *probe* has come, one of them may go on: the breaker is *half-open*. If
it succeeds, the breaker closes; if it fails, the next probe waits longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.lifecycle import Outcome
from mainspring.model.limit_key import UNKNOWN_KEY, escaped, limit_key
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

MAX_FAILURES = 1_000_000
SHORTEST, LONGEST_WINDOW, LONGEST_PAUSE = timedelta(seconds=1), timedelta(days=1), timedelta(days=1)
MAX_PROBE_AFTER = timedelta(minutes=10)  # to which pauses between probes grow, unless told
MAX_OPEN_VALUES = 1_000  # of one breaker: workers keep them in memory. Beyond, it opens for the whole job
SLICES = 60  # of the window, in which outcomes are counted; at least a second each
WHOLE_JOB = ""  # instead of a value of the key
SLACK_SECONDS = 10.0  # within which whoever releases runs has read what it needs

# Failures that say nothing about what the job calls: the run itself is at fault, or its handler has decided so.
FAULTS_OF_RUNS = frozenset({"unfit-arguments", "invalid-result", "invalid-answers", "failed-by-handler"})


class BreakerState(StrEnum):
    """Whether runs go on."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"  # one run is being tried


@dataclass(frozen=True, slots=True, init=False)
class Breaker:
    """After so many failures within a while, runs wait, and single ones are tried until one succeeds.

    `Breaker(5)`, `Breaker(20, within=timedelta(minutes=5), failure_ratio=0.5, key="customer")`. `failure_ratio`: only
    if at least this part of the attempts failed. With a key, each of its values has a breaker of its own. The first
    probe goes out `probe_after` it opened; after each that fails the pause doubles, up to `max_probe_after`.
    """

    failures: int = 5
    within: timedelta = timedelta(minutes=1)
    failure_ratio: float | None = None
    key: str | None = None
    probe_after: timedelta = timedelta(seconds=30)
    max_probe_after: timedelta = MAX_PROBE_AFTER

    def __init__(
        self,
        failures: int = 5,
        *,
        within: timedelta | float = timedelta(minutes=1),
        failure_ratio: float | None = None,
        key: str | None = None,
        probe_after: timedelta | float = timedelta(seconds=30),
        max_probe_after: timedelta | float | None = None,
    ) -> None:
        # Written out, because spans are given in several ways.
        keep = partial(object.__setattr__, self)
        if not isinstance(failures, int) or isinstance(failures, bool) or not 1 <= failures <= MAX_FAILURES:
            raise invalid("failures", failures, f"must be a whole number from 1 to {MAX_FAILURES:,}")
        keep("failures", failures)
        keep("within", _span(within, "within", LONGEST_WINDOW))
        keep("failure_ratio", None if failure_ratio is None else _ratio(failure_ratio))
        keep("key", None if key is None else limit_key(key).source)
        keep("probe_after", _span(probe_after, "probe_after", LONGEST_PAUSE))
        longest = max(self.probe_after, MAX_PROBE_AFTER) if max_probe_after is None else max_probe_after
        keep("max_probe_after", _span(longest, "max_probe_after", LONGEST_PAUSE))
        if self.max_probe_after < self.probe_after:
            raise invalid("max_probe_after", max_probe_after, "must be at least probe_after")

    def trips(self, failures: int, successes: int) -> bool:
        """Whether so many failures among so many attempts within its window open it."""
        ratio = 0.0 if self.failure_ratio is None else self.failure_ratio
        return failures >= self.failures and failures >= ratio * (failures + successes)

    def pause_after(self, probes: int) -> float:
        """Seconds until the next probe, when so many have gone out."""
        longest = self.max_probe_after.total_seconds()
        return min(longest, self.probe_after.total_seconds() * 2.0 ** min(probes, 40))

    @property
    def slice_seconds(self) -> float:
        """How finely outcomes are counted."""
        return max(1.0, self.within.total_seconds() / SLICES)

    @property
    def counts_successes(self) -> bool:
        return self.failure_ratio is not None


def checked_breaker(breaker: object) -> Breaker | None:
    if breaker is not None and not isinstance(breaker, Breaker):
        raise invalid("breaker", breaker, "must be a Breaker")
    return breaker


class BreakerRule(NamedTuple):
    """A breaker as it is in force: of a job of a tenant."""

    id: int  # another one with each change: outcomes are counted anew then
    tenant_id: int
    job: str
    breaker: Breaker

    def value_of(self, payload: bytes) -> str:
        """By which a run is counted: a run that has no such argument counts among those that have none."""
        if self.breaker.key is None:
            return WHOLE_JOB
        try:
            return limit_key(self.breaker.key).of(msgspec.json.decode(payload))
        except (InvalidInput, msgspec.MsgspecError):
            return UNKNOWN_KEY


class Opening(NamedTuple):
    """A breaker that is open, for one value of its key or for the whole job. Its number is the gate's."""

    id: int
    job: str
    value: str
    key: str | None
    opened_at: datetime
    opened_by: str
    failures: int | None  # that opened it; None: somebody did
    attempts: int | None
    within: timedelta
    error: str | None  # the last of those failures
    reason: str
    has_probes: bool  # else it stays open until somebody closes it
    breaker: Breaker

    @property
    def gate(self) -> str:
        return str(self.id)

    def seconds_until_probe(self, progress: ProbeProgress | None, now: float) -> float:
        """How long until the next probe may go out; infinite where none does.

        A much longer wait than any that was ever meant is one from before the clock was set back, or the breaker
        changed. A little longer: the last probe has failed since somebody asked what time it is.
        """
        if not self.has_probes:
            return float("inf")
        sent = 0 if progress is None else progress.sent
        probe_at = self.opened_at.timestamp() + self.breaker.pause_after(0) if progress is None else progress.probe_at
        seconds, pause = max(0.0, probe_at - now), self.breaker.pause_after(sent)
        return min(seconds, pause) if seconds <= pause + SLACK_SECONDS else 0.0

    def next_probe_at(self, progress: ProbeProgress | None, now: datetime) -> datetime | None:
        seconds = self.seconds_until_probe(progress, now.timestamp())
        return None if seconds == float("inf") else now + timedelta(seconds=seconds)


class ProbeProgress(NamedTuple):
    """How many probes have gone out at an opening, and before when none may follow (seconds since 1970)."""

    sent: int
    probe_at: float
    error: str | None = None  # of the last one that failed


class OpenBreakers:
    """The openings of a tenant, by job and value."""

    def __init__(self, rules: Mapping[str, BreakerRule], openings: Iterable[Opening]) -> None:
        self._rules = rules
        self._gates: dict[str, dict[str, str]] = {}
        found = tuple(openings)
        self.ids = frozenset(opening.id for opening in found)
        for opening in found:
            self._gates.setdefault(opening.job, {})[opening.value] = opening.gate
        self.values = frozenset((job, value) for job, gates in self._gates.items() for value in gates)

    def has(self, job: str) -> bool:
        return job in self._gates

    def is_open(self, job: str, value: str) -> bool:
        return (job, value) in self.values or (job, WHOLE_JOB) in self.values

    def gate_for(self, job: str, payload: bytes) -> str | None:
        """Where a run of this job has to wait; None: its breaker is closed, or there is none."""
        gates = self._gates.get(job)
        if gates is None:
            return None
        if (whole := gates.get(WHOLE_JOB)) is not None:
            return whole
        return gates.get(self._rules[job].value_of(payload)) if job in self._rules else None


class Counts(NamedTuple):
    """How attempts of one value ended, within a while."""

    failures: int = 0
    successes: int = 0


def is_failure(outcome: str, code: str | None) -> bool:
    """Whether an attempt that had started says that what the job calls does not work."""
    return outcome in (Outcome.FAILED, Outcome.TIMED_OUT) and code not in FAULTS_OF_RUNS


def checked_value(breaker: Breaker, job: str, value: object) -> str:
    """A value of the key as a person gives it; without one, the whole job."""
    if value is None:
        return WHOLE_JOB
    if breaker.key is None:
        raise InvalidInput(
            f"value is {quoted(value)}, but the circuit breaker of job {job} has no key: all its runs are one.",
            code="breaker-without-key",
            hint="Leave out the value.",
            field="value",
        )
    return UNKNOWN_KEY if value == UNKNOWN_KEY else escaped(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningStatus:
    """One value for which a breaker is open."""

    value: str | None  # None: the whole job
    state: BreakerState
    opened_at: datetime
    opened_by: str
    failures: int | None  # that opened it; None: somebody did
    attempts: int | None
    error: str | None  # the last failure: of those that opened it, or of a probe
    reason: str
    probes: int  # so many have gone out
    probe_run: UUID | None  # the one that is being tried
    next_probe_at: datetime | None  # None: none goes out before somebody closes it, or one is being tried
    waiting: int
    waiting_is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerStatus:
    """A circuit breaker as people see it: what it says, who set it, and for which values it is open."""

    job: str
    state: BreakerState
    breaker: Breaker
    failures: int  # within its window, of all values
    openings: Sequence[OpeningStatus]  # the first hundred
    open_values: int
    waiting: int
    waiting_is_exact: bool
    since: datetime | None  # it is open
    next_probe_at: datetime | None
    is_declared: bool  # in an application's code
    is_as_declared: bool
    changed_at: datetime
    changed_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerEvent:
    """What happened to a breaker: it was set, removed, opened or closed."""

    at: datetime
    actor: str
    action: str
    detail: Mapping[str, Any]


def _span(given: Any, name: str, longest: timedelta) -> timedelta:
    rule = f"must be a timedelta or a number of seconds, from 1 second to {longest.days} day"
    if isinstance(given, (int, float)) and not isinstance(given, bool) and abs(given) <= longest.total_seconds():
        given = timedelta(seconds=given)
    if not isinstance(given, timedelta) or not SHORTEST <= given <= longest:
        raise invalid(name, given, rule)
    return given


def _ratio(given: Any) -> float:
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 < given <= 1:
        raise invalid("failure_ratio", given, "must be a number above 0, up to 1")
    return float(given)
