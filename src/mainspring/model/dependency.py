"""Runs that wait until others have ended: on which condition, and what happens otherwise.

The one that waits is the *child*, those it waits for are its *parents*. Results of parents become arguments of the
child when it is released, so from then on it is a run like any other.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID, uuid4

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.lifecycle import State
from mainspring.model.payload import MAX_PAYLOAD_BYTES, quoted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

MAX_PARENTS = 20_000  # of one run

Path = tuple[str | int, ...]  # an argument, or one place in a list that is an argument


class Condition(StrEnum):
    """How a parent has to end."""

    SUCCESS = "success"
    FAILURE = "failure"  # as a dead letter, lost or expired
    END = "end"  # anyhow


class Otherwise(StrEnum):
    """What happens to the child if a parent ends otherwise."""

    CANCEL = "cancel"
    HOLD = "hold"  # it waits on: a dead letter may be requeued, and succeed


class Met(Enum):
    """Whether a parent has ended as it should."""

    YES = "yes"
    NO = "no"
    NOT_YET = "not yet"


class Parent(NamedTuple):
    """A run that has to end first."""

    run_id: UUID
    condition: Condition = Condition.SUCCESS
    otherwise: Otherwise = Otherwise.CANCEL
    inputs: tuple[Path, ...] = ()  # arguments that get its result


_FAILED = frozenset({State.DEAD, State.LOST, State.EXPIRED})
_MEETS = {
    Condition.SUCCESS: frozenset({State.SUCCEEDED}),
    Condition.FAILURE: _FAILED,
    Condition.END: _FAILED | {State.SUCCEEDED, State.CANCELLED},
}


def met(condition: Condition, otherwise: Otherwise, ended_as: State | None) -> Met:
    """Whether a parent that ended like this is what its child waits for."""
    if ended_as is None:
        return Met.NOT_YET
    if ended_as in _MEETS[condition]:
        return Met.YES
    return Met.NO if otherwise is Otherwise.CANCEL else Met.NOT_YET


def broken_error(parent_id: UUID, condition: Condition, ended_as: State) -> dict[str, Any]:
    """Why a child was cancelled: what its history says."""
    wanted = {Condition.SUCCESS: "should have succeeded", Condition.FAILURE: "should have failed", Condition.END: ""}
    code = "parent-succeeded" if ended_as is State.SUCCEEDED else "parent-failed"
    message = f"Run {parent_id}, which {wanted[condition]} before, {ENDED_WORDS[ended_as]}."
    return {"code": code, "message": message, "parent": str(parent_id)}


ENDED_WORDS = {
    State.SUCCEEDED: "succeeded",
    State.DEAD: "is a dead letter",
    State.CANCELLED: "was cancelled",
    State.EXPIRED: "expired",
    State.LOST: "was lost",
}

# ── what people write ───────────────────────────────────────────────────────────────────────────────────────────


class ResultOf:
    """The result of another run, in the place of an argument: what `handle.output` is.

    No type that can be stored: whoever forgets about it is told so.
    """

    __slots__ = ("run_id",)
    hint_as_argument = "job.submit and flow.add take an output as an argument, or as a member of a list that is one."

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id

    def __repr__(self) -> str:
        return f"<result of run {self.run_id}>"


class _Named(Protocol):
    name: str


class FlowNode(_Named, Protocol):
    """A node of a flow that is drawn."""

    @property
    def flow(self) -> _Named: ...


class NodeId(UUID):
    """By which nodes of a flow name each other until they are runs. It knows its node, for messages."""

    __slots__ = ("of",)
    of: FlowNode

    def __init__(self, node: FlowNode) -> None:
        super().__init__(int=uuid4().int)
        object.__setattr__(self, "of", node)  # ids refuse to be changed, and this one does from now on


def check_nodes(parents: Iterable[Parent], own: Container[UUID] = ()) -> None:
    """Refuse nodes of flows among parents, but for a flow's `own`: until they are submitted, there are no such runs."""
    for parent in parents:
        if isinstance(parent.run_id, NodeId) and parent.run_id not in own:
            node = parent.run_id.of
            raise InvalidInput(
                f"Node {quoted(node.name)} of flow {quoted(node.flow.name)} is no run yet:"
                " only nodes of that flow can wait for it.",
                code="node-of-another-flow",
                hint="Submit that flow first, and wait for the run of the node: submitted.run(node).",
                field="after",
                value=node.name,
                flow=node.flow.name,
            )


def checked_parents(
    after: object, on: Condition | str | None, otherwise: Otherwise | str | None
) -> tuple[Parent, ...] | None:
    """Parents as `options(after=…, on=…, otherwise=…)` takes them: runs, by their handles or ids."""
    if after is None:
        for name, given in (("on", on), ("otherwise", otherwise)):
            if given is not None:
                raise invalid(name, given, "goes with after")
        return None
    condition = _word(Condition, "on", on, Condition.SUCCESS)
    what_else = _word(Otherwise, "otherwise", otherwise, Otherwise.CANCEL)
    runs = list(after) if isinstance(after, (list, tuple, set, frozenset)) else [after]
    ids = list(dict.fromkeys(_run_id(each) for each in runs))
    if not 1 <= len(ids) <= MAX_PARENTS:
        raise invalid("after", f"{len(ids)} runs", f"must be 1 to {MAX_PARENTS:,} runs")
    return tuple(Parent(each, condition, what_else) for each in ids)


def _run_id(given: object) -> UUID:
    found = getattr(given, "id", given)
    if isinstance(found, UUID):
        return found
    try:
        return UUID(found)  # type: ignore[arg-type]  # whatever was given
    except (ValueError, TypeError, AttributeError):
        raise invalid("after", given, "must be runs: handles, or their ids") from None


def _word(kind: Any, name: str, given: object, default: Any) -> Any:
    try:
        return default if given is None else kind(given)
    except ValueError:
        raise invalid(name, given, f"must be one of {', '.join(kind)}") from None


# ── results as arguments ────────────────────────────────────────────────────────────────────────────────────────


def outputs_in(arguments: Mapping[str, Any]) -> dict[Path, ResultOf]:
    """Where arguments stand for results of other runs: an argument itself, or members of a list."""
    found: dict[Path, ResultOf] = {}
    for name, value in arguments.items():
        if isinstance(value, ResultOf):
            found[name,] = value
        elif isinstance(value, (list, tuple)):
            found |= {(name, place): each for place, each in enumerate(value) if isinstance(each, ResultOf)}
    return found


def with_inputs(parents: Iterable[Parent], outputs: Mapping[Path, ResultOf]) -> tuple[Parent, ...]:
    """Parents, those among them whose results become arguments: a run that is only named by its result is one, too."""
    known = {each.run_id: each for each in parents}
    for path, output in outputs.items():
        parent = known.get(output.run_id, Parent(output.run_id))
        if parent.condition is not Condition.SUCCESS:
            raise InvalidInput(
                f"{_named(parent.run_id)} need not succeed, and its result is an argument: then there may be none.",
                code="result-without-success",
                hint='Leave out on="…", or the argument.',
                field=path[0],
            )
        known[output.run_id] = parent._replace(inputs=(*parent.inputs, path))
    return tuple(known.values())


def _named(run_id: UUID) -> str:
    return f"Node {quoted(run_id.of.name)}" if isinstance(run_id, NodeId) else f"Run {run_id}"


def filled_in(payload: bytes, results: Sequence[tuple[Path, bytes | msgspec.Raw]]) -> bytes | None:
    """The payload with results in their places; None if they do not fit there, or it is too large then."""
    try:
        filled = _filled_in(payload, results)
    except (msgspec.MsgspecError, LookupError):  # somebody has changed the arguments meanwhile
        return None
    return filled if len(filled) <= MAX_PAYLOAD_BYTES else None


def _filled_in(payload: bytes, results: Sequence[tuple[Path, bytes | msgspec.Raw]]) -> bytes:
    document = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    lists: dict[str, list[msgspec.Raw]] = {}
    for path, result in results:
        value = msgspec.Raw(result)
        name = str(path[0])
        if len(path) == 1:
            document[name] = value
            continue
        if name not in lists:
            lists[name] = msgspec.json.decode(document[name], type=list[msgspec.Raw])
        lists[name][int(path[1])] = value
    return msgspec.json.encode({**document, **lists})
