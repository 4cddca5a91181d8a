"""Releasing runs from the gates at which they wait.

Whoever frees a slot or submits a run *hints* at gates after COMMIT (`Admitter`); the keeper looks at all of them now
and then, so a hint may get lost. Releasing locks the lane of the gates in a statement of its own, and only then reads:
what was committed before the lock was ours is seen, and nobody else releases the same. Slots are counted, never
remembered.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextvars import Context
from random import random as chance
from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.clock import SystemClock
from mainspring.model.concurrency import (
    OF_SCHEDULES,
    ONE_AT_A_TIME,
    Turn,
    fair_counts,
    free_slots,
    home_of_gate,
    is_mark,
    is_shared,
    next_in_turn,
    rule_id,
    schedule_of,
    to_look_at,
)
from mainspring.model.gate_turns import oldest_first, whole, with_oldest_first
from mainspring.model.rate import TICK_SECONDS, whole_tokens
from mainspring.store import buckets, marks, notify, openings, resolving, sharing, triggering
from mainspring.store.admitted import NOBODY, Admitted
from mainspring.store.connection import transaction
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.gate_fronts import GateFronts
from mainspring.store.limits import rule_of
from mainspring.store.link import Link
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.concurrency import LimitRule
    from mainspring.model.gate_turns import TurnRange
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

log = structlog.get_logger()

# A process that stops in the middle keeps a lane locked, and the others wait for it to be ended.
SETTINGS = {"synchronous_commit": "off", "idle_in_transaction_session_timeout": "5s"}
MOST_GATES = 500  # per transaction: it locks a lane
MOST_RUNS = 1_000
MOST_HINTS = 20_000  # in one lane; beyond, the keeper finds them


async def admit(
    connection: Connection, gates: Collection[str], lanes: int, fronts: GateFronts | None = None
) -> Admitted:
    """Release whose turn it is at these gates: one transaction for each lane that they belong to."""
    fronts = fronts or GateFronts(SystemClock())
    homes: defaultdict[int, list[str]] = defaultdict(list)
    shared = {to_look_at(gate) for gate in gates if is_shared(gate)}
    for gate in gates:
        if not is_shared(gate) and not is_mark(gate):
            homes[home_of_gate(gate, lanes)].append(gate)
    together = await marks.admit(connection, filter(is_mark, gates), lanes)
    for home, own in homes.items():
        async with transaction(connection):
            together |= await _admit(connection, home, own, lanes, fronts)
    for gate in sorted(shared):
        async with transaction(connection):
            together |= await sharing.admit(connection, gate, lanes)
    return together


async def _admit(connection: Connection, home: int, gates: Sequence[str], lanes: int, fronts: GateFronts) -> Admitted:
    if await load("limits/lock_gates").fetchrow(connection, lane=home) is None:
        # Somebody else is at it, and may have looked before what we know of was committed.
        return NOBODY._replace(later=dict.fromkeys(gates, TICK_SECONDS), busy=frozenset(gates))
    now = float(await load("limits/now").fetchval(connection))
    rules = await _rules(connection, gates)
    rates = {gate: rule.rate for gate in gates if (rule := rules.get(rule_id(gate))) and rule.rate}
    filled = await buckets.filled(connection, home, rates, now)
    probing = await openings.probing(connection, home, gates, rules, now)
    may_pass = [
        gate for gate in gates if gate not in probing.shut and (gate not in filled or whole_tokens(filled[gate]))
    ]
    places = _places(may_pass, rules, home, lanes)
    used = await _used(connection, places)
    free = free_slots(may_pass, rules, used.by_others)
    free |= {gate: min(free[gate], whole_tokens(bucket)) for gate, bucket in filled.items() if gate in free}
    wanted = fair_counts(free, MOST_RUNS)
    waiting = await _waiting(connection, places, wanted, rules, fronts)
    look_again = fronts.look_again(Counter(each.gate for each in waiting), wanted)
    chosen = next_in_turn(waiting, wanted, MOST_RUNS, without_slot=free_slots(may_pass, rules, used.in_all))
    chosen = await _still_alone(connection, home, chosen)
    rows = [row for lane in places for row in await _pass(connection, lane, chosen, rules, now)]
    passed = _passed(chosen, rows)
    await buckets.spend(connection, home, filled, passed, rates)
    await probing.note(connection, home, passed)
    return Admitted(
        _wake_ups(chosen, rows),
        {row["next_gate"] for row in rows if row["next_gate"] is not None} | _unfinished(free, passed, wanted),
        look_again | buckets.until_next(filled, passed, rates) | probing.later,
        len(rows),
    )


def _places(gates: Iterable[str], rules: Mapping[int, LimitRule], home: int, lanes: int) -> dict[int, list[str]]:
    """In which lanes runs may wait at which gates: their own, unless their limit says that some are elsewhere.

    Of a limit that was removed nobody knows.
    """
    spread = [gate for gate in gates if (rule := rules.get(rule_id(gate))) is None or rule.is_spread]
    places = {lane: list(spread) for lane in range(lanes)} if spread else {home: []}
    places[home] = list(gates)
    return places


def _passed(chosen: Iterable[Turn], rows: Iterable[Record]) -> Counter[str]:
    """How many passed each gate: of those who were chosen, somebody may have changed some just now."""
    ids = {row["run_id"] for row in rows}
    return Counter(each.gate for each in chosen if each.run_id in ids)


async def _rules(connection: Connection, gates: Iterable[str]) -> dict[int, LimitRule]:
    """As they are now, not as somebody remembers them: a change is in force with its COMMIT."""
    ids = sorted({rule_id(gate) for gate in gates})
    rows = await load("limits/rules_of_gates").fetch(connection, ids=ids)
    rules = {row["id"]: rule_of(row) for row in rows} | {OF_SCHEDULES: ONE_AT_A_TIME}
    others = [number for number in ids if number not in rules]
    return rules | await openings.rules_of(connection, others) if others else rules


class Used(NamedTuple):
    """Slots of gates: all of them, and those not held by a run that waits at that gate again."""

    in_all: Counter[str]
    by_others: Counter[str]


async def _used(connection: Connection, places: Mapping[int, list[str]]) -> Used:
    used = Used(Counter(), Counter())
    for lane, gates in places.items():
        schedules = [found for gate in gates if (found := schedule_of(gate)) is not None]
        if len(schedules) < len(gates):
            rows = await load("limits/counts").fetch(connection, lane=lane, gates=gates)
            used.in_all.update({row["gate"]: row["held"] for row in rows})
            used.by_others.update({row["gate"]: row["held"] - row["kept"] for row in rows})
        if schedules:
            rows = await load("limits/unended").fetch(connection, lane=lane, schedules=schedules)
            for counts in used:
                counts.update({row["gate"]: row["held"] for row in rows})
    return used


async def _waiting(
    connection: Connection,
    places: Mapping[int, list[str]],
    wanted: Mapping[str, int],
    rules: Mapping[int, LimitRule],
    fronts: GateFronts,
) -> list[Turn]:
    if not wanted:
        return []
    oldest = _oldest_first(wanted, rules)
    paused = [row["id"] for row in await load("limits/paused_lines").fetch(connection)]
    found = []
    for lane, gates in places.items():
        in_order = [whole(gate, wanted[gate]) for gate in gates if gate in wanted and _is_strict(gate, rules)]
        others = [gate for gate in gates if gate in wanted and not _is_strict(gate, rules)]
        spans = [span for gate in others for span in fronts.spans(lane, gate, wanted[gate], oldest.get(gate, 0))]
        began = fronts.now()
        found += await _in_spans(connection, lane, in_order, spans, paused)
        fronts.learn(lane, spans, [each for each in found if each.lane == lane], fronts.now() - began)
    return with_oldest_first(found, oldest)


async def _in_spans(
    connection: Connection, lane: int, in_order: Sequence[TurnRange], others: Sequence[TurnRange], paused: Sequence[int]
) -> list[Turn]:
    spans = [*in_order, *others]
    if not spans:
        return []
    rows = await load("limits/next_turns").fetch(
        connection,
        lane=lane,
        gates=[span.gate for span in spans],
        turns_from=[span.start for span in spans],
        turns_before=[span.before for span in spans],
        counts=[span.most for span in spans],
        strict=[True] * len(in_order) + [False] * len(others),
        paused=paused,
    )
    return [Turn(row["turn"], row["id"], lane, row["gate"]) for row in rows]


def _oldest_first(wanted: Mapping[str, int], rules: Mapping[int, LimitRule]) -> dict[str, int]:
    """At which gates some pass because they have waited longest. Nobody counts who has passed, so chance decides."""
    counts = {gate: oldest_first(count, chance()) for gate, count in wanted.items() if not _is_strict(gate, rules)}
    return {gate: count for gate, count in counts.items() if count}


def _is_strict(gate: str, rules: Mapping[int, LimitRule]) -> bool:
    rule = rules.get(rule_id(gate))
    return rule is not None and rule.is_strict


async def _still_alone(connection: Connection, home: int, chosen: list[Turn]) -> list[Turn]:
    """Without those that wait for a run of their schedule.

    Schedulers hold no lock of ours: one may have put a run in line since we counted, if all that had waited by then
    were cancelled. From now on it would see whom we have chosen.
    """
    schedules = [found for each in chosen if (found := schedule_of(each.gate)) is not None]
    if not schedules:
        return chosen
    rows = await load("limits/unended").fetch(connection, lane=home, schedules=schedules)
    closed = {row["gate"] for row in rows}
    return [each for each in chosen if each.gate not in closed]


async def _pass(
    connection: Connection, lane: int, chosen: Iterable[Turn], rules: Mapping[int, LimitRule], now: float
) -> list[Record]:
    ours = [each for each in chosen if each.lane == lane]
    if not ours:
        return []
    # Who has waited for earlier runs of its schedule leaves no trace at that gate, as if its limit were gone.
    known = [rule if rule is not ONE_AT_A_TIME else None for each in ours for rule in [rules.get(rule_id(each.gate))]]
    return await load("limits/admit").fetch(
        connection,
        lane=lane,
        runs=[each.run_id for each in ours],
        gates=[each.gate for each in ours],
        is_known=[rule is not None for rule in known],
        takes_slot=[rule is not None and rule.most is not None for rule in known],
        strict=[rule is not None and rule.is_strict for rule in known],
        halting=[rule is not None and rule.halts_on_dead for rule in known],
        released_at=now,
    )


def _wake_ups(chosen: Iterable[Turn], rows: Iterable[Record]) -> list[notify.WakeUp]:
    lanes: dict[UUID, int] = {each.run_id: each.lane for each in chosen}
    return [
        notify.ready(lanes[row["run_id"]], row["line_id"], row["priority"]) for row in rows if row["next_gate"] is None
    ]


def _unfinished(free: Mapping[str, int], passed: Counter[str], wanted: Mapping[str, int]) -> set[str]:
    """Where as many passed as were wanted, and there is room for more: not all fitted into one transaction."""
    return {gate for gate, count in wanted.items() if passed[gate] == count < free[gate]}


class Admitter:
    """Releases runs where somebody hinted that it may be their turn, or that those they wait for have ended.

    One transaction after the other. `heard_of_ready` is whoever claims in this process: it need not wait for a wake-up
    to come back.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        name: str,
        lanes: int,
        heard_of_ready: Callable[[int, int, int], None] = lambda lane, line, priority: None,
    ) -> None:
        # Nothing is promised by a release. Whoever claims what was released writes after it, and waits for both.
        self._link = Link(database, clock, name, settings=SETTINGS)
        self._lanes = lanes
        self._heard_of_ready = heard_of_ready
        self._quietener = notify.Quietener(clock)
        self._fronts = GateFronts(clock)
        self._hinted: dict[int, dict[str, None]] = {}  # gates, by the lane that has to be locked for them
        self._with_news: dict[int, None] = {}  # lanes in which runs have ended that others wait for
        self._ended: dict[int, None] = {}  # lanes in which runs have ended that others follow
        self._busy: dict[int, asyncio.TimerHandle] = {}  # lanes in which somebody else was at it
        self._later: dict[str, asyncio.TimerHandle] = {}  # gates that wait for tokens
        self._working: asyncio.Task[None] | None = None
        self._is_closing = False  # from now on nothing is looked at later …
        self._is_closed = False  # … and from now on nothing at all

    def hint(self, gates: Iterable[str]) -> None:
        """It may be somebody's turn at these gates. Nobody waits for it, and nobody hears of a failure."""
        for gate in gates:
            own = self._hinted.setdefault(home_of_gate(gate, self._lanes), {})
            if len(own) < MOST_HINTS:
                own[to_look_at(gate)] = None
        self._begin()

    def hint_at_parents(self, lanes: Iterable[int]) -> None:
        """In these lanes, runs have ended that others may wait for."""
        self._with_news.update(dict.fromkeys(lanes))
        self._begin()

    def hint_at_ends(self, lanes: Iterable[int]) -> None:
        """In these lanes, runs have ended after which others are to be submitted."""
        self._ended.update(dict.fromkeys(lanes))
        self._begin()

    def _begin(self) -> None:
        if (self._hinted or self._with_news or self._ended) and self._working is None and not self._is_closed:
            # In a context of its own: it is none of the attempts whose end it follows.
            self._working = asyncio.create_task(self._work(), context=Context())

    @property
    def is_idle(self) -> bool:
        return self._working is None

    async def until_idle(self) -> None:
        """Wait until whoever was hinted at has passed, or cannot."""
        if self._working is not None:
            await self._working

    async def _work(self) -> None:
        try:
            while self._hinted or self._with_news or self._ended:
                if self._with_news:
                    await self._resolve(self._with_news.popitem()[0])
                elif self._ended:
                    await self._trigger(self._ended.popitem()[0])
                else:
                    await self._admit(self._next())
        finally:
            self._working = None

    def _next(self) -> list[str]:
        """The gates of one lane; the others' turn comes after it."""
        home, own = next(iter(self._hinted.items()))
        del self._hinted[home]
        gates = list(own)
        if len(gates) > MOST_GATES:
            self._hinted[home] = dict.fromkeys(gates[MOST_GATES:])
        return gates[:MOST_GATES]

    async def _admit(self, gates: Sequence[str]) -> None:
        try:
            connection = await self._link.get()
            admitted = await admit(connection, gates, self._lanes, self._fronts)
        except ALL_DATABASE_ERRORS as error:
            # The keeper looks at all gates.
            log.warning("releasing runs at their limits waits for the database", gates=len(gates), cause=str(error))
            await self._link.mend(error)
            return
        notify.send(connection, self._quietener.pass_on(admitted.wake_ups))
        self.hint(admitted.gates)
        for gate, seconds in admitted.later.items():
            self._look_later(gate, seconds)

    async def _resolve(self, lane: int) -> None:
        try:
            connection = await self._link.get()
            resolved = await resolving.resolve(connection, lane, self._tell_and_pass_on)
        except ALL_DATABASE_ERRORS as error:
            # The keeper looks at all lanes.
            log.warning("releasing runs that wait for others waits for the database", lane=lane, cause=str(error))
            await self._link.mend(error)
            return
        self.hint(resolved.gates)
        self.hint_at_parents(resolved.lanes)
        if resolved.is_busy and lane not in self._busy and not self._is_closing:
            looking_again = asyncio.get_running_loop().call_later(TICK_SECONDS, self._resolve_now, lane)
            self._busy[lane] = looking_again

    def _tell_and_pass_on(self, wake_ups: Iterable[notify.WakeUp]) -> list[notify.WakeUp]:
        for each in dict.fromkeys(wake_ups):
            if each.channel == notify.READY:
                self._heard_of_ready(*notify.parse_ready(each.payload))
        return self._quietener.pass_on(wake_ups)

    async def _trigger(self, lane: int) -> None:
        try:
            connection = await self._link.get()
            triggered = await triggering.trigger(connection, lane, self._lanes)
        except ALL_DATABASE_ERRORS as error:
            # The keeper looks at all lanes.
            log.warning("submitting runs that follow others waits for the database", lane=lane, cause=str(error))
            await self._link.mend(error)
            return
        notify.send(connection, self._quietener.pass_on(triggered.wake_ups))
        if triggered.is_more:
            self.hint_at_ends([lane])

    def _resolve_now(self, lane: int) -> None:
        del self._busy[lane]
        self.hint_at_parents([lane])

    def _look_later(self, gate: str, seconds: float) -> None:
        """When there are tokens again; once, however often it is said."""
        if gate not in self._later and len(self._later) < MOST_HINTS and not self._is_closing:
            delay = max(TICK_SECONDS, seconds)
            self._later[gate] = asyncio.get_running_loop().call_later(delay, self._look_now, gate)

    def _look_now(self, gate: str) -> None:
        del self._later[gate]
        self.hint([gate])

    async def close(self) -> None:
        """Finish what was hinted at: then nobody has to wait for the keeper. What waits for tokens is left to it."""
        self._is_closing = True
        for timer in (*self._later.values(), *self._busy.values()):
            timer.cancel()
        await self.until_idle()
        self._is_closed = True
        await self._link.close()
