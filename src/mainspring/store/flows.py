"""Flows: the graphs that people submitted. What their runs do is where runs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from mainspring.model.flow import NodeEnd, decoded_graph, encoded_graph
from mainspring.model.ids import by_lane, lane_of
from mainspring.model.lifecycle import State
from mainspring.store import dependencies, lists
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from mainspring.model.dependency import Parent
    from mainspring.model.flow import Graph, GraphNode
    from mainspring.store.connection import Connection, Record

NEWEST = UUID(int=2**128 - 1)


class NewFlow(NamedTuple):
    """A flow that is submitted together with its runs."""

    id: UUID
    tenant_id: int
    name: str
    graph: Sequence[GraphNode]
    submitted_by: str


class StoredFlow(NamedTuple):
    id: UUID
    name: str
    revision: int
    graph: Graph
    submitted_at: datetime
    submitted_by: str


async def add(connection: Connection, flow: NewFlow) -> None:
    await load("flows/add").execute(
        connection,
        lane=lane_of(flow.id),
        id=flow.id,
        tenant=flow.tenant_id,
        name=flow.name,
        graph=encoded_graph(flow.graph),
        actor=flow.submitted_by,
    )


async def find(connection: Connection, flow_id: UUID, *, tenant_id: int) -> StoredFlow | None:
    row = await load("flows/find").fetchrow(connection, lane=lane_of(flow_id), flow=flow_id, tenant=tenant_id)
    return None if row is None else _stored(row)


async def lock(connection: Connection, flow_id: UUID, *, tenant_id: int) -> StoredFlow | None:
    row = await load("flows/lock").fetchrow(connection, lane=lane_of(flow_id), flow=flow_id, tenant=tenant_id)
    return None if row is None else _stored(row)


async def newest(
    connection: Connection, lanes: int, count: int, before: UUID | None, *, tenant_id: int
) -> list[StoredFlow]:
    rows = [
        row
        for lane in connection.reach.lanes(range(lanes))
        for row in await load("flows/list").fetch(
            connection, lane=lane, tenant=tenant_id, before=before or NEWEST, count=count
        )
    ]
    return [_stored(row) for row in sorted(rows, key=lambda row: row["id"], reverse=True)[:count]]


def _stored(row: Record) -> StoredFlow:
    return StoredFlow(**dict(row) | {"graph": decoded_graph(row["graph"])})


async def ends_of(connection: Connection, run_ids: Iterable[UUID], *, tenant_id: int) -> dict[UUID, NodeEnd]:
    """Where each of these runs is, or how it ended."""
    ids = list(run_ids)
    states = await lists.states_of(connection, ids, tenant_id=tenant_id)
    cancelled = [run_id for run_id, state in states.items() if state is State.CANCELLED]
    codes = await _codes(connection, cancelled, tenant_id=tenant_id)
    return {run_id: NodeEnd(states.get(run_id), *codes.get(run_id, ())) for run_id in ids}


async def _codes(
    connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int
) -> dict[UUID, tuple[str, UUID | None]]:
    """Why runs were cancelled, and because of which other run, if that is why."""
    found: dict[UUID, tuple[str, UUID | None]] = {}
    for lane, some in by_lane(run_ids):
        rows = await load("flows/ends").fetch(
            connection, lane=lane, runs=some, since=recorded_since(some), tenant=tenant_id
        )
        found |= {row["run_id"]: (row["code"], row["parent"]) for row in rows}
    return found


async def replace(
    connection: Connection,
    flow_id: UUID,
    graph: Sequence[GraphNode],
    *,
    tenant_id: int,
    actor: str,
    detail: Mapping[str, object],
) -> None:
    await load("flows/replace").execute(
        connection,
        lane=lane_of(flow_id),
        flow=flow_id,
        tenant=tenant_id,
        graph=encoded_graph(graph),
        actor=actor,
        detail=msgspec.json.encode(detail).decode(),
    )


async def audit(
    connection: Connection, flow_id: UUID, action: str, *, tenant_id: int, actor: str, detail: Mapping[str, object]
) -> None:
    await load("flows/audit").execute(
        connection,
        lane=lane_of(flow_id),
        tenant=tenant_id,
        actor=actor,
        action=action,
        subject=str(flow_id),
        detail=msgspec.json.encode(detail).decode(),
    )


async def hold_back_resolving(connection: Connection, flow_id: UUID) -> None:
    """Until COMMIT nobody tells runs of this flow that others have ended."""
    await load("flows/lock_lane").fetchval(connection, lane=lane_of(flow_id))


async def wait_again(connection: Connection, nodes: Sequence[GraphNode], *, tenant_id: int) -> None:
    """Let runs that were made in this transaction wait for those that they have to, as the graph says."""
    waiting = [node for node in nodes if node.parents]
    items = dependencies.items_of(_parents(waiting), {node.run_id for node in waiting})
    await _add(connection, items, tenant_id)
    for lane, some in by_lane(node.run_id for node in waiting):
        await load("flows/hold").execute(connection, lane=lane, runs=some)


async def wait_for_others(
    connection: Connection, nodes: Sequence[GraphNode], stands: Mapping[UUID, UUID], *, tenant_id: int
) -> None:
    """Let runs that wait already do so for the runs that stand for their parents now."""
    if nodes:
        replaced = [old for old, new in stands.items() if old != new]
        children = [node.run_id for node in nodes]
        for lane, some in by_lane(replaced):
            await load("dependencies/drop").execute(connection, lane=lane, parents=some, children=children)
        items = dependencies.items_of(_parents(nodes), set(), only={stands[old] for old in replaced})
        await _add(connection, items, tenant_id)


def _parents(nodes: Iterable[GraphNode]) -> list[tuple[UUID, tuple[Parent, ...]]]:
    return [(node.run_id, node.parents) for node in nodes]


async def _add(connection: Connection, items: Iterable[tuple[int, str]], tenant_id: int) -> None:
    for lane, some in items:
        rows = await load("dependencies/add").fetch(connection, lane=lane, tenant=tenant_id, items=some)
        dependencies.refuse_unknown(row["run_id"] for row in rows)
