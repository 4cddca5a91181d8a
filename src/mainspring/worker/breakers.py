"""Counts how attempts of jobs with a circuit breaker ended, and opens and closes breakers by it.

Outcomes are counted in memory, by value of the breaker's key, and told to the database a moment later: failures at
once, so to say; successes, which matter only to breakers with a failure ratio, once a second. What a worker had counted
and not told when it was killed is lost, and so is what the database did not answer for: nothing is counted twice.
Whoever tells of failures looks at what all workers have counted, and opens the breaker if that is too much.

A run that holds a slot of an open breaker is its probe. If it succeeds, the breaker closes; if not, the flusher puts
the next probe off before the slot is free (`failed_probes`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import structlog

from mainspring.errors import NodeUnreachable
from mainspring.model.breaker import WHOLE_JOB, Counts, is_failure
from mainspring.model.concurrency import rule_id
from mainspring.model.lifecycle import Outcome
from mainspring.model.payload import printable
from mainspring.store import breakers
from mainspring.store.breakers import MAX_ERROR_LENGTH, Gauge, Who
from mainspring.store.columns import JOB, SPECIAL, AttemptRecord
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.instants import UNIX_TO_POSTGRES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mainspring.model.breaker import BreakerRule
    from mainspring.model.concurrency import TenantRules
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Settled, Settlement
    from mainspring.worker.gating import Gating
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.served_jobs import ServedJobs
    from mainspring.worker.successes import WholeLease

log = structlog.get_logger()

GATHER_SECONDS = 0.05  # failures that come together are told together
SUCCESSES_EVERY = 1.0
AFTER_FAILURE_SECONDS = 0.5
MOST_VALUES = 10_000  # counted and not told: beyond, others are not counted

_JOB, _OUTCOME, _STARTED, _ERROR = (
    AttemptRecord._fields.index(name) for name in ("job_id", "outcome", "started_at", "error")
)


class FailedAttempt(NamedTuple):
    """What an attempt failed with."""

    code: str | None
    text: str


class Tally:
    """How attempts of one value ended since that was told last."""

    __slots__ = ("error", "failures", "successes")

    def __init__(self) -> None:
        self.successes, self.failures, self.error = 0, 0, ""


class BreakerMonitor:
    """Is told what was settled. `heard_of_gates` is told where a breaker has closed."""

    def __init__(
        self,
        *,
        worker: WorkerIdentity,
        database: Database,
        jobs: ServedJobs,
        gating: Gating,
        heard_of_gates: Callable[[Iterable[str]], None],
    ) -> None:
        self._name = f"worker {worker.id}"
        self._lanes = worker.lanes
        self._clock = worker.clock
        self._database = database
        self._jobs = jobs
        self._gating = gating
        self._heard_of_gates = heard_of_gates
        self._tallies: dict[Gauge, Tally] = {}
        self._succeeded: dict[int, int] = {}  # openings whose probes have, and whose they are
        self._learned_of = gating.rules, 0
        self._watched: dict[int, BreakerRule] = {}  # by the numbers of jobs that are executed here
        self._has_something = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._flushing = asyncio.Lock()

    # ── being told ──────────────────────────────────────────────────────────────────────────────────────────

    def note(self, batch: list[Settled], settlement: Settlement) -> None:
        """These were settled."""
        rules = self._learned()
        if not self._watched:
            return
        for each in batch:
            rule = self._rule(each)
            if rule is None or each.record[_STARTED] is None:
                continue
            if each.run_id in settlement.succeeded or each.record[_OUTCOME] == Outcome.SUCCEEDED:
                self._note_success(rules, rule, each.payload, each.record[_STARTED], each.gates)
            elif each.run_id not in settlement.overruled:
                self._note_failure(rules, rule, each)

    def note_completed(self, leases: Iterable[WholeLease]) -> None:
        """All runs of these leases succeeded."""
        rules = self._learned()
        if not self._watched:
            return
        counts_all = any(rule.breaker.counts_successes for rule in self._watched.values())
        for lease in leases:
            for work, _, _ in lease.successes:
                if not counts_all and work.row[SPECIAL] is None:
                    continue
                rule = self._watched.get(work.row[JOB])
                if rule is not None and work.started_at is not None:
                    self._note_success(rules, rule, work.payload, work.started_at, work.gates)

    def _rule(self, settled: Settled) -> BreakerRule | None:
        return self._watched.get(settled.record[_JOB])

    def _note_success(
        self, rules: TenantRules, rule: BreakerRule, payload: bytes | None, started: Micros, gates: str | None
    ) -> None:
        if probed := _passed(gates) - rules.limit_ids:  # also what has opened since this worker looked
            self._succeeded |= dict.fromkeys(probed, rule.tenant_id)
            self._call(is_urgent=True)
        if rule.breaker.counts_successes and (tally := self._tally(rules, rule, payload, started)) is not None:
            tally.successes += 1
            self._call(is_urgent=False)

    def _note_failure(self, rules: TenantRules, rule: BreakerRule, settled: Settled) -> None:
        failure = _failure(settled)
        if failure is None or _passed(settled.gates) & rules.open_ids:
            return
        tally = self._tally(rules, rule, settled.payload, settled.record[_STARTED])
        if tally is not None:
            tally.failures += 1
            tally.error = failure.text
            self._call(is_urgent=True)

    def _tally(self, rules: TenantRules, rule: BreakerRule, payload: bytes | None, started: Micros) -> Tally | None:
        """Where an outcome is counted; None: nowhere. What began before a breaker closed says nothing about now."""
        value = rule.value_of(payload or b"null")
        if rules.of(rule.tenant_id).open_breakers.is_open(rule.job, value):
            return None
        closed_at = max(self._gating.closed_at.get((rule.tenant_id, rule.job, each), 0) for each in (value, WHOLE_JOB))
        if started[0] + UNIX_TO_POSTGRES < closed_at:
            return None
        gauge = Gauge(rule, value)
        tally = self._tallies.get(gauge)
        if tally is None and len(self._tallies) < MOST_VALUES:
            tally = self._tallies[gauge] = Tally()
        return tally

    def _call(self, *, is_urgent: bool) -> None:
        self._has_something.set()
        if is_urgent:
            self._is_urgent.set()

    def _learned(self) -> TenantRules:
        """The breakers there are, after a look at what has changed since the last time."""
        rules = self._gating.rules
        if self._learned_of != (rules, len(self._jobs)):
            self._learned_of = rules, len(self._jobs)
            self._watched = {
                number: rule
                for tenant, book in rules.books.items()
                if book.breakers
                for number in self._jobs.of_tenant(tenant)
                if (rule := book.breakers.get(self._jobs.handlers[number].name)) is not None
            }
        return rules

    def failed_probes(self, batch: Iterable[Settled]) -> dict[int, str]:
        """Which openings were probed by runs that failed, and with what: before these are settled."""
        rules = self._learned()
        if not self._watched:
            return {}
        return {
            number: failure.text
            for each in batch
            if each.gates is not None and self._rule(each) and (failure := _failure(each)) is not None
            for number in _passed(each.gates) & rules.open_ids
        }

    # ── telling ─────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        while True:
            await self._has_something.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SUCCESSES_EVERY):
                    await self._is_urgent.wait()
            await self._clock.sleep(GATHER_SECONDS)
            if not await self.flush():
                await self._clock.sleep(AFTER_FAILURE_SECONDS)

    async def flush(self) -> bool:
        """Tell what was counted, and open and close what has to be; answers whether the database did."""
        async with self._flushing:
            self._has_something.clear()
            self._is_urgent.clear()
            tallies, self._tallies = self._tallies, {}
            succeeded, self._succeeded = self._succeeded, {}
            try:
                if tallies or succeeded:
                    async with self._database.acquire() as connection:
                        await self._close(connection, succeeded)
                        await self._tell(connection, tallies)
            except ALL_DATABASE_ERRORS as error:
                log.warning("circuit breakers wait for the database", cause=str(error))
                self._succeeded |= succeeded
                self._call(is_urgent=True)
                return isinstance(error, NodeUnreachable) and await self._database.leave_out(error)
            return True

    async def _close(self, connection: Connection, succeeded: Mapping[int, int]) -> None:
        for tenant in {*succeeded.values()}:
            numbers = [number for number, whose in succeeded.items() if whose == tenant]
            await breakers.close_after_success(connection, self._lanes, numbers, Who(tenant, self._name))
            self._heard_of_gates(str(number) for number in numbers)
        if succeeded:
            await self._gating.refresh(connection)

    async def _tell(self, connection: Connection, tallies: dict[Gauge, Tally]) -> None:
        """Write first and look then: of two who write at once, the later one sees both."""
        counted = {gauge: Counts(tally.failures, tally.successes) for gauge, tally in tallies.items()}
        await breakers.tally(connection, self._lanes, counted)
        found = await breakers.totals(connection, self._lanes, [each for each in counted if counted[each].failures])
        tripped: defaultdict[BreakerRule, dict[str, str]] = defaultdict(dict)
        for gauge, counts in found.items():
            if gauge.rule.breaker.trips(*counts):
                tripped[gauge.rule][gauge.value] = tallies[gauge].error
        for rule, failing in tripped.items():
            who = Who(rule.tenant_id, self._name)
            opened = await breakers.open_tripped(connection, self._lanes, rule, failing, who)
            for value, (failures, _) in opened.items():
                log.warning("a circuit breaker opened", job=rule.job, value=value, failures=failures)
        if tripped:
            await self._gating.refresh(connection)


def _passed(gates: str | None) -> set[int]:
    """The numbers of the gates that a run has passed: of limits, and as a probe of open breakers."""
    return set() if gates is None else {rule_id(gate) for gate in gates.split("\n")}


def _failure(settled: Settled) -> FailedAttempt | None:
    """With what an attempt failed; None if it did not, or if that says nothing about what its job calls."""
    record = settled.record
    if record[_STARTED] is None or record[_OUTCOME] not in (Outcome.FAILED, Outcome.TIMED_OUT):
        return None
    document: dict[str, Any] = {} if record[_ERROR] is None else msgspec.json.decode(record[_ERROR])
    if not is_failure(record[_OUTCOME], document.get("code")):
        return None
    return FailedAttempt(
        document.get("code"), printable(f"{document.get('type')}: {document.get('message')}", MAX_ERROR_LENGTH)
    )
