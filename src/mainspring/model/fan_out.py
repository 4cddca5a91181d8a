"""Fan-out decided at run time: a handler submits *children* of its run, which ends when all of them have.

A child has a name within its run, by which a later attempt of the handler finds it again instead of submitting it
twice: the job's name with a number, or what the handler calls it.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from mainspring.errors import IdempotencyConflict, InvalidInput
from mainspring.model.dependency import ENDED_WORDS, Condition
from mainspring.model.invalid import invalid
from mainspring.model.job import checked_text
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mainspring.model.lifecycle import State

MAX_CHILDREN = 10_000  # of one run
MAX_DEPTH = 20  # of children of children
MAX_NAME_LENGTH = 100

HAS_CHILDREN = "@children"  # the header of a run that has some
CHILD_OF = "@child_of"  # the header of a child: its run, and those above that


class FanOut(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that may submit children: its run, and where that is leased. Travels into isolated processes."""

    run_id: UUID
    lease_id: UUID
    position: int
    worker_id: UUID
    above: tuple[UUID, ...] = ()  # whose child its run is, whose child that is, and so on


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStatus:
    """A child of a run, as people see it."""

    name: str
    run_id: UUID
    state: State | None  # None: history has forgotten it


class Children:
    """The children that one attempt submits. May be used from any thread."""

    def __init__(self, fan_out: FanOut) -> None:
        self.fan_out = fan_out
        self._next: Counter[str] = Counter()  # by job
        self._unused: defaultdict[str, list[int]] = defaultdict(list)  # numbers whose submission has failed
        self._names: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def keys(self, job: str, name: str | None, count: int) -> Iterator[list[str]]:
        """What the next children are known by. If submitting them fails, whoever tries again gets the same numbers."""
        if len(self.fan_out.above) >= MAX_DEPTH:
            raise _too_deep(self.fan_out.run_id)
        numbers = [] if name is not None else self._take_numbers(job, count)
        names = [f"{job}#{number:05}" for number in numbers] or [f"{job}={name}"][:count]
        try:
            self._count(names)
            yield [f"{prefix_of(self.fan_out.run_id)}{each}" for each in names]
        except IdempotencyConflict:
            raise  # there is such a child
        except BaseException:
            with self._lock:
                self._unused[job] = sorted([*self._unused[job], *numbers])
            raise

    def _take_numbers(self, job: str, count: int) -> list[int]:
        with self._lock:
            unused, self._unused[job] = self._unused[job][:count], self._unused[job][count:]
            first = self._next[job] + 1
            self._next[job] += count - len(unused)
            return [*unused, *range(first, self._next[job] + 1)]

    def _count(self, names: Sequence[str]) -> None:
        with self._lock:
            if len(self._names) + sum(each not in self._names for each in names) > MAX_CHILDREN:
                raise _too_many(self.fan_out.run_id)
            self._names.update(names)


def prefix_of(run_id: UUID) -> str:
    """How the idempotency keys of a run's children begin."""
    return f"child:{run_id}:"


def name_in(key: str) -> str:
    """The name of a child, from its key."""
    return key.split(":", 2)[-1]


def child_header(fan_out: FanOut) -> dict[str, str]:
    return {CHILD_OF: " ".join(map(str, (fan_out.run_id, *fan_out.above)))}


def marked(headers: str | None) -> str:
    """The headers of a run that has children."""
    given = {} if headers is None else msgspec.json.decode(headers)
    return msgspec.json.encode({**given, HAS_CHILDREN: "1"}).decode()


def has_children(headers: str | None) -> bool:
    """Whether an earlier attempt at the run with these headers has submitted children."""
    return headers is not None and f'"{HAS_CHILDREN}"' in headers


def above(headers: str | None) -> tuple[UUID, ...]:
    """Whose child a run is, if it is one, whose child that is, and so on."""
    if headers is None or f'"{CHILD_OF}"' not in headers:
        return ()
    return tuple(map(UUID, msgspec.json.decode(headers)[CHILD_OF].split(" ")))


def check_not_awaited(fan_out: FanOut, awaited: Iterable[UUID]) -> None:
    """A child that waited for its own run, or for one above that, would wait for ever: so would they."""
    for run_id in awaited:
        if run_id in (fan_out.run_id, *fan_out.above):
            raise InvalidInput(
                f"A child would wait for run {run_id}, which ends only when its children have.",
                code="child-after-its-run",
                hint="Leave out after and outputs of that run, or submit without child.",
                field="after",
                value=str(run_id),
            )


# ── what people write ───────────────────────────────────────────────────────────────────────────────────────────


def checked_child(child: object, may_fail: object) -> tuple[str | bool | None, bool | None]:
    """`child` and `may_fail` as `options(…)` takes them."""
    if child is None or child is False:
        if may_fail is not None:
            raise invalid("may_fail", may_fail, "goes with child")
        return None, None
    if child is not True:
        checked_text(child, "child", MAX_NAME_LENGTH)
    if may_fail is not None and not isinstance(may_fail, bool):
        raise invalid("may_fail", may_fail, "must be True or False")
    return child, may_fail or None  # type: ignore[return-value]  # a text, as was checked


def condition_of(may_fail: bool) -> Condition:
    """How a child has to end."""
    return Condition.END if may_fail else Condition.SUCCESS


def refused_child(why: str, *, code: str, hint: str) -> InvalidInput:
    return InvalidInput(f"child was given, {why}.", code=code, hint=hint, field="child")


def name_for_many() -> InvalidInput:
    return refused_child(
        "with a name, and one name cannot stand for many runs",
        code="child-name-for-many",
        hint="Say child=True, or submit them one by one, each with its own name.",
    )


def child_elsewhere(where: str) -> InvalidInput:
    return refused_child(
        f"for a run that is submitted {where}",
        code="child-elsewhere",
        hint="Submit it by itself, or leave out child.",
    )


def outside_handler() -> InvalidInput:
    return refused_child(
        "and this is no handler of a worker: whose child would it be",
        code="child-outside-handler",
        hint="Submit it inside of a handler, or leave out child.",
    )


def of_transactional(job: str) -> InvalidInput:
    return refused_child(
        f"and runs of {job} are finished by their own transactions: then nothing waits for children",
        code="child-of-transactional",
        hint="Leave out child, or let another job submit them.",
    )


def of_chunk(job: str) -> InvalidInput:
    return refused_child(
        f"and one call of {job} is for several runs: whose child would it be",
        code="child-in-chunk",
        hint="Leave out child, or let a job without chunk submit them.",
    )


def _too_deep(run_id: UUID) -> InvalidInput:
    return InvalidInput(
        f"Run {run_id} is a child of a child, and so on, {MAX_DEPTH} times: it may have no children.",
        code="child-too-deep",
        hint="Does a job submit itself without an end? Else submit without child.",
        field="child",
    )


def _too_many(run_id: UUID) -> InvalidInput:
    return InvalidInput(
        f"Run {run_id} has more than {MAX_CHILDREN:,} children.",
        code="too-many-children",
        hint="Let children have children, or handle many items in one run.",
        field="child",
    )


# ── how it ends ─────────────────────────────────────────────────────────────────────────────────────────────────


def failed_error(children: Sequence[tuple[UUID, State]]) -> dict[str, Any]:
    """Why a run is a dead letter whose children ended like this: what its history says."""
    (first, state), others = children[0], len(children) - 1
    more = "" if not others else f", and {others:,} other{'s' if others > 1 else ''} did not succeed"
    message = f"Its child, run {first}, {ENDED_WORDS[state]}{more}."
    return {"code": "child-failed", "message": message, "child": str(first)}


def changed_child(key: str, run_id: UUID) -> IdempotencyConflict:
    _, parent, name = key.split(":", 2)
    return IdempotencyConflict(
        f"Child {quoted(name)} of run {parent} was submitted before, as run {run_id}, with other content.",
        code="child-changed",
        hint="A handler that runs again has to submit the same children; give them names: options(child=…).",
        field="child",
        value=name,
        run_id=str(run_id),
    )


def summary(children: Sequence[ChildStatus]) -> str:
    """How many there are, and how they are doing."""
    counts = Counter("forgotten" if each.state is None else each.state.value for each in children)
    return f"{len(children):,} child{'ren' if len(children) != 1 else ''}: " + _listed(counts)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {word}" for word, number in counts.items())
