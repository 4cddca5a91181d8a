"""Whether a claimed run may start under the limits and circuit breakers there are now.

Most runs with limits passed their gates before they came in line. Others did not, or passed others: they were accepted
before a limit was set, fired by a schedule, or changed; or their breaker has opened since. They go to wait at their
gates, and no attempt is spent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mainspring.model.concurrency import TenantRules, covers, gates_of, home_of_gate, rule_id
from mainspring.model.lifecycle import HoldReason
from mainspring.store import limits
from mainspring.store.columns import PAYLOAD
from mainspring.store.leases import Hold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.model.concurrency import RuleBook
    from mainspring.store.connection import Connection
    from mainspring.worker.lines import Lines
    from mainspring.worker.registration import WorkerIdentity
    from mainspring.worker.served_jobs import ServedJobs
    from mainspring.worker.work import Work


MOST_CLOSED = 10_000  # remembered


OpenValue = tuple[int, str, str]  # the tenant and the job of a breaker that is open, and for which value


class Gating:
    """The limits of all tenants as this worker knows them: since the last time it was told of a change, or looked."""

    def __init__(self, *, worker: WorkerIdentity, lines: Lines, jobs: ServedJobs) -> None:
        self._lanes = worker.lanes
        self._lines = lines
        self._jobs = jobs
        self._clock = worker.clock
        self.rules = TenantRules()
        self.closed_at: dict[OpenValue, int] = {}  # when it learned that a breaker had closed, in microseconds
        self._refreshing = asyncio.Lock()
        self._has_limits: dict[int, bool] = {}
        self._followed: frozenset[int] = frozenset()
        self._followed_of = self.rules, 0
        self.has_opened = asyncio.Event()  # a breaker, since somebody cleared this

    def followed_jobs(self) -> frozenset[int]:
        """The jobs after whose runs others are submitted: of all tenants, as far as their runs were seen here."""
        if self._followed_of != (self.rules, len(self._jobs)):
            self._followed_of = self.rules, len(self._jobs)
            self._followed = frozenset(
                number
                for tenant, book in self.rules.books.items()
                if book.followed
                for number in self._jobs.of_tenant(tenant)
                if self._jobs.handlers[number].name in book.followed
            )
        return self._followed

    async def refresh(self, connection: Connection) -> bool:
        """Look whether a limit, a breaker or the weight of a tenant was written; answers whether one was."""
        async with self._refreshing:  # so that nobody puts back an older one
            known = self.rules
            self.rules = await limits.tenant_rules(connection, known=known)
            if self.rules is known:
                return False
            self._has_limits.clear()
            self._compare(_open_values(known), _open_values(self.rules))
            return True

    def _compare(self, before: set[OpenValue], now: set[OpenValue]) -> None:
        """Which breakers have opened and closed."""
        for each in before - now:
            self.closed_at.pop(each, None)  # they stand in the order in which they closed
            self.closed_at[each] = self._clock.micros()
        while len(self.closed_at) > MOST_CLOSED:
            del self.closed_at[next(iter(self.closed_at))]
        if not now <= before:
            self.has_opened.set()

    def has_limits(self, line: int) -> bool:
        """Whether runs of this line may be under any: asked for each claim, and seldom so."""
        found = self._has_limits.get(line)
        if found is None:
            book, queue = self._book(line), self._lines[line].queue
            found = any(book.of(job, queue) or book.open_breakers.has(job) for job in self._jobs.names)
            self._has_limits[line] = found
        return found

    def _book(self, line: int) -> RuleBook:
        return self.rules.of(self._lines.tenant_of(line))

    def sort(self, works: Iterable[Work]) -> tuple[list[Work], list[tuple[Work, Hold]]]:
        """Those that may start, and those that have to wait at their gates first."""
        free: list[Work] = []
        gated: list[tuple[Work, Hold]] = []
        for work in works:
            hold = self._hold(work)
            if hold is None:
                free.append(work)
            else:
                gated.append((work, hold))
        return free, gated

    def _hold(self, work: Work) -> Hold | None:
        if work.handler is None:
            return None  # it will be held for that
        book = self._book(work.line)
        rules = book.of(work.handler.name, self._lines[work.line].queue)
        own = gates_of(rules, work.row[PAYLOAD], is_accepted=True)
        # Before all limits: whoever waits for a breaker to close holds nothing that others wait for.
        breaker = book.open_breakers.gate_for(work.handler.name, work.row[PAYLOAD])
        gates = [gate for gate in (breaker, own) if gate is not None]
        if not gates or covers(work.gates, wanted := "\n".join(gates)):
            return None
        strangers = {rule_id(gate) for gate in (own or "").split("\n") if self._is_elsewhere(gate, work)}
        reason = HoldReason.LIMIT if breaker is None else HoldReason.BREAKER
        return Hold(wanted, strangers - {rule.id for rule in rules if rule.is_spread}, reason)

    def _is_elsewhere(self, gate: str, work: Work) -> bool:
        return bool(gate) and home_of_gate(gate, self._lanes) != work.lease.lane


def _open_values(rules: TenantRules) -> set[OpenValue]:
    return {(tenant, *each) for tenant, book in rules.books.items() for each in book.open_breakers.values}
