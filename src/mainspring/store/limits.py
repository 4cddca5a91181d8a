"""Limits: what they are, who set them, and who holds their slots. How runs pass them: `store/admission.py`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from mainspring.model.admission import LimitReached
from mainspring.model.concurrency import (
    HIGH_MARK,
    ONE_AT_A_TIME,
    Limit,
    LimitRule,
    LimitScope,
    OnDead,
    Order,
    RuleBook,
    TenantRules,
    home_of_gate,
    is_mark,
    rule_id,
    schedule_of,
    to_look_at,
)
from mainspring.model.ids import lane_of
from mainspring.model.rate import Rate
from mainspring.store import backlog_caps, buckets, chains, declaring, notify, openings, schedules
from mainspring.store.declaring import revision_locked
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.breaker import BreakerRule, ProbeProgress
    from mainspring.model.rate import TokenBucket
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.declaring import Subject
    from mainspring.store.jobs import JobRef

log = structlog.get_logger()

REMEMBERED_SECONDS, STALE_SECONDS = 0.5, 1.0
COUNTED = 10_000  # of each limit, in each lane
HOLDERS_SHOWN = 1_000
LOOKED_AT = 2_000  # gates in one lane, in one statement
NOBODY = RuleBook()


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def book(connection: Connection, *, tenant_id: int, known: RuleBook = NOBODY) -> RuleBook:
    """The limits, caps and breakers of a tenant, and jobs that others follow: those known, unless one was written."""
    written = await revision(connection)
    if known is not NOBODY and written == known.revision:
        return known
    return (await _books(connection, tenant_id, written)).get(tenant_id) or RuleBook(revision=written)


async def tenant_rules(connection: Connection, *, known: TenantRules) -> TenantRules:
    """The same for all tenants at once."""
    written = await revision(connection)
    return known if written == known.revision else TenantRules(written, await _books(connection, None, written))


async def _books(connection: Connection, tenant_id: int | None, written: str) -> dict[int, RuleBook]:
    """By tenant, of one or of all: those who have something. Read after the revision, so never older than that."""
    rules: defaultdict[int, list[LimitRule]] = defaultdict(list)
    breakers: defaultdict[int, list[BreakerRule]] = defaultdict(list)
    for row in await load("limits/book").fetch(connection, tenant=tenant_id):
        rules[row["tenant_id"]].append(rule_of(row))
    for rule in await openings.rules(connection, tenant_id=tenant_id):
        breakers[rule.tenant_id].append(rule)
    opened = await openings.by_tenant(connection, tenant_id=tenant_id) if breakers else {}
    followed = await chains.upstreams(connection, tenant_id=tenant_id)
    caps = await backlog_caps.in_force(connection, tenant_id=tenant_id)
    return {
        tenant: RuleBook(
            rules.get(tenant, ()),
            written,
            breakers.get(tenant, ()),
            opened.get(tenant, ()),
            frozenset(followed.get(tenant, ())),
            caps=caps.get(tenant, ()),
        )
        for tenant in {*rules, *breakers, *followed, *caps}
    }


def rule_of(row: Record) -> LimitRule:
    return LimitRule(
        id=row["id"],
        scope=LimitScope(row["scope"]),
        name=row["name"],
        key=row["key"],
        most=row["most"],
        is_strict=row["is_strict"],
        halts_on_dead=row["halts_on_dead"],
        is_spread=row["is_spread"],
        rate=None if row["rate"] is None else Rate(row["rate"], row["burst"]),
        share=row["share"],
    )


async def listed(connection: Connection, *, tenant_id: int) -> list[Record]:
    return await load("limits/list").fetch(connection, tenant=tenant_id)


async def counts(connection: Connection, lane: int, rule: LimitRule) -> tuple[int, int]:
    """How many slots of a limit are held in one lane, and how many runs wait: up to a bound."""
    row = await load("limits/count_of_rule").fetchrow(connection, lane=lane, number=rule.number, bound=COUNTED)
    assert row is not None
    return row["holding"], row["waiting"]


async def holders(connection: Connection, lane: int, rule: LimitRule, count: int) -> list[Record]:
    return await load("limits/holders").fetch(connection, lane=lane, number=rule.number, count=count)


async def waiting_at(connection: Connection, lane: int, gate: str) -> Record:
    row = await load("limits/waiting").fetchrow(connection, lane=lane, gate=gate, bound=COUNTED)
    assert row is not None
    return row


async def waiting_gates(connection: Connection, lane: int, after: str, count: int) -> list[str]:
    """At which gates runs wait in a lane, in the order of their names."""
    rows = await load("limits/waiting_gates").fetch(connection, lane=lane, after=after, count=count)
    return [row["gate"] for row in rows]


class OpenGates(NamedTuple):
    """Gates at which somebody may pass, and where to go on looking: empty, if that was all."""

    gates: list[str]
    after: str


async def open_gates(connection: Connection, lane: int, after: str, before: str, most: int) -> OpenGates:
    """Some of the gates between two at which runs wait in a lane, but for those where all slots are given out.

    Whoever releases counts again, under a lock: this only saves doing so where nobody can pass.
    """
    row = await load("limits/open_gates").fetchrow(connection, lane=lane, after=after, before=before, count=LOOKED_AT)
    assert row is not None
    gates: list[str] = row["gates"]
    return OpenGates(gates[:most], gates[most - 1] if len(gates) > most else row["last"] or "")


async def revision(connection: Connection) -> str:
    """Another one whenever a limit or breaker was written."""
    return str(await load("limits/revision").fetchval(connection))


async def in_force(connection: Connection) -> list[LimitRule]:
    """All limits, and where breakers are open, whoever's they are."""
    return [rule_of(row) for row in await load("limits/in_force").fetch(connection)]


async def forget_full_buckets(connection: Connection, lane: int) -> None:
    await load("limits/forget_full_buckets").execute(connection, lane=lane)


async def forget_windows(connection: Connection, lane: int) -> None:
    await load("limits/forget_windows").execute(connection, lane=lane)


async def free_leaked(connection: Connection, lane: int) -> list[tuple[UUID, str]]:
    """Give back slots that no run can hold; answers with them. There should never be one."""
    return [(row["run_id"], row["gate"]) for row in await load("limits/free_leaked").fetch(connection, lane=lane)]


async def forget_ended(connection: Connection, lane: int) -> list[Record]:
    """Forget runs of schedules that are nowhere any more; answers with them. There should never be one."""
    return await load("limits/forget_ended").fetch(connection, lane=lane)


Position = tuple[int, int]  # where a row stands in its table
FIRST, LAST = (0, 0), (2**32 - 1, 2**16 - 1)


class Place(NamedTuple):
    """Where a run stands at a gate, among those that wait there."""

    run_id: UUID
    gate: str
    turn: int
    position: Position

    def position_in(self, lane: int) -> Position:
        """Behind whom it stands of those in another lane that have the same turn: lanes come in their order."""
        own = lane_of(self.run_id)
        return self.position if lane == own else LAST if lane < own else FIRST


async def reached_by(
    connection: Connection, run_id: UUID, lanes: int, bound: int, *, tenant_id: int
) -> list[LimitReached]:
    """The limit at whose gate a run waits, if it does, and those that it meets after that.

    Told are who holds their slots, and of the first how many runs come before this one.
    """
    found = await load("limits/gate_of_run").fetchrow(connection, lane=lane_of(run_id), run=run_id, tenant=tenant_id)
    if found is None:
        return []
    place = Place(run_id, found["gate"], found["turn"], found["position"])
    if (schedule_id := schedule_of(place.gate)) is not None:
        first = await _earlier(connection, place, schedule_id, bound)
    elif is_mark(place.gate):
        first = await _too_many_in_line(connection, place, bound)
    else:
        first = await _reached(connection, place, lanes, bound)
    return [first, *[await _reached(connection, each, lanes, 0) for each in _next_places(place, found["gates"])]]


def _next_places(place: Place, gates: str | None) -> list[Place]:
    """The gates behind the one at which a run waits; who comes before it there is not known yet."""
    names = [] if gates is None else gates.split("\n")
    behind = names[names.index(place.gate) + 1 :] if place.gate in names else []
    return [place._replace(gate=gate, turn=0, position=FIRST) for gate in behind]


async def _reached(connection: Connection, place: Place, lanes: int, bound: int) -> LimitReached:
    rule = await _rule_of_gate(connection, place.gate)
    rows = [
        row
        for lane in range(lanes)
        for row in await load("limits/ahead").fetch(
            connection,
            lane=lane,
            gate=place.gate,
            turn=place.turn,
            position=place.position_in(lane),
            bound=bound,
            most=HOLDERS_SHOWN,
        )
    ]
    own = [holder for row in rows for holder in row["holders"]]
    holding = own if rule is None or not rule.share else await _holders_of_all(connection, rule, lanes)
    return LimitReached(
        rule=rule,
        value=place.gate.partition(":")[2] or None,
        holders=[holder for holder in holding if holder != place.run_id],  # the slot that it has kept is its own
        ahead=sum(row["ahead"] for row in rows),
        bucket=await _bucket(connection, rule, place.gate, lanes),
        probes=await _probes(connection, rule, lanes),
    )


async def _holders_of_all(connection: Connection, rule: LimitRule, lanes: int) -> list[UUID]:
    """Of a limit that is shared: whoever has its slots, of whatever value."""
    rows = [row for lane in range(lanes) for row in await holders(connection, lane, rule, HOLDERS_SHOWN)]
    return [row["run_id"] for row in rows]


async def _bucket(connection: Connection, rule: LimitRule | None, gate: str, lanes: int) -> TokenBucket | None:
    """The tokens of a gate with a rate, as they are now; those of a share are all its values' together."""
    if rule is None or rule.rate is None:
        return None
    name, now = to_look_at(gate), (await schedules.now(connection)).timestamp()
    return (await buckets.filled(connection, home_of_gate(gate, lanes), {name: rule.rate}, now))[name]


async def _too_many_in_line(connection: Connection, place: Place, bound: int) -> LimitReached:
    """How many wait before a run until their line has fewer."""
    row = await load("limits/ahead").fetchrow(
        connection,
        lane=lane_of(place.run_id),
        gate=place.gate,
        turn=place.turn,
        position=place.position,
        bound=bound,
        most=0,
    )
    assert row is not None
    return LimitReached(rule=HIGH_MARK, value=None, holders=(), ahead=row["ahead"])


async def _rule_of_gate(connection: Connection, gate: str) -> LimitRule | None:
    """The limit, or the breaker that is open there; None if it is gone."""
    rows = await load("limits/rules_of_gates").fetch(connection, ids=[rule_id(gate)])
    if rows:
        return rule_of(rows[0])
    return (await openings.rules_of(connection, [rule_id(gate)])).get(rule_id(gate))


async def _probes(connection: Connection, rule: LimitRule | None, lanes: int) -> ProbeProgress | None:
    if rule is None or rule.opening is None:
        return None
    return (await openings.progress(connection, home_of_gate(rule.number, lanes), [rule.id])).get(rule.id)


async def _earlier(connection: Connection, place: Place, schedule_id: UUID, bound: int) -> LimitReached:
    """For which earlier runs of its schedule a run waits."""
    row = await load("limits/earlier").fetchrow(
        connection,
        lane=lane_of(place.run_id),
        gate=place.gate,
        schedule=schedule_id,
        turn=place.turn,
        position=place.position,
        bound=bound,
        most=HOLDERS_SHOWN,
    )
    assert row is not None
    return LimitReached(rule=ONE_AT_A_TIME, value=None, holders=row["holders"], ahead=row["ahead"])


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def put(
    connection: Connection,
    subject: Subject,
    limit: Limit,
    *,
    declared: Limit | None,
    tenant_id: int,
    actor: str,
    reason: str,
) -> None:
    """Set a limit, inside a transaction. In force at its COMMIT."""
    unused = await revision_locked(connection)
    number = await load("limits/put").fetchval(
        connection,
        id=unused,  # no limit ever had it: numbers are part of the gates that runs carry
        tenant=tenant_id,
        scope=subject.scope.value,
        name=subject.name,
        key=subject.key,
        most=limit.most,
        rate=limit.rate,
        burst=limit.burst or 1,
        share=limit.share or "",
        is_strict=limit.order is Order.STRICT,
        halts_on_dead=limit.on_dead is OnDead.HALT,
        # Who shares something with others is looked for in all lanes, and may be in any.
        is_spread=subject.scope is not LimitScope.JOB or limit.share is not None,
        declared=None if declared is None else _document(declared),
        actor=actor,
        reason=reason,
        subject=str(subject),
        detail=msgspec.json.encode({**msgspec.to_builtins(limit), "reason": reason}).decode(),
    )
    await load("limits/spread_broad").execute(connection, tenant=tenant_id)
    halts = limit.on_dead is OnDead.HALT
    await load("limits/follow_on_dead").execute(connection, rule=number, halts_on_dead=halts)
    await load("limits/free_dead").execute(connection, rule=number)
    notify.send(connection, [notify.limits()])


async def remove(connection: Connection, subject: Subject, *, tenant_id: int, actor: str, reason: str) -> bool:
    """Answers whether there was one."""
    await revision_locked(connection)
    found = await load("limits/remove").fetchval(
        connection,
        tenant=tenant_id,
        scope=subject.scope.value,
        name=subject.name,
        key=subject.key,
        actor=actor,
        subject=str(subject),
        detail=msgspec.json.encode({"reason": reason}).decode(),
    )
    notify.send(connection, [notify.limits()])
    return found is not None


async def mark_spread(connection: Connection, rules: Iterable[int]) -> None:
    """Runs of these limits will wait outside the lanes of their gates."""
    await load("limits/spread").execute(connection, ids=sorted(rules))


def declared_limit(text: str | None) -> Limit | None:
    return None if text is None else msgspec.json.decode(text, type=Limit)


KIND = declaring.Kind(listed, declared_limit, put, remove)


async def declare(
    connection: Connection, job: str, reference: JobRef, limits: Sequence[Limit], *, tenant_id: int, actor: str
) -> None:
    """Let what a job declares take effect: see there."""
    await declaring.declare(connection, KIND, job, reference, limits, tenant_id=tenant_id, actor=actor)


def _document(limit: Limit) -> str:
    return msgspec.json.encode(limit).decode()


# ── remembering ─────────────────────────────────────────────────────────────────────────────────────────────────


class RuleBooks:
    """The limits of all tenants that submit here. They may be a second old: whoever claims a run looks again."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._books: dict[int, tuple[RuleBook, float]] = {}
        self._looking: dict[int, asyncio.Task[RuleBook]] = {}
        self._generation = 0  # how often one was forgotten

    async def of(self, tenant_id: int) -> RuleBook:
        """Whoever is the first in a while waits for it; else whoever finds it old has it read anew for the next."""
        while (found := self._books.get(tenant_id)) is None:
            await asyncio.shield(self._look(tenant_id))
        known, looked_at = found
        age = self._clock.monotonic() - looked_at
        if age > STALE_SECONDS:
            return await asyncio.shield(self._look(tenant_id))
        if age > REMEMBERED_SECONDS:
            self._look(tenant_id)
        return known

    async def anew(self, tenant_id: int) -> RuleBook:
        """As it is by now: somebody here has just written one."""
        self.forget(tenant_id)
        return await self.of(tenant_id)

    def forget(self, tenant_id: int) -> None:
        self._books.pop(tenant_id, None)
        self._generation += 1  # whoever is looking may see what was there before

    def _look(self, tenant_id: int) -> asyncio.Task[RuleBook]:
        looking = self._looking.get(tenant_id)
        if looking is None:
            looking = asyncio.create_task(self._read(tenant_id), context=Context())
            self._looking[tenant_id] = looking
            looking.add_done_callback(lambda _: self._looking.pop(tenant_id, None))
        return looking

    async def _read(self, tenant_id: int) -> RuleBook:
        generation = self._generation
        known, _ = self._books.get(tenant_id, (NOBODY, 0.0))
        try:
            async with self._database.acquire() as connection:
                known = await book(connection, tenant_id=tenant_id, known=known)
        except ALL_DATABASE_ERRORS as error:
            if tenant_id not in self._books:
                raise
            log.warning("limits could not be read", cause=str(error))
        if generation == self._generation:
            self._books[tenant_id] = known, self._clock.monotonic()
        return known

    async def close(self) -> None:
        await asyncio.gather(*self._looking.values(), return_exceptions=True)
