"""Limits as people handle them: look at them, set and remove them while everything works; and those a run is under."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.rules import Rules
from mainspring.errors import LimitNotFound
from mainspring.model.concurrency import (
    GateStatus,
    Limit,
    LimitRule,
    LimitStatus,
    OnDead,
    Order,
)
from mainspring.store import limits as store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.model.backlog import CapRule
    from mainspring.model.job import JobDefinition
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.declaring import Subject

GATES_SHOWN = 100
HOLDERS_SHOWN = 1_000


class RulesInForce(NamedTuple):
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

    async def of(self, actor: Actor, definition: JobDefinition, queue: str, *, has_own_lane: bool) -> RulesInForce:
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
        return RulesInForce(rules, book.caps_of(job, queue))


class Limits:
    """Shows limits, sets and removes them."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes
        self._rules = Rules(database=database, kind=store.KIND, name="limit", missing=_missing)

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
        subject = self._rules.subject(job, queue, key)
        async with self._database.acquire() as connection:
            row = await self._rules.find(connection, actor, subject)
            return await self._status(connection, row), await self._gates(connection, store.rule_of(row))

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
        limit = Limit(most, key=key, order=order, on_dead=on_dead, rate=rate, burst=burst, share=share)
        await self._rules.set(actor, self._rules.subject(job, queue, key), limit, reason)
        return (await self.show(actor, job=job, queue=queue, key=key))[0]

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
        return await self._rules.remove(actor, self._rules.subject(job, queue, key), reason)

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


def _missing(subject: Subject, *, hint: str) -> LimitNotFound:
    return LimitNotFound(f"There is no limit for {subject}.", hint=hint, field="limit", value=str(subject))
