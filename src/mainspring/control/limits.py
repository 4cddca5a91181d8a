"""Limits as people handle them: look at them, set and remove them while everything works; and those a run is under."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mainspring.errors import InvalidInput, LimitNotFound
from mainspring.model.concurrency import (
    NO_KEY,
    GateStatus,
    Limit,
    LimitRule,
    LimitScope,
    LimitStatus,
    OnDead,
    Order,
)
from mainspring.model.job import checked_reason
from mainspring.model.limit_key import limit_key
from mainspring.store import jobs
from mainspring.store import limits as store
from mainspring.store.connection import transaction, uncancelled
from mainspring.store.declaring import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.model.backlog import CapRule
    from mainspring.model.job import JobDefinition
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

GATES_SHOWN = 100
HOLDERS_SHOWN = 1_000


class InForce(NamedTuple):
    """What new runs are under."""

    rules: tuple[LimitRule, ...]  # narrowest first
    caps: tuple[CapRule, ...]


class LimitsInForce:
    """The limits and backlog caps that new runs are under."""

    def __init__(self, *, database: Database, books: store.RuleBooks) -> None:
        self._database = database
        self._books = books
        self._marked: set[int] = set()  # limits that know that some of their runs are elsewhere
        self._compared: set[tuple[int, str]] = set()  # tenants and jobs whose declared caps were looked for

    async def of(self, actor: Actor, definition: JobDefinition, queue: str, *, has_own_lane: bool) -> InForce:
        """`has_own_lane`: a key or its parents decide in which lane the run is, and no limit."""
        job = definition.name
        book = await self._books.of(actor.tenant)
        if definition.backlog and (actor.tenant, job) not in self._compared:
            book = await self._books.anew(actor.tenant)  # they may be declared since it was read
            self._compared.add((actor.tenant, job))
        rules = book.of(job, queue)
        unmarked = {rule.id for rule in rules if has_own_lane and not rule.is_spread} - self._marked
        if unmarked:
            # In a transaction of our own, before the run is there: a caller's may be open for long.
            async with self._database.acquire() as connection:
                await store.mark_spread(connection, unmarked)
            self._marked |= unmarked
        return InForce(rules, book.caps_of(job, queue))


class Limits:
    """Shows limits, sets and removes them."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes

    async def list(self, actor: Actor) -> list[LimitStatus]:
        """Every limit: what it says, who set it, how many runs hold a slot and how many wait for one."""
        async with self._database.acquire() as connection:
            rows = await store.listed(connection, tenant_id=actor.tenant)
            return [await self._status(connection, row) for row in rows]

    async def show(
        self, actor: Actor, *, job: str | None = None, queue: str | None = None, key: str | None = None
    ) -> tuple[LimitStatus, Sequence[GateStatus]]:
        """One limit, with those who hold its slots and how many wait behind them: the first hundred values of its key.

        Without a job and a queue it is one of the whole tenant.
        """
        subject = subject_of(job, queue, key)
        async with self._database.acquire() as connection:
            rows = await store.listed(connection, tenant_id=actor.tenant)
            for row in rows:
                if (row["scope"], row["name"], row["key"]) == (subject.scope, subject.name, subject.key):
                    return await self._status(connection, row), await self._gates(connection, store.rule_of(row))
        raise _not_found(subject, rows)

    async def set(
        self,
        actor: Actor,
        most: int | None = None,
        *,
        job: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        order: Order | str = Order.PRIORITY,
        on_dead: OnDead | str = OnDead.CONTINUE,
        rate: str | float | None = None,
        burst: int | None = None,
        share: str | None = None,
        reason: str = "",
    ) -> LimitStatus:
        """Let at most so many runs execute at once, or start per second: of a job, of a queue, or of the whole tenant.

        In force within a second, also for what waits already; what runs goes on. With a key each of its values has a
        limit of its own; with a share its values take turns at this one.
        """
        subject = subject_of(job, queue, key)
        limit = Limit(most, key=key, order=order, on_dead=on_dead, rate=rate, burst=burst, share=share)
        await uncancelled(self._set(actor, subject, limit, checked_reason(reason)))
        return (await self.show(actor, job=job, queue=queue, key=key))[0]

    async def _set(self, actor: Actor, subject: Subject, limit: Limit, reason: str) -> None:
        async with self._database.acquire() as connection:
            await check_exists(connection, actor, subject)
            async with transaction(connection):
                declared = await self._declared(connection, actor, subject)
                await store.put(
                    connection,
                    subject,
                    limit,
                    declared=declared,
                    tenant_id=actor.tenant,
                    actor=actor.name,
                    reason=reason,
                )

    async def remove(
        self,
        actor: Actor,
        *,
        job: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        reason: str = "",
    ) -> bool:
        """Remove a limit; whoever waits for it goes on. Answers whether it is gone for good: the code may declare it.

        Then it comes back with the next start of an application that does.
        """
        subject = subject_of(job, queue, key)
        return await uncancelled(self._remove(actor, subject, checked_reason(reason)))

    async def _remove(self, actor: Actor, subject: Subject, reason: str) -> bool:
        async with self._database.acquire() as connection:
            is_declared = await self._declared(connection, actor, subject) is not None
            async with transaction(connection):
                is_removed = await store.remove(
                    connection, subject, tenant_id=actor.tenant, actor=actor.name, reason=reason
                )
            if not is_removed:
                raise _not_found(subject, await store.listed(connection, tenant_id=actor.tenant))
            return not is_declared

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _declared(self, connection: Connection, actor: Actor, subject: Subject) -> Limit | None:
        """What the code says about a limit that somebody sets otherwise: it stays known, and is not said again."""
        for row in await store.listed(connection, tenant_id=actor.tenant):
            if (row["scope"], row["name"], row["key"]) == (subject.scope, subject.name, subject.key):
                return store.declared_limit(row["declared"])
        return None

    async def _status(self, connection: Connection, row: Record) -> LimitStatus:
        rule, declared = store.rule_of(row), store.declared_limit(row["declared"])
        counted = [await store.counts(connection, lane, rule) for lane in range(self._lanes)]
        limit = _limit_of(rule)
        return LimitStatus(
            scope=rule.scope,
            name=rule.name,
            key=rule.key or None,
            most=rule.most,
            rate=None if rule.rate is None else rule.rate.per_second,
            burst=None if rule.rate is None else rule.rate.burst,
            share=limit.share,
            order=limit.order,
            on_dead=limit.on_dead,
            holding=sum(holding for holding, _ in counted),
            waiting=sum(waiting for _, waiting in counted),
            counts_are_exact=all(count < store.COUNTED for each in counted for count in each),
            is_declared=declared is not None,
            is_as_declared=declared == _limit_of(rule),
            changed_at=row["changed_at"],
            changed_by=row["changed_by"],
            reason=row["reason"],
        )

    async def _gates(self, connection: Connection, rule: LimitRule) -> Sequence[GateStatus]:
        held: defaultdict[str, list[UUID]] = defaultdict(list)
        for lane in range(self._lanes):
            for row in await store.holders(connection, lane, rule, HOLDERS_SHOWN):
                held[row["gate"]].append(row["run_id"])
            for gate in await store.waiting_gates(connection, lane, f"{rule.number}:", GATES_SHOWN):
                if gate.startswith(f"{rule.number}:"):
                    held[gate] += []
        if not rule.told_apart_by:
            held[rule.number] += []
        return [await self._gate(connection, gate, held[gate]) for gate in sorted(held)[:GATES_SHOWN]]

    async def _gate(self, connection: Connection, gate: str, holders: Sequence[UUID]) -> GateStatus:
        found = [await store.waiting_at(connection, lane, gate) for lane in range(self._lanes)]
        first = min((row for row in found if row["first_id"]), key=lambda row: int(row["first_turn"]), default=None)
        return GateStatus(
            value=gate.partition(":")[2] or None,
            holders=holders,
            waiting=sum(row["waiting"] for row in found),
            first_waiting=None if first is None else first["first_id"],
        )


def _limit_of(rule: LimitRule) -> Limit:
    return Limit(
        rule.most,
        key=rule.key or None,
        order=Order.STRICT if rule.is_strict else Order.PRIORITY,
        on_dead=OnDead.HALT if rule.halts_on_dead else OnDead.CONTINUE,
        rate=None if rule.rate is None else rule.rate.per_second,
        burst=None if rule.rate is None else rule.rate.burst,
        share=rule.share or None,
    )


def subject_of(job: str | None, queue: str | None, key: str | None, what: str = "limit") -> Subject:
    """For whom a limit or another rule is."""
    if job is not None and queue is not None:
        raise InvalidInput(
            f"A {what} is for a job or for a queue, not for both.",
            code="limit-of-two",
            hint=f"Set two {what}s: runs are under both.",
            field="queue",
        )
    if key is not None:
        limit_key(key)
    scope = LimitScope.JOB if job is not None else LimitScope.QUEUE if queue is not None else LimitScope.TENANT
    return Subject(scope, job or queue or "", key or NO_KEY)


async def check_exists(connection: Connection, actor: Actor, subject: Subject) -> None:
    """Refuse a rule for what does not exist: it is a slip more often than a plan."""
    if subject.scope is LimitScope.JOB:
        await jobs.find(connection, subject.name, tenant_id=actor.tenant)
    elif subject.scope is LimitScope.QUEUE:
        jobs.line_of(await jobs.lines_of(connection, tenant_id=actor.tenant), subject.name)


def _not_found(subject: Subject, rows: Sequence[Record]) -> LimitNotFound:
    known = [str(Subject(LimitScope(row["scope"]), row["name"], row["key"])) for row in rows]
    return LimitNotFound(
        f"There is no limit for {subject}.",
        hint=f"There are limits for {'; '.join(known[:5])}." if known else "There are no limits at all.",
        field="limit",
        value=str(subject),
    )
