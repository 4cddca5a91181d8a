"""Flows: whole graphs of runs, submitted in one transaction; looked at, waited for, cancelled and retried as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.dead import act_of, requeue_in_lane
from mainspring.errors import FlowNotFound, InvalidInput, ResultTimeout
from mainspring.model.fan_out import summary
from mainspring.model.flow import (
    MAX_NAME_LENGTH,
    FlowState,
    FlowStatus,
    GraphNode,
    NodeStatus,
    in_order,
    state_of,
    to_retry,
    with_parents,
)
from mainspring.model.ids import by_lane, lane_of, parse_run_id
from mainspring.model.job import checked_reason, checked_text
from mainspring.model.lifecycle import State
from mainspring.store import failed_children, fan_outs, notify, runs
from mainspring.store import flows as store
from mainspring.store.connection import transaction, uncancelled
from mainspring.store.flows import NewFlow
from mainspring.worker.waits import without_slot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.reruns import Reruns
    from mainspring.control.submissions import Submissions
    from mainspring.control.submitter import Submitter
    from mainspring.model.actor import Actor
    from mainspring.model.flow import NodeEnd, NodeRequest
    from mainspring.store import dead
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.failed_children import FailedChildren
    from mainspring.store.flows import StoredFlow

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
MOST_LISTED = 100
CANCELLED_AT_ONCE = 1_000


class SubmittedFlow(NamedTuple):
    """The id of a flow, and the run of each of its nodes."""

    id: UUID
    runs: Mapping[UUID, UUID]


class Flows:
    """Submits flows, and acts on them."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        lanes: int,
        submissions: Submissions,
        submitter: Submitter,
        reruns: Reruns,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lanes = lanes
        self._submissions = submissions
        self._submitter = submitter
        self._reruns = reruns

    async def submit(self, actor: Actor, name: str, nodes: Sequence[NodeRequest]) -> SubmittedFlow:
        """Accept a graph of runs: all of it, or nothing."""
        checked_text(name, "name", MAX_NAME_LENGTH)
        ordered = in_order(nodes)

        async def submit() -> SubmittedFlow:
            flow_id, *ids = self._submitter.ids_in_one_lane(1 + len(ordered))
            ids_of = {node.id: run_id for node, run_id in zip(ordered, ids, strict=True)}
            graph = [_graph_node(node, ids_of) for node in nodes]
            new = NewFlow(flow_id, actor.tenant, name, graph, actor.name)
            built, known = await self._submissions.built(actor, ordered, ids_of)
            await self._submitter.submit_flow(new, ids, built, known)
            return SubmittedFlow(flow_id, ids_of)

        return await self._submissions.definitions.again_if_replaced(submit)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────

    async def find(self, actor: Actor, flow_id: UUID | str) -> FlowStatus:
        """A flow, and how each of its runs is doing."""
        parsed = parse_run_id(flow_id, "flow")
        async with self._database.acquire() as connection:
            flow = await store.find(connection, parsed, tenant_id=actor.tenant)
            if flow is None:
                raise not_found(parsed)
            return await _status(connection, flow, actor.tenant, with_children=True)

    async def list(self, actor: Actor, *, limit: int = 20, before: UUID | str | None = None) -> list[FlowStatus]:
        """The newest flows first; `before` a flow, those that were submitted earlier."""
        if not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
            raise InvalidInput(
                f"limit is {limit!r}; it must be a whole number from 1 to {MOST_LISTED}.",
                code="invalid-limit",
                field="limit",
                value=repr(limit),
            )
        position = None if before is None else parse_run_id(before, "flow")
        async with self._database.acquire() as connection:
            found = await store.newest(connection, self._lanes, limit, position, tenant_id=actor.tenant)
            return [await _status(connection, flow, actor.tenant) for flow in found]

    async def wait(self, actor: Actor, flow_id: UUID | str, timeout: float | None = None) -> FlowStatus:
        """How a flow stands, once nothing of it goes on; raises ResultTimeout if that takes longer than `timeout`."""
        async with without_slot():
            try:
                async with asyncio.timeout(timeout):
                    return await self._over(actor, flow_id)
            except TimeoutError:
                raise ResultTimeout(
                    f"Flow {flow_id} is not over after {timeout:g} s.", hint="It goes on; wait again, or cancel it."
                ) from None

    async def _over(self, actor: Actor, flow_id: UUID | str) -> FlowStatus:
        pause = FIRST_PAUSE
        while (found := await self.find(actor, flow_id)).state is FlowState.RUNNING:
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)
        return found

    # ── acting ──────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, actor: Actor, flow_id: UUID | str, *, reason: str = "") -> FlowStatus:
        """Cancel all that waits or runs: what waits ends at once, what runs is asked to stop."""
        checked = checked_reason(reason)
        found = await self.find(actor, flow_id)
        going_on = [each.run_id for each in found.nodes if each.state not in (None, State.DEAD, *_ENDS)]
        await uncancelled(self._cancel(actor, found.id, going_on, checked))
        return await self.find(actor, flow_id)

    async def _cancel(self, actor: Actor, flow_id: UUID, run_ids: Sequence[UUID], reason: str) -> None:
        async with self._database.acquire() as connection:
            await store.audit(
                connection,
                flow_id,
                "flow.cancel",
                tenant_id=actor.tenant,
                actor=actor.name,
                detail={"reason": reason},
            )
            for lane, some in by_lane(run_ids):
                for start in range(0, len(some), CANCELLED_AT_ONCE):
                    few = some[start : start + CANCELLED_AT_ONCE]
                    cancelled = await runs.cancel_wherever(
                        connection, lane, few, tenant_id=actor.tenant, actor=actor.name, reason=reason
                    )
                    notify.send(connection, [notify.cancel(worker) for worker in cancelled.workers])

    async def retry(self, actor: Actor, flow_id: UUID | str, *, reason: str = "") -> FlowStatus:
        """Run again what did not succeed: dead letters are requeued, and what was cancelled or lost gets new runs.

        Those wait again for what they waited for. Children that failed are run again with their runs: dead ones are
        requeued, others are submitted anew by the handler. What succeeded stays. All of it happens, or nothing.
        """
        parsed = parse_run_id(flow_id, "flow")
        act = act_of(actor, checked_reason(reason))
        await uncancelled(self._retry(actor, parsed, act, reason))
        return await self.find(actor, parsed)

    async def _retry(self, actor: Actor, flow_id: UUID, act: dead.Act, reason: str) -> None:
        async with self._database.acquire() as connection, transaction(connection):
            await store.hold_back_resolving(connection, flow_id)
            flow = await store.lock(connection, flow_id, tenant_id=actor.tenant)
            if flow is None:
                raise not_found(flow_id)
            ends = await store.ends_of(connection, (node.run_id for node in flow.graph), tenant_id=actor.tenant)
            failed = await failed_children.find(
                connection, lane_of(flow_id), _with_children(ends), tenant_id=actor.tenant
            )
            stands = await self._again(connection, flow, ends, act)
            children = await self._children_again(connection, flow_id, failed, stands, act)
            if not (stands or children):
                raise _nothing_to_retry(flow_id)
            graph = [_standing(node, stands) for node in flow.graph]
            new = [node for node in graph if node.run_id not in ends]
            await store.wait_again(connection, new, tenant_id=actor.tenant)
            waiting = [node for node in graph if _waits_for_another(node, stands, ends)]
            await store.wait_for_others(connection, waiting, stands, tenant_id=actor.tenant)
            await store.replace(
                connection,
                flow_id,
                graph,
                tenant_id=actor.tenant,
                actor=actor.name,
                detail={"reason": reason, "runs": len(new), "children": len(children)},
            )
            notify.send(connection, [notify.dependency()])

    async def _again(
        self, connection: Connection, flow: StoredFlow, ends: Mapping[UUID, NodeEnd], act: dead.Act
    ) -> Mapping[UUID, UUID]:
        """Run again what did not succeed; answers which run stands for which from now on."""
        stands: dict[UUID, UUID] = {}
        for lane, some in by_lane(node.run_id for node in to_retry(flow.graph, ends)):
            stands |= await self._reruns.rerun_in_lane(connection, lane, some, act)
        return stands

    async def _children_again(
        self,
        connection: Connection,
        flow_id: UUID,
        failed: FailedChildren,
        stands: Mapping[UUID, UUID],
        act: dead.Act,
    ) -> set[UUID]:
        """Requeue dead children; handlers that run again submit the others anew. Answers who was requeued."""
        lane = lane_of(flow_id)
        requeued = set(await requeue_in_lane(connection, lane, failed.dead, act)) if failed.dead else set()
        handled_again = requeued | stands.keys()
        over = {run_id: some for run_id, some in failed.over.items() if run_id in handled_again}
        await failed_children.forget(connection, lane, over, tenant_id=act.tenant_id)
        return requeued


_ENDS = (State.SUCCEEDED, State.CANCELLED, State.EXPIRED, State.LOST)


def _graph_node(node: NodeRequest, ids: Mapping[UUID, UUID]) -> GraphNode:
    return GraphNode(node.name, node.definition.name, ids[node.id], with_parents(node.parents, ids))


def _with_children(ends: Mapping[UUID, NodeEnd]) -> list[UUID]:
    """Runs that may wait for children, or have failed because of some: all that have not ended for good."""
    return [run_id for run_id, end in ends.items() if end.state not in (None, *_ENDS)]


def _nothing_to_retry(flow_id: UUID) -> InvalidInput:
    return InvalidInput(
        f"Flow {flow_id} has nothing to retry: nothing of it has failed or was cancelled.",
        code="nothing-to-retry",
        hint=f"See how it stands: mainspring flow show {flow_id}",
        field="flow",
    )


def _standing(node: GraphNode, stands: Mapping[UUID, UUID]) -> GraphNode:
    run_id = stands.get(node.run_id, node.run_id)
    return GraphNode(node.name, node.job, run_id, with_parents(node.parents, stands))


def _waits_for_another(node: GraphNode, stands: Mapping[UUID, UUID], ends: Mapping[UUID, NodeEnd]) -> bool:
    """Whether a node goes on waiting, and another run stands for one of its parents now."""
    made = {new for old, new in stands.items() if old != new}
    is_held = node.run_id in ends and ends[node.run_id].state is State.HELD
    return is_held and any(parent.run_id in made for parent in node.parents)


async def _status(
    connection: Connection, flow: StoredFlow, tenant_id: int, *, with_children: bool = False
) -> FlowStatus:
    run_ids = [node.run_id for node in flow.graph]
    ends = await store.ends_of(connection, run_ids, tenant_id=tenant_id)
    children = await fan_outs.children_of(connection, run_ids, tenant_id=tenant_id) if with_children else {}
    names = {node.run_id: node.name for node in flow.graph}
    return FlowStatus(
        id=flow.id,
        name=flow.name,
        state=state_of(ends),
        nodes=[
            NodeStatus(
                name=node.name,
                job=node.job,
                run_id=node.run_id,
                state=ends[node.run_id].state,
                after=[names.get(parent.run_id, str(parent.run_id)) for parent in node.parents],
                children=summary(children[node.run_id]) if node.run_id in children else "",
            )
            for node in flow.graph
        ],
        submitted_at=flow.submitted_at,
        submitted_by=flow.submitted_by,
    )


def not_found(flow_id: UUID) -> FlowNotFound:
    return FlowNotFound(f"There is no flow {flow_id}.", hint="List them: mainspring flow list", flow_id=str(flow_id))
