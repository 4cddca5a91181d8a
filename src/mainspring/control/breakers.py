"""Circuit breakers as people handle them: look at them, set, remove, open and close them while everything works."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import BreakerNotFound, did_you_mean
from mainspring.model.breaker import (
    Breaker,
    BreakerEvent,
    BreakerRule,
    BreakerState,
    BreakerStatus,
    OpeningStatus,
    checked_value,
)
from mainspring.model.concurrency import home_of_gate
from mainspring.model.job import checked_reason
from mainspring.store import breakers as store
from mainspring.store import jobs, openings, schedules
from mainspring.store.breakers import COUNTED, Who
from mainspring.store.connection import transaction, uncancelled
from mainspring.store.declaring import revision_locked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.model.breaker import Opening, ProbeProgress
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

OPENINGS_SHOWN = 100
EVENTS_SHOWN = 20


class Breakers:
    """Shows circuit breakers, sets, removes, opens and closes them."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes

    async def list(self, actor: Actor) -> Sequence[BreakerStatus]:
        """Every circuit breaker: what it says, whether it is open, since when, and how many runs wait."""
        async with self._database.acquire() as connection:
            return await self._statuses(connection, actor)

    async def show(self, actor: Actor, job: str) -> tuple[BreakerStatus, Sequence[BreakerEvent]]:
        """The circuit breaker of a job, and what happened to it lately, the newest first."""
        async with self._database.acquire() as connection:
            await self._rule(connection, actor, job)
            (status,) = await self._statuses(connection, actor, job)
            rows = await store.history(connection, job, EVENTS_SHOWN, tenant_id=actor.tenant)
        return status, [_event(row) for row in rows]

    async def set(
        self,
        actor: Actor,
        job: str,
        failures: int = 5,
        *,
        within: timedelta | float = timedelta(minutes=1),
        failure_ratio: float | None = None,
        key: str | None = None,
        probe_after: timedelta | float = timedelta(seconds=30),
        max_probe_after: timedelta | float | None = None,
        reason: str = "",
    ) -> BreakerStatus:
        """Let runs of a job wait after so many failures within a while: see `Breaker`.

        In force within a second. What is open stays so, unless the key is another one; failures are counted anew.
        """
        breaker = Breaker(
            failures,
            within=within,
            failure_ratio=failure_ratio,
            key=key,
            probe_after=probe_after,
            max_probe_after=max_probe_after,
        )
        await uncancelled(self._set(actor, job, breaker, _who(actor, reason)))
        return (await self.show(actor, job))[0]

    async def _set(self, actor: Actor, job: str, breaker: Breaker, who: Who) -> None:
        async with self._database.acquire() as connection:
            await jobs.find(connection, job, tenant_id=actor.tenant)
            async with transaction(connection):
                await revision_locked(connection)
                declared = await store.declared(connection, job, tenant_id=actor.tenant)
                await store.put(connection, self._lanes, job, breaker, who, declared=declared)

    async def remove(self, actor: Actor, job: str, *, reason: str = "") -> bool:
        """Remove the breaker of a job; whoever waits goes on. Answers whether it is gone for good.

        If the code declares it, it comes back with the next start of an application that does.
        """
        return await uncancelled(self._remove(actor, job, _who(actor, reason)))

    async def _remove(self, actor: Actor, job: str, who: Who) -> bool:
        async with self._database.acquire() as connection:
            async with transaction(connection):
                await revision_locked(connection)
                await self._rule(connection, actor, job)
                is_declared = await store.declared(connection, job, tenant_id=actor.tenant) is not None
                await store.remove(connection, self._lanes, job, who)
            return not is_declared

    async def open(
        self, actor: Actor, job: str, *, value: str | None = None, probes: bool = True, reason: str = ""
    ) -> BreakerStatus:
        """Let the runs of a job wait, or those with one value of its breaker's key.

        Within a second, and without an attempt being spent. Without `probes` until somebody closes it; else single ones
        are tried, and the first that succeeds closes it. What is open already follows what is said now.
        """
        await uncancelled(self._open(actor, job, value, _who(actor, reason), has_probes=probes))
        return (await self.show(actor, job))[0]

    async def _open(self, actor: Actor, job: str, value: str | None, who: Who, *, has_probes: bool) -> None:
        async with self._database.acquire() as connection, transaction(connection):
            await revision_locked(connection)  # else somebody may remove it meanwhile
            rule = await self._rule(connection, actor, job)
            wanted = checked_value(rule.breaker, job, value)
            await store.open_by_hand(connection, rule, wanted, who, has_probes=has_probes)

    async def close(self, actor: Actor, job: str, *, value: str | None = None, reason: str = "") -> int:
        """Let waiting runs of a job go on, or those with one value; answers for how many values it was open."""
        return await uncancelled(self._close(actor, job, value, _who(actor, reason)))

    async def _close(self, actor: Actor, job: str, value: str | None, who: Who) -> int:
        async with self._database.acquire() as connection, transaction(connection):
            await revision_locked(connection)
            rule = await self._rule(connection, actor, job)
            wanted = checked_value(rule.breaker, job, value)
            found = await openings.of_tenant(connection, tenant_id=actor.tenant)
            closing = [each for each in found if each.job == job and (value is None or each.value in (wanted, value))]
            return sum([await store.close(connection, self._lanes, each, who) for each in closing])

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _rule(self, connection: Connection, actor: Actor, job: str) -> BreakerRule:
        """The breaker of a job; refused if there is no such job, or it has none."""
        known = await openings.rules(connection, tenant_id=actor.tenant)
        for rule in known:
            if rule.job == job:
                return rule
        await jobs.find(connection, job, tenant_id=actor.tenant)
        names = [rule.job for rule in known]
        raise BreakerNotFound(
            f"Job {job} has no circuit breaker.",
            hint=did_you_mean(job, names) or f"Set one: mainspring breaker set --job {job}",
            field="job",
            value=job,
        )

    async def _statuses(self, connection: Connection, actor: Actor, job: str | None = None) -> Sequence[BreakerStatus]:
        rows = await store.listed(connection, tenant_id=actor.tenant)
        own = [row for row in rows if job is None or row["job"] == job]
        found = await openings.of_tenant(connection, tenant_id=actor.tenant)
        gates = await self._gates(connection, [each for each in found if job is None or each.job == job])
        failures = await self._failures(connection, own)
        now = await schedules.now(connection)
        return [
            _status(row, failures.get(row["id"], 0), [each for each in gates if each.job == row["job"]], now)
            for row in own
        ]

    async def _failures(self, connection: Connection, rows: Sequence[Record]) -> dict[int, int]:
        rules = [openings.rule_of(row) for row in rows]
        total: dict[int, int] = {}
        for lane in range(self._lanes if rules else 0):
            for number, count in (await store.failures(connection, lane, rules)).items():
                total[number] = total.get(number, 0) + count
        return total

    async def _gates(self, connection: Connection, found: Sequence[Opening]) -> Sequence[OpenGate]:
        """How it stands at each opening."""
        gates = {each.gate: OpenGate(opening=each) for each in found}
        for lane in range(self._lanes if gates else 0):
            for row in await store.standing(connection, lane, [*gates]):
                gates[row["gate"]].add(row)
            at_home = [each.id for each in found if home_of_gate(each.gate, self._lanes) == lane]
            for number, progress in (await openings.progress(connection, lane, at_home)).items():
                gates[str(number)].progress = progress
        return [*gates.values()]


@dataclass(slots=True)
class OpenGate:
    """An opening, with who waits there."""

    opening: Opening
    progress: ProbeProgress | None = None
    probe: UUID | None = None
    waiting: int = 0
    is_exact: bool = True

    @property
    def job(self) -> str:
        return self.opening.job

    def add(self, row: Record) -> None:
        """What one lane says."""
        self.probe = self.probe or row["probe"]
        self.waiting += row["waiting"]
        self.is_exact &= row["waiting"] < COUNTED

    def status(self, now: datetime) -> OpeningStatus:
        opening, progress = self.opening, self.progress
        return OpeningStatus(
            value=opening.value or None,
            state=BreakerState.OPEN if self.probe is None else BreakerState.HALF_OPEN,
            opened_at=opening.opened_at,
            opened_by=opening.opened_by,
            failures=opening.failures,
            attempts=opening.attempts,
            error=(progress and progress.error) or opening.error,
            reason=opening.reason,
            probes=0 if progress is None else progress.sent,
            probe_run=self.probe,
            next_probe_at=None if self.probe is not None else opening.next_probe_at(progress, now),
            waiting=self.waiting,
            waiting_is_exact=self.is_exact,
        )


def _status(row: Record, failures: int, gates: Sequence[OpenGate], now: datetime) -> BreakerStatus:
    breaker, declared = openings.breaker_of(row), store.declared_breaker(row["declared"])
    found = [gate.status(now) for gate in gates]
    return BreakerStatus(
        job=row["job"],
        state=_state(found),
        breaker=breaker,
        failures=failures,
        openings=found[:OPENINGS_SHOWN],
        open_values=len(found),
        waiting=sum(each.waiting for each in found),
        waiting_is_exact=all(each.waiting_is_exact for each in found),
        since=min((each.opened_at for each in found), default=None),
        next_probe_at=min((each.next_probe_at for each in found if each.next_probe_at), default=None),
        is_declared=declared is not None,
        is_as_declared=declared == breaker,
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
        reason=row["reason"],
    )


def _state(found: Sequence[OpeningStatus]) -> BreakerState:
    """Of all values together: closed if all are, and open if one is and nobody is being tried."""
    if not found:
        return BreakerState.CLOSED
    is_tried = any(each.state is BreakerState.HALF_OPEN for each in found)
    return BreakerState.HALF_OPEN if is_tried else BreakerState.OPEN


def _event(row: Record) -> BreakerEvent:
    detail: Mapping[str, object] = msgspec.json.decode(row["detail"])
    return BreakerEvent(at=row["at"], actor=row["actor"], action=row["action"], detail=detail)


def _who(actor: Actor, reason: str) -> Who:
    return Who(actor.tenant, actor.name, checked_reason(reason))
