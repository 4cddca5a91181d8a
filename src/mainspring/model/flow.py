"""Flows: runs that were submitted together, and who of them waits for whom.

A flow is drawn once, as nodes and what each of them waits for; what becomes of the runs is theirs. So the graph is kept
as people drew it, and how the flow stands is always read from its runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence  # noqa: TC003  msgspec reads the annotations
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID  # noqa: TC003  msgspec reads the annotations

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.dependency import Parent  # noqa: TC001  msgspec reads the annotations
from mainspring.model.lifecycle import State
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mainspring.model.job import JobDefinition
    from mainspring.model.options import SubmitOptions

MAX_NODES = 20_000
MAX_DEPENDENCIES = 100_000
MAX_NAME_LENGTH = 200


class FlowState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # nothing goes on, and something is a dead letter, expired or was lost
    CANCELLED = "cancelled"  # nothing goes on, and somebody cancelled something


class NodeRequest(NamedTuple):
    """One node of a flow that is to be submitted."""

    id: UUID  # by which others of the flow name it, until there is a run
    name: str
    definition: JobDefinition
    options: SubmitOptions
    parents: tuple[Parent, ...]
    payload: bytes


class GraphNode(msgspec.Struct, frozen=True, array_like=True):
    """One node of a flow as it is kept: its run, and what that waits for."""

    name: str
    job: str
    run_id: UUID
    parents: tuple[Parent, ...] = ()


Graph = tuple[GraphNode, ...]
_decoder = msgspec.json.Decoder(tuple[GraphNode, ...])


def encoded_graph(graph: Sequence[GraphNode]) -> bytes:
    return msgspec.json.encode(graph)


def decoded_graph(data: bytes) -> Graph:
    return _decoder.decode(data)


class NodeEnd(NamedTuple):
    """Where the run of a node is, or how it ended; and why, if it was cancelled."""

    state: State | None  # None: history has forgotten it
    code: str | None = None
    parent: UUID | None = None  # because of which run, if that is why


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One node of a flow, and how its run is doing."""

    name: str
    job: str
    run_id: UUID
    state: State | None
    after: Sequence[str]  # the names of nodes, or ids of runs outside of the flow
    children: str = ""  # how many children its run has, and how they are doing


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A flow as people see it."""

    id: UUID
    name: str
    state: FlowState
    nodes: Sequence[NodeStatus]
    submitted_at: datetime
    submitted_by: str

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are in which state."""
        return dict(Counter("forgotten" if each.state is None else each.state.value for each in self.nodes))


_BAD = frozenset({State.DEAD, State.LOST, State.EXPIRED})
_GOING_ON = frozenset({State.SCHEDULED, State.HELD, State.READY, State.RUNNING})


def state_of(ends: Mapping[UUID, NodeEnd]) -> FlowState:
    """How a flow stands, from how its runs do."""
    found = list(ends.values())
    if any(each.state in _GOING_ON for each in found):
        return FlowState.RUNNING
    if any(each.state in _BAD or _is_failure(each, ends) for each in found):
        return FlowState.FAILED
    if any(each.state is State.CANCELLED and each.code not in _CAUSED for each in found):
        return FlowState.CANCELLED
    return FlowState.SUCCEEDED


_CAUSED = frozenset({"parent-failed", "parent-succeeded"})
_UNFILLED = frozenset({"inputs-do-not-fit", "result-gone"})


def _is_failure(end: NodeEnd, ends: Mapping[UUID, NodeEnd]) -> bool:
    """Whether a run was cancelled by what went wrong outside of the flow. Of what did within it, that itself tells."""
    return end.code in _UNFILLED or (end.code == "parent-failed" and end.parent not in ends)


def to_retry(graph: Graph, ends: Mapping[UUID, NodeEnd]) -> list[GraphNode]:
    """What did not succeed, and should have: failures, and those cancelled because of them or by somebody."""
    return [each for each in graph if _is_unfinished(ends[each.run_id])]


def _is_unfinished(end: NodeEnd) -> bool:
    return end.state in _BAD or (end.state is State.CANCELLED and end.code != "parent-succeeded")


# ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────


def in_order(nodes: Sequence[NodeRequest]) -> list[NodeRequest]:
    """The nodes of a flow, each after all that it waits for; or an error that says what is wrong with them."""
    _check_size(nodes)
    known = {each.id: each for each in nodes}
    waits = {each.id: [parent.run_id for parent in each.parents if parent.run_id in known] for each in nodes}
    try:
        return [known[each] for each in TopologicalSorter(waits).static_order()]
    except CycleError as error:
        names = [known[each].name for each in reversed(error.args[1])]
        raise InvalidInput(
            f"Nodes of the flow wait for each other in a circle: {' → '.join(map(quoted, names[:10]))}.",
            code="flow-cycle",
            hint="Let one of them not wait.",
            field="after",
            nodes=names[:100],
        ) from None


def _check_size(nodes: Sequence[NodeRequest]) -> None:
    dependencies = sum(len(each.parents) for each in nodes)
    for what, found, most in (("nodes", len(nodes), MAX_NODES), ("dependencies", dependencies, MAX_DEPENDENCIES)):
        if found > most:
            raise InvalidInput(
                f"The flow has {found:,} {what}; at most {most:,} are allowed.",
                code="flow-too-large",
                hint="Let a node submit a flow of its own, or handle many items in one run.",
                field=what,
                value=found,
            )
    if not nodes:
        raise InvalidInput(
            "The flow has no nodes.", code="flow-empty", hint="Add one: flow.add(job, …).", field="nodes"
        )
    names = Counter(each.name for each in nodes)
    if len(names) < len(nodes):
        twice = names.most_common(1)[0][0]
        raise InvalidInput(
            f"Two nodes of the flow are called {quoted(twice)}.", code="flow-name-twice", field="name", value=twice
        )


def with_parents(parents: Sequence[Parent], runs: Mapping[UUID, UUID]) -> tuple[Parent, ...]:
    """Parents by their runs: nodes have some by now, others are runs already."""
    return tuple(each._replace(run_id=runs.get(each.run_id, each.run_id)) for each in parents)
