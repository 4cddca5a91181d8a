"""How many runs may execute at once, and start per second: limits as they are declared and set, and their gates.

A *gate* is a limit with one value of its key. Its name is the limit's number, then the value: `7`, `7:acme`; with an
exclamation mark where order is strict, so that whoever puts a run there knows its place: `7!:acme`; with an equals sign
where the values of a key share one limit in turns (`model/fair_share.py`): `7=:acme`. The gates of a run are one per
line, narrowest first; it passes one after the other, always in this order, so no two runs can each hold what the other
waits for.

At the gate of a schedule, which has the number 0 (`0!:` and its id), runs wait for earlier ones. Nobody holds slots
there: which runs of a schedule have not ended is known otherwise (`schedule_run` in the schema).

At the gate of a line, which has the number -1 (`-1:` and lane, line and priority), runs wait because there are as many
in line as its high mark says (`store/marks.py`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.breaker import OpenBreakers
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.model.invalid import invalid
from mainspring.model.limit_key import UNKNOWN_KEY, limit_key
from mainspring.model.rate import Rate, rate_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from mainspring.model.backlog import CapRule
    from mainspring.model.breaker import BreakerRule, Opening

MAX_LIMIT = 1_000_000
MAX_LIMITS_PER_JOB = 5
NO_KEY = ""
SHARED = "="  # after the number of a limit at whose gates the values of a key take turns
OF_SCHEDULES = 0  # stands for the number of a limit where runs wait for earlier ones of their schedule
OF_LINES = -1  # the same where runs wait until their line has fewer
EVERYBODY = 0  # gates are the installation's: their numbers say whose they are


class Order(StrEnum):
    """In which order runs get a slot."""

    PRIORITY = "priority"  # the most urgent first, then whoever came first
    STRICT = "strict"  # in the order of acceptance; a retry keeps its place


class OnDead(StrEnum):
    """What a dead letter does to those behind it."""

    CONTINUE = "continue"
    HALT = "halt"  # they wait until it is requeued or purged


class LimitScope(StrEnum):
    """Whose runs are counted together, narrowest first."""

    JOB = "job"
    QUEUE = "queue"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True, init=False)
class Limit:
    """At most so many runs at once, or so many starts per second, or both.

    `Limit(3)`, `Limit(1, key="customer")`, `Limit(rate="100/s", burst=20)`, `Limit(5, rate="2/minute")`. With a key,
    each of its values has a limit of its own. `order="strict"` executes runs in the order in which they were accepted,
    retries included; `on_dead="halt"` then stops behind a dead letter until somebody has decided about it.
    `share="customer"` gives every customer the same share of what the limit leaves, and without a number or a rate the
    same share of the workers: who has many runs waiting delays nobody else.
    """

    most: int | None = None
    key: str | None = None
    order: Order = Order.PRIORITY
    on_dead: OnDead = OnDead.CONTINUE
    rate: float | None = None  # per second
    burst: int | None = None
    share: str | None = None

    def __init__(
        self,
        most: int | None = None,
        *,
        key: str | None = None,
        order: Order | str = Order.PRIORITY,
        on_dead: OnDead | str = OnDead.CONTINUE,
        rate: str | float | None = None,
        burst: int | None = None,
        share: str | None = None,
    ) -> None:
        # Written out, because words and rates are given as text.
        keep = partial(object.__setattr__, self)
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_LIMIT):
            raise invalid("limit", most, f"must be a whole number from 1 to {MAX_LIMIT:,}")
        keep("most", most)
        keep("key", None if key is None else limit_key(key).source)
        keep("order", _word(Order, "order", order))
        keep("on_dead", _word(OnDead, "on_dead", on_dead))
        found = rate_of(rate, burst)
        keep("rate", None if found is None else found.per_second)
        keep("burst", None if found is None else found.burst)
        keep("share", None if share is None else limit_key(share, "share").source)
        self._check_together()

    def _check_together(self) -> None:
        if self.most is None and self.rate is None and self.share is None:
            raise InvalidInput(
                "A limit says how many runs execute at once, how many start in a while, or who takes turns; this one"
                " says nothing.",
                code="limit-of-nothing",
                hint='Give a number, rate="100/s", or share="customer".',
                field="limit",
            )
        if self.share is not None and (self.key is not None or self.order is Order.STRICT):
            other = "a key" if self.key is not None else "strict order"
            raise InvalidInput(
                f"A limit with a share has no {other.removeprefix('a ')}: its values take turns at one limit.",
                code="share-and-key" if self.key is not None else "share-and-order",
                hint=f"Leave out {other}, or the share; two limits may be set one beside the other.",
                field="share",
            )
        if self.order is Order.STRICT and self.most is None:
            raise InvalidInput(
                "order is strict, but any number may execute at once: there is no order then.",
                code="order-without-number",
                hint='Give a number: Limit(1, order="strict").',
                field="order",
            )
        if self.on_dead is OnDead.HALT and self.order is not Order.STRICT:
            raise InvalidInput(
                "on_dead is 'halt', but order is not strict: nothing has its place behind a dead letter.",
                code="halt-without-order",
                hint='Add order="strict".',
                field="on_dead",
            )


W = TypeVar("W", Order, OnDead)


def _word(kind: type[W], name: str, given: Any) -> W:
    try:
        return kind(given)
    except ValueError:
        raise invalid(name, given, f"must be one of {', '.join(kind)}") from None


def checked_limits(limits: object) -> tuple[Limit, ...]:
    """One limit or several, each with a key of its own."""
    given = () if limits is None else (limits,) if isinstance(limits, Limit) else limits
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, Limit) for each in given):
        raise invalid("limit", limits, "must be a Limit, or a list of some")
    if len(given) > MAX_LIMITS_PER_JOB:
        raise invalid("limit", f"{len(given)} limits", f"must be at most {MAX_LIMITS_PER_JOB}")
    if len({each.key for each in given}) < len(given):
        raise invalid("limit", list(given), "must name each key once")
    return tuple(given)


class LimitRule(NamedTuple):
    """A limit as it is in force."""

    id: int
    scope: LimitScope
    name: str  # of the job or queue; empty for a tenant
    key: str  # empty: all together
    most: int | None  # at once; None: any number
    is_strict: bool = False
    halts_on_dead: bool = False
    is_spread: bool = False  # some of its runs are not in the lane of their gate
    rate: Rate | None = None
    share: str = ""  # whose values take turns; empty: nobody's
    opening: Opening | None = None  # of a circuit breaker: then it is no limit, and lets single probes pass

    @property
    def number(self) -> str:
        """With which the names of its gates begin."""
        return f"{self.id}{'!' if self.is_strict else SHARED if self.share else ''}"

    @property
    def is_share_of_workers(self) -> bool:
        """Whether it limits nothing but how many runs are in line."""
        return self.most is None and self.rate is None

    @property
    def breadth(self) -> tuple[bool, bool, int, int]:
        """Narrowest first. Who takes turns for the workers comes last: what has passed there is in line."""
        scope = list(LimitScope).index(self.scope)
        return (self.is_share_of_workers, self.key == NO_KEY, scope, self.id)

    @property
    def told_apart_by(self) -> str:
        """What the values are of that its gates are named after."""
        return self.key or self.share

    def gate_for(self, arguments: Any, *, is_accepted: bool) -> str:
        """Where a run with these arguments waits. One that was accepted before cannot be refused any more."""
        if not self.told_apart_by:
            return self.number
        try:
            return f"{self.number}:{limit_key(self.told_apart_by).of(arguments)}"
        except InvalidInput:
            if not is_accepted:
                raise
            return f"{self.number}:{UNKNOWN_KEY}"


# Of a schedule that keeps its runs apart, one at a time may go on, in the order of their instants.
ONE_AT_A_TIME = LimitRule(OF_SCHEDULES, LimitScope.JOB, "", "", 1, is_strict=True)
# Of what comes later than its submission, no more comes in line than a queue's marks say.
HIGH_MARK = LimitRule(OF_LINES, LimitScope.QUEUE, "", "", None)


class RuleBook:
    """The limits of a tenant, its backlog caps and circuit breakers, and the jobs that others follow.

    What is asked for each run, and seldom written.
    """

    def __init__(
        self,
        rules: Iterable[LimitRule] = (),
        revision: str = "",
        breakers: Iterable[BreakerRule] = (),
        openings: Iterable[Opening] = (),
        followed: frozenset[str] = frozenset(),
        caps: Iterable[CapRule] = (),
    ) -> None:
        self.followed = followed
        self.rules = tuple(sorted(rules, key=lambda rule: rule.breadth))
        self.limit_ids = frozenset(rule.id for rule in self.rules)
        self.caps = tuple(caps)
        self.revision = revision
        self.breakers = {rule.job: rule for rule in breakers}
        self.open_breakers = OpenBreakers(self.breakers, openings)
        self._of: dict[tuple[str, str], tuple[LimitRule, ...]] = {}

    def of(self, job: str, queue: str) -> tuple[LimitRule, ...]:
        """Those that runs of a job in a queue are under, narrowest first."""
        if not self.rules:
            return ()
        found = self._of.get((job, queue))
        if found is None:
            names = _names(job, queue)
            found = tuple(rule for rule in self.rules if rule.name == names[rule.scope])
            self._of[job, queue] = found
        return found

    def caps_of(self, job: str, queue: str) -> tuple[CapRule, ...]:
        """The caps of backlogs that new runs of a job in a queue wait in."""
        return caps_of(self.caps, job, queue)


def caps_of(caps: Sequence[CapRule], job: str, queue: str) -> tuple[CapRule, ...]:
    """Of all caps of a tenant, those of backlogs that new runs of a job in a queue wait in."""
    if not caps:
        return ()
    names = _names(job, queue)
    return tuple(cap for cap in caps if cap.name == names[cap.scope])


class TenantRules:
    """The rule books of all tenants, as they were at one revision: for those who serve all of them."""

    def __init__(self, revision: str = "", books: Mapping[int, RuleBook] | None = None) -> None:
        self.revision = revision
        self.books = books or {}
        self._nothing = RuleBook(revision=revision)
        self.limit_ids = frozenset(number for book in self.books.values() for number in book.limit_ids)
        self.open_ids = frozenset(number for book in self.books.values() for number in book.open_breakers.ids)

    def of(self, tenant_id: int) -> RuleBook:
        return self.books.get(tenant_id, self._nothing)


def _names(job: str, queue: str) -> dict[LimitScope, str]:
    return {LimitScope.JOB: job, LimitScope.QUEUE: queue, LimitScope.TENANT: ""}


def gates_of(rules: Sequence[LimitRule], payload: bytes, *, is_accepted: bool = False) -> str | None:
    """The gates of a run, one per line; None if it has none."""
    if not rules:
        return None
    arguments = _arguments(payload, is_accepted=is_accepted) if any(rule.told_apart_by for rule in rules) else None
    return "\n".join(rule.gate_for(arguments, is_accepted=is_accepted) for rule in rules)


def _arguments(payload: bytes, *, is_accepted: bool) -> Any:
    try:
        return msgspec.json.decode(payload)
    except msgspec.MsgspecError:
        if not is_accepted:
            raise
        return None  # its handler will say what is wrong with it


def covers(held: str | None, wanted: str) -> bool:
    """Whether a run that holds slots of some gates holds all that it needs."""
    return held is not None and (held == wanted or {*wanted.split("\n")} <= {*held.split("\n")})


def rule_id(gate: str) -> int:
    """The number of the limit that a gate belongs to."""
    return int(gate.partition(":")[0].rstrip(f"!{SHARED}"))


def to_look_at(gate: str) -> str:
    """Which gate to look at when it may be somebody's turn at this one: who shares a limit is looked at together."""
    number = gate.partition(":")[0]
    return number if number.endswith(SHARED) else gate


def is_shared(gate: str) -> bool:
    return gate.partition(":")[0].endswith(SHARED)


def schedule_of(gate: str) -> UUID | None:
    """The schedule for whose earlier runs others wait at this gate; None if it belongs to a limit."""
    number, _, value = gate.partition(":")
    return UUID(value) if number == ONE_AT_A_TIME.number else None


def is_mark(gate: str) -> bool:
    """Whether runs wait at this gate until their line has fewer."""
    return gate.startswith(f"{OF_LINES}:")


def home_of_gate(gate: str, lanes: int) -> int:
    """The lane in which runs wait at this gate, where they are free to choose; whoever releases them locks it."""
    if is_mark(gate):
        return int(gate.partition(":")[2].partition(".")[0])
    if (schedule_id := schedule_of(gate)) is not None:
        return lane_of(schedule_id)  # where all its runs are
    return lane_of_key(EVERYBODY, to_look_at(gate), lanes)


class Turn(NamedTuple):
    """A run that waits at a gate."""

    turn: int  # 0: it has kept its slot, and comes first
    run_id: UUID
    lane: int
    gate: str
    line_id: int = 0


def free_slots(gates: Iterable[str], rules: Mapping[int, LimitRule], used: Mapping[str, int]) -> dict[str, int]:
    """How many runs may pass each gate: as many as the limit leaves; any number where it is gone, or only a rate."""
    return {gate: _free(rules.get(rule_id(gate)), used.get(gate, 0)) for gate in gates}


def _free(rule: LimitRule | None, used: int) -> int:
    return MAX_LIMIT if rule is None or rule.most is None else max(0, rule.most - used)


def fair_counts(free: Mapping[str, int], most: int) -> dict[str, int]:
    """How many to look for at each open gate, so that all together are not much more than may pass."""
    open_gates = {gate: count for gate, count in free.items() if count}
    share = max(1, -(-most // max(1, len(open_gates))))
    return {gate: min(count, share) for gate, count in open_gates.items()}


def next_in_turn(
    waiting: Iterable[Turn], free: Mapping[str, int], most: int, *, without_slot: Mapping[str, int]
) -> list[Turn]:
    """Those who pass: at each gate the first, as many as there are slots; all gates in turns, up to so many.

    Fewer may pass `without_slot`: one that had kept its slot when slots were counted may have left its gate since, and
    taken the slot along.
    """
    at: defaultdict[str, list[Turn]] = defaultdict(list)
    for each in sorted(waiting):
        at[each.gate].append(each)
    ranked = [
        (place, each)
        for gate, some in at.items()
        for place, each in enumerate(_within(some[: free[gate]], without_slot[gate]))
    ]
    return [each for _, each in sorted(ranked)[:most]]


def _within(turns: list[Turn], without_slot: int) -> list[Turn]:
    kept = sum(1 for each in turns if each.turn == 0)  # they come first
    return turns[: kept + without_slot]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """A limit as people see it: what it says, who set it, how many hold a slot and how many wait for one."""

    scope: LimitScope
    name: str
    key: str | None
    most: int | None
    rate: float | None
    burst: int | None
    share: str | None
    order: Order
    on_dead: OnDead
    holding: int
    waiting: int
    counts_are_exact: bool
    is_declared: bool  # in an application's code
    is_as_declared: bool
    changed_at: datetime
    changed_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStatus:
    """One value of a limit's key: who holds its slots, and how many wait."""

    value: str | None
    holders: Sequence[UUID]
    waiting: int
    first_waiting: UUID | None
