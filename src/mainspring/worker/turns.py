"""What a claimer knows about pairs of lane and line: whose turn it is to be asked for runs, where each begins, and how
many of the runs that it takes there may need a thread.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

from mainspring.model.run import LEAST_URGENT, PRIORITIES
from mainspring.store.columns import JOB, PRIORITY, RANK

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence

    from mainspring.clock import Clock
    from mainspring.store.connection import Record
    from mainspring.worker.capacity import Capacity
    from mainspring.worker.lines import Lines
    from mainspring.worker.served_jobs import ServedJobs

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
        self._now = 0.0  # the pass of whoever had the last turn

    def begin(self, group: K) -> None:
        """It had nothing, and has something now."""
        self._passes[group] = max(self._passes.get(group, self._now), self._now)

    def in_order(self, groups: Iterable[K]) -> list[K]:
        return sorted(groups, key=self._passes.__getitem__)

    def turn_of(self, group: K) -> None:
        self._now = self._passes[group]

    def charge(self, group: K, runs: int, weight: int) -> None:
        """It had a turn and got so many runs; even an empty turn counts."""
        self._passes[group] = self._passes.get(group, self._now) + max(1, runs) / weight

    def is_ahead(self, group: K, runs: float) -> bool:
        """Whether it was given so many runs more, at a weight of one, than who had the last turn."""
        return self._passes.get(group, self._now) > self._now + runs

    def forget_idle(self, busy: Container[K]) -> None:
        """Those who have nothing begin where the others are whenever they come back, as if they had never been here."""
        for group in [each for each in self._passes if each not in busy]:
            del self._passes[group]

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

    def add(self, pair: Pair, *, announced: bool = False) -> None:
        """This pair is worth asking."""
        tenant = self._lines.tenant_of(pair[1])
        turns = self._waiting.get(tenant)
        if turns is None:
            turns = self._waiting[tenant] = Turns(self._queue_weights)
            self._begin(tenant)
        turns.add(pair, self._lines[pair[1]].queue, announced=announced)

    def _begin(self, tenant: int) -> None:
        self._passes.begin(tenant)
        if len(self._passes) > 2 * len(self._waiting) + FEW_TENANTS:
            self._passes.forget_idle(self._waiting)

    def take(self, may_ask: Callable[[Pair], bool]) -> Pair | None:
        """The pair whose turn it is, among those that may be asked now; it does not wait any longer."""
        for tenant in self._passes.in_order(self._waiting) if len(self._waiting) > 1 else list(self._waiting):
            turns = self._waiting[tenant]
            pair = turns.take(may_ask)
            if pair is not None:
                self._passes.turn_of(tenant)
                if not turns:
                    del self._waiting[tenant]
                return pair
        return None

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


OLDEST_FIRST_EVERY = 16  # one claim in so many starts with whoever waits longest, so that nothing starves
LOOK_SHARE = 0.05  # looks at the very front may cost this much of the time …
LOOK_AT_MOST_EVERY, LOOK_AT_LEAST_EVERY = 0.02, 2.0  # … and are so far apart, in seconds


class ClaimFront:
    """What is remembered about one (lane, line): where each priority begins, and what looking costs."""

    __slots__ = ("claims", "extra_cost", "last_priority", "looked_at", "ranks", "usual_cost")

    def __init__(self, claims: int = 0) -> None:
        self.ranks = [0] * len(PRIORITIES)
        self.last_priority = LEAST_URGENT  # of the least urgent run that the last turn fetched
        self.looked_at = float("-inf")
        self.usual_cost = 0.0  # of a claim that starts where the last one ended
        self.extra_cost = 0.0  # of starting at the very front instead
        self.claims = claims

    def is_look_due(self, now: float) -> bool:
        return now - self.looked_at >= pause_after(self.extra_cost)

    def order(self) -> Sequence[int]:
        """The priorities in the order to serve them; now and then, whoever waits longest comes first."""
        self.claims += 1
        if self.claims % OLDEST_FIRST_EVERY:
            return PRIORITIES
        return sorted(PRIORITIES, key=self.ranks.__getitem__)

    def advance(self, rows: Sequence[Record]) -> None:
        ranks = self.ranks
        for row in rows:
            if row[RANK] > ranks[row[PRIORITY]]:
                ranks[row[PRIORITY]] = row[RANK]

    def learn(self, rows: Sequence[Record], *, from_the_front: bool, began: float, now: float) -> None:
        self.advance(rows)
        self.last_priority = max((row[PRIORITY] for row in rows), default=LEAST_URGENT)
        cost = now - began
        if from_the_front:
            self.looked_at = now
            self.extra_cost = max(0.0, cost - self.usual_cost)
        else:
            self.usual_cost = (self.usual_cost + cost) / 2 if self.usual_cost else cost


def pause_between_looks(cost: float) -> float:
    """How long to wait after a look at all lines that cost so much: claims have at least as much of the time."""
    return max(cost, pause_after(cost))


def pause_after(cost: float) -> float:
    """How long to wait after a look at the front that cost so much: it may take only a small share of the time."""
    return min(LOOK_AT_LEAST_EVERY, max(LOOK_AT_MOST_EVERY, cost / LOOK_SHARE))


NEVER = float("inf")


class ThreadQuota:
    """How many of the runs that a claim takes may need a thread, and in which lines such runs had to be left.

    Where some were left, the rest of the line can still be asked for runs that need none, but not all the time: if
    there was nothing else, the next such claim waits until it costs only a small share of the time. As soon as a thread
    is free the pair is worth asking again. Runs that may not wait inside a worker never get one from those that do, so
    the next thread that becomes free is kept for them.
    """

    def __init__(self, *, jobs: ServedJobs, capacity: Capacity, lines: Lines, clock: Clock) -> None:
        self._jobs = jobs
        self._capacity = capacity
        self._lines = lines
        self._clock = clock
        self._left: dict[Pair, float] = {}  # where some were left, and when to ask for others again
        self._to_be_asked: set[Pair] = set()  # of those, for the threads that are free now
        self._kept: Pair | None = None  # whom the next free thread is kept for

    def of(self, pair: Pair, count: int) -> int | None:
        """How many of `count` runs may need a thread; None if all of them may."""
        if not self._jobs.need_threads:
            return None
        room = self._room(pair)
        return None if room >= count else max(0, room)

    def jobs(self, pair: Pair, quota: int | None) -> Sequence[int]:
        """Whose runs such a quota is for. A thread serves a whole chunk: such runs are left only if none is free."""
        if quota is None:
            return ()
        return self._jobs.in_threads(self._lines.tenant_of(pair[1]), with_chunks=not quota)

    def _room(self, pair: Pair) -> int:
        if not self._lines[pair[1]].is_claimed_singly:
            return self._capacity.thread_room()
        is_kept = pair == self._kept and self._capacity.free_threads() > 0
        return int(is_kept or self._capacity.has_spare_thread)

    def learn(self, pair: Pair, quota: int | None, rows: Sequence[Record], began: float) -> Sequence[Record]:
        """This is what a claim took; answers with those runs before which none was left in line."""
        self._left.pop(pair, None)
        self._to_be_asked.discard(pair)
        if quota != 0:
            self._release(pair)
        if quota is None:
            return rows
        limited = self.jobs(pair, quota)
        in_threads = [row for row in rows if row[JOB] in limited]
        if len(in_threads) < quota:
            return rows
        self._leave(pair, 0.0 if rows else pause_after(self._clock.monotonic() - began))
        return in_threads

    def _leave(self, pair: Pair, pause: float) -> None:
        self._left[pair] = self._clock.monotonic() + pause
        if self._kept is None and self._lines[pair[1]].is_claimed_singly:
            self._kept = pair
            self._capacity.keep_a_thread()

    def failed(self, pair: Pair) -> None:
        """A claim was not answered: the pair waits for a thread as before, and none is kept for it meanwhile."""
        if pair in self._to_be_asked:
            self._to_be_asked.discard(pair)
            self._left[pair] = self._clock.monotonic()
        self._release(pair)

    def _release(self, pair: Pair) -> None:
        if pair == self._kept:
            self._kept = None
            self._capacity.release_thread()

    def has_left(self, pair: Pair) -> bool:
        return pair in self._left

    def may_ask(self, pair: Pair) -> bool:
        return pair not in self._left or self._clock.monotonic() >= self._left[pair]

    def worth_asking(self, urgent: Container[Pair] = ()) -> list[Pair]:
        """Where runs were left for which there is a thread now: no more pairs than threads, the urgent ones first, then
        whoever waits longest.
        """
        if not self._left:
            return []
        most = max(self._capacity.thread_room(), self._capacity.free_threads()) - len(self._to_be_asked)
        ready = [pair for pair in self._left if self._room(pair) > 0]
        found = sorted(ready, key=lambda pair: pair not in urgent)[: max(0, most)]
        for pair in found:
            del self._left[pair]
        self._to_be_asked.update(found)
        return found

    @property
    def next_at(self) -> float:
        """When a pair may be asked that may not be asked now."""
        now = self._clock.monotonic()
        return min((at for at in self._left.values() if at > now), default=NEVER)
