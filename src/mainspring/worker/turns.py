"""Whose turn it is: which pair of lane and line a claimer asks for runs next."""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping

    from mainspring.clock import Clock
    from mainspring.worker.lines import Lines

Pair = tuple[int, int]  # lane, line
K = TypeVar("K", bound="Hashable")

ALL = ""  # the one group there is without weights; no queue has this name


FEW_TENANTS = 100  # so many are remembered without need
MOST_AHEAD = 500  # runs that a tenant may get out of turn before the others have their own

ANNOUNCED_IN_A_ROW = 3  # turns of pairs that someone spoke of, before one of the others must have its own


class WaitingPairs:
    """The pairs of one group that wait for their turns: those that someone has just spoken of, and the others.

    The former come first, but not always: while claims are slow, somebody speaks of another pair during each of them,
    and those that nobody speaks of would never be asked.
    """

    def __init__(self) -> None:
        self._announced: deque[Pair] = deque()
        self._others: deque[Pair] = deque()
        self._in_a_row = 0  # turns of announced pairs since the last one of another

    def add(self, pair: Pair, *, announced: bool) -> None:
        (self._announced if announced else self._others).append(pair)

    def take(self, may_ask: Callable[[Pair], bool]) -> Pair | None:
        queues = [self._announced, self._others]
        if self._in_a_row >= ANNOUNCED_IN_A_ROW:
            queues.reverse()
        for pairs in queues:
            pair = next(filter(may_ask, pairs), None)
            if pair is not None:
                pairs.remove(pair)
                self._in_a_row = self._in_a_row + 1 if pairs is self._announced else 0
                return pair
        return None

    def __iter__(self) -> Iterator[Pair]:
        return chain(self._announced, self._others)

    def __bool__(self) -> bool:
        return bool(self._announced or self._others)


class Passes(Generic[K]):
    """Whose turn it is among groups with weights.

    Each has a pass that grows by what it was given, divided by its weight, and the smallest pass is next: a group that
    has something is never passed over for long, and one that comes back after a rest begins where the others are, with
    nothing saved up.
    """

    def __init__(self) -> None:
        self._passes: dict[K, float] = {}
        self._weights: dict[K, int] = {}  # at which they were charged
        self._now = 0.0  # the pass of whoever had the last turn

    def begin(self, group: K) -> None:
        """It had nothing, and has something now."""
        self._passes[group] = max(self._passes.get(group, self._now), self._now)

    def in_order(self, groups: Iterable[K]) -> list[K]:
        return sorted(groups, key=self._passes.__getitem__)

    def turn_of(self, group: K) -> None:
        self._now = self._passes[group]

    def weigh(self, group: K, weight: int) -> None:
        """What it was given before counts by its new weight, too: a debt at the old one could last for very long."""
        before = self._weights.get(group, weight)
        self._weights[group] = weight
        if before != weight and group in self._passes:
            self._passes[group] = self._now + (self._passes[group] - self._now) * before / weight

    def charge(self, group: K, runs: int, weight: int) -> None:
        """It had a turn and got so many runs; even an empty turn counts."""
        self.weigh(group, weight)
        self._passes[group] = self._passes.get(group, self._now) + max(1, runs) / weight

    def is_ahead(self, group: K, runs: float) -> bool:
        """Whether it was given so many runs more, at a weight of one, than who had the last turn."""
        return self._passes.get(group, self._now) > self._now + runs

    def forget_idle(self, busy: Container[K]) -> None:
        """Those who have nothing begin where the others are whenever they come back, as if they had never been here."""
        for group in [each for each in self._passes if each not in busy]:
            del self._passes[group]
            self._weights.pop(group, None)

    def __len__(self) -> int:
        return len(self._passes)


class Turns:
    """Pairs of one tenant that are worth asking, one after the other.

    Queues with weights get runs in proportion to them. Without weights all queues share one turn.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights or {ALL: 1}
        self._waiting = {group: WaitingPairs() for group in self._weights}
        self._passes: Passes[str] = Passes()

    def group_of(self, queue: str) -> str:
        return queue if queue in self._weights else ALL

    def add(self, pair: Pair, queue: str, *, announced: bool = False) -> None:
        """This pair is worth asking: after the others of its queue, or before them if someone has just spoken of it."""
        group = self.group_of(queue)
        waiting = self._waiting[group]
        if pair in waiting:
            return
        if not waiting:
            self._passes.begin(group)
        waiting.add(pair, announced=announced)

    def take(self, may_ask: Callable[[Pair], bool]) -> Pair | None:
        """The pair whose turn it is, among those that may be asked now; it does not wait any longer."""
        for group in self._passes.in_order(group for group, waiting in self._waiting.items() if waiting):
            pair = self._waiting[group].take(may_ask)
            if pair is not None:
                self._passes.turn_of(group)
                return pair
        return None

    def charge(self, queue: str, runs: int) -> None:
        group = self.group_of(queue)
        self._passes.charge(group, runs, self._weights[group])

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(self._waiting.values())

    def __bool__(self) -> bool:
        return any(self._waiting.values())


class TenantTurns:
    """Pairs worth asking: tenants get runs in proportion to their weights, as long as they have some."""

    def __init__(self, queue_weights: Mapping[str, int], lines: Lines) -> None:
        self._queue_weights = dict(queue_weights)
        self._lines = lines
        self._waiting: dict[int, Turns] = {}  # by tenant; none of them is empty
        self._passes: Passes[int] = Passes()
        self._weighed = lines.weights_changed  # so often, when all that wait were weighed

    def add(self, pair: Pair, *, announced: bool = False) -> None:
        """This pair is worth asking."""
        tenant = self._lines.tenant_of(pair[1])
        turns = self._waiting.get(tenant)
        if turns is None:
            turns = self._waiting[tenant] = Turns(self._queue_weights)
            self._begin(tenant)
        turns.add(pair, self._lines[pair[1]].queue, announced=announced)

    def _begin(self, tenant: int) -> None:
        self._passes.weigh(tenant, self._lines.weight_of(tenant))
        self._passes.begin(tenant)
        if len(self._passes) > 2 * len(self._waiting) + FEW_TENANTS:
            self._passes.forget_idle(self._waiting)

    def take(self, may_ask: Callable[[Pair], bool]) -> Pair | None:
        """The pair whose turn it is, among those that may be asked now; it does not wait any longer."""
        if self._weighed != self._lines.weights_changed:
            self._weigh_all()
        for tenant in self._passes.in_order(self._waiting) if len(self._waiting) > 1 else list(self._waiting):
            turns = self._waiting[tenant]
            pair = turns.take(may_ask)
            if pair is not None:
                self._passes.turn_of(tenant)
                if not turns:
                    del self._waiting[tenant]
                return pair
        return None

    def _weigh_all(self) -> None:
        self._weighed = self._lines.weights_changed
        for tenant in self._waiting:
            self._passes.weigh(tenant, self._lines.weight_of(tenant))

    def charge(self, pair: Pair, runs: int) -> None:
        """A pair was asked and gave so many runs."""
        tenant = self._lines.tenant_of(pair[1])
        self._passes.charge(tenant, runs, self._lines.weight_of(tenant))
        if tenant in self._waiting:
            self._waiting[tenant].charge(self._lines[pair[1]].queue, runs)

    def may_jump(self, pair: Pair) -> bool:
        """Whether a pair may be asked out of turn: not if its tenant has had more than its share, and others wait."""
        tenant = self._lines.tenant_of(pair[1])
        others = len(self._waiting) - (tenant in self._waiting)
        return not others or not self._passes.is_ahead(tenant, MOST_AHEAD)

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(turns.pairs() for turns in self._waiting.values())

    def __bool__(self) -> bool:
        return bool(self._waiting)


SHORTEST_PAUSE = 0.02  # seconds until a pair that had a staged run is asked for the next one
ASKED_PER_SECOND = 400  # and in all, such pairs are asked no more often than that


class StagedPairs:
    """When to ask pairs whose next run waits for its instant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: dict[Pair, float] = {}

    def learn(self, seconds: Mapping[Pair, float]) -> None:
        """A look has found in how many seconds the next run of each is due."""
        now = self._clock.monotonic()
        self._at = {pair: now + left for pair, left in seconds.items()}

    def come_again(self, pair: Pair) -> None:
        """It gave a staged run and no more: others may be due at any moment, sooner than somebody looks again."""
        pause = max(SHORTEST_PAUSE, (1 + len(self._at)) / ASKED_PER_SECOND)
        self._at[pair] = self._clock.monotonic() + pause

    def take_due(self) -> list[Pair]:
        """Pairs whose time has come; they do not wait any longer."""
        if not self._at:
            return []
        now = self._clock.monotonic()
        due = [pair for pair, at in self._at.items() if at <= now]
        for pair in due:
            del self._at[pair]
        return due

    @property
    def next_at(self) -> float:
        return min(self._at.values(), default=float("inf"))
