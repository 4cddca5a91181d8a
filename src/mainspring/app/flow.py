"""Flows as their authors draw them: nodes are calls of jobs, and results of some are arguments of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from mainspring.app.binding import blocking, verb
from mainspring.app.collections import Collection
from mainspring.app.handle import Handle
from mainspring.control.flows import Flows
from mainspring.errors import InvalidInput, did_you_mean
from mainspring.model.dependency import NodeId, ResultOf, check_nodes, checked_parents, with_inputs
from mainspring.model.flow import MAX_NAME_LENGTH, NodeRequest
from mainspring.model.flow_drawing import mermaid, tree
from mainspring.model.ids import parse_run_id
from mainspring.model.job import checked_text
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.model.actor import Actor
    from mainspring.model.dependency import Condition, Otherwise, Parent
    from mainspring.model.flow import FlowStatus

P = ParamSpec("P")
R = TypeVar("R")


class Node(Generic[R]):
    """One run of a flow that is still to be submitted."""

    hint_as_argument = "For what the node will return, pass node.output."

    def __init__(self, flow: Flow, name: str, job: Job[Any, R], parents: tuple[Parent, ...], payload: bytes) -> None:
        self.id = NodeId(self)
        self.name = name
        self.flow = flow
        self._job = job
        self._parents = parents
        self._payload = payload

    @property
    def job(self) -> Job[Any, R]:
        """Whose run it is, with its options."""
        return self._job

    @property
    def output(self) -> R:
        """What its handler will return, as an argument of another node: that one waits for it."""
        return ResultOf(self.id)  # type: ignore[return-value]  # it stands for one

    def named(self, name: str) -> Node[R]:
        """Call it otherwise than by its job's name: what people see of the flow."""
        self.name = checked_text(name, "name", MAX_NAME_LENGTH)
        return self

    def after(
        self, *others: object, on: Condition | str | None = None, otherwise: Otherwise | str | None = None
    ) -> Node[R]:
        """Let it wait for other nodes, or for runs outside of the flow, as `job.options(after=…)` does."""
        given = {each.run_id: each for each in checked_parents(list(others), on, otherwise) or ()}
        check_nodes(given.values(), self.flow.nodes)
        had = {each.run_id: each for each in self._parents}
        for run_id, parent in given.items():
            inputs = had[run_id].inputs if run_id in had else ()
            had[run_id] = with_inputs([parent], dict.fromkeys(inputs, ResultOf(run_id)))[0]
        self._parents = tuple(had.values())
        return self

    def request(self) -> NodeRequest:
        return NodeRequest(
            self.id, self.name, self._job.definition, self._job.submit_options, self._parents, self._payload
        )

    def __repr__(self) -> str:
        return f"<node {self.name}>"


class Flow:
    """A graph of runs, drawn here and submitted as one: all of it, or nothing."""

    def __init__(self, app: Mainspring, name: str) -> None:
        self._app = app
        self.name = checked_text(name, "name", MAX_NAME_LENGTH)
        self.nodes: dict[UUID, Node[Any]] = {}
        self._names: dict[str, int] = {}

    def add(self, job: Job[P, R], *args: P.args, **kwargs: P.kwargs) -> Node[R]:
        """Add a run of a job. Arguments may be outputs of other nodes: it then waits for them.

        What it waits for besides is said by `job.options(after=[…], on=…)`, or by `node.after(…)`.
        """
        self._check(job)
        through, payload = job.with_inputs(args, kwargs)
        # The job as it was given has its options in common with others: what it waits for is the node's own.
        parents = through.submit_options.after or ()
        check_nodes(parents, self.nodes)
        node = Node(self, self._name_of(job), job, parents, payload)
        self.nodes[node.id] = node
        return node

    def map(self, job: Job[Any, R], calls: Iterable[Mapping[str, Any]]) -> list[Node[R]]:
        """Add one run per mapping of arguments."""
        return [self.add(job, **call) for call in calls]

    def _check(self, job: Job[Any, Any]) -> None:
        others = job.app.tenant if job.is_of_one_tenant and job.app.tenant != self._app.acting_for else None
        for field, given in (("key", job.submit_options.key), ("connection", job.connection), ("tenant", others)):
            if given is not None:
                raise InvalidInput(
                    f"{field} is given for a node of a flow, which is submitted as a whole.",
                    code=f"{field}-in-flow",
                    hint="Leave it out, or submit that run by itself and let the flow wait for it.",
                    field=field,
                )

    def _name_of(self, job: Job[Any, Any]) -> str:
        """The job's name; from the second on with a number."""
        number = self._names[job.name] = self._names.get(job.name, 0) + 1
        return job.name if number == 1 else f"{job.name}-{number}"

    async def submit(self) -> FlowHandle:
        """Accept all of its runs; when this returns, they are durable."""
        flows = (await self._app.services()).of(Flows)
        for job in {id(node.job): node.job for node in self.nodes.values()}.values():
            self._check(job)  # again: it may have acted for another tenant where they were added
        requests = [node.request() for node in self.nodes.values()]
        submitted = await flows.submit(self._app.actor, self.name, requests)
        names = {each.id: each.name for each in requests}
        runs = {names[node_id]: run_id for node_id, run_id in submitted.runs.items()}
        return FlowHandle(self._app.acting, submitted.id, names, runs)

    submit_sync = blocking(submit)
    called = "flow"

    @property
    def opener(self) -> Mainspring:
        return self._app

    @property
    def leading(self) -> tuple[Actor]:
        return (self._app.actor,)


class FlowHandle:
    """A flow that was submitted, by its id. Each method has a twin for code that is not async: `flow.wait_sync()`."""

    __slots__ = ("_app", "_names", "_runs", "id")
    called = "flow"

    def __init__(
        self,
        app: Mainspring,
        flow_id: UUID,
        names: Mapping[UUID, str] | None = None,
        runs: Mapping[str, UUID] | None = None,
    ) -> None:
        self._app = app
        self._names = names or {}  # of the nodes, if it was submitted here
        self._runs = runs  # by the names of nodes, as they were when the flow was last looked at
        self.id = flow_id

    @property
    def opener(self) -> Mainspring:
        return self._app

    @overload
    def run(self, node: Node[R]) -> Handle[R]: ...
    @overload
    def run(self, node: str) -> Handle[Any]: ...
    def run(self, node: Node[Any] | str) -> Handle[Any]:
        """The run of a node, by the node as it was submitted here, or by its name.

        A retry makes new runs for some nodes. This answers with the runs that there were when the flow was last looked
        at through this handle, by `find`, `wait`, `cancel` or `retry`: so it follows retries by others, too.
        """
        if self._runs is None:
            raise InvalidInput(
                f"Flow {self.id} was not looked at through this handle yet, so its runs are not known here.",
                code="flow-not-seen",
                hint="Look at it first: await flow.find().",
                field="node",
            )
        name = node if isinstance(node, str) else self._name_of(node)
        if name not in self._runs:
            raise InvalidInput(
                f"Flow {self.id} has no node {quoted(name)}.",
                code="node-not-found",
                hint=did_you_mean(name, self._runs),
                field="node",
                value=quoted(name),
            )
        return Handle(self._app, self._runs[name])

    def _name_of(self, node: Node[Any]) -> str:
        if node.id not in self._names:
            raise InvalidInput(
                f"{node!r} is no node of this flow as it was submitted here.",
                code="node-of-another-flow",
                hint=f"Ask the handle that submit returned, or ask for the node by its name: flow.run({node.name!r}).",
                field="node",
            )
        return self._names[node.id]

    async def find(self) -> FlowStatus:
        """The flow, and how each of its runs is doing."""
        return self._seen(await (await self._flows()).find(self._app.actor, self.id))

    async def wait(self, timeout: float | None = None) -> FlowStatus:
        """How the flow stands, once nothing of it goes on; raises ResultTimeout if that takes longer than `timeout`."""
        return self._seen(await (await self._flows()).wait(self._app.actor, self.id, timeout))

    async def cancel(self, *, reason: str = "") -> FlowStatus:
        """Cancel all that waits or runs: what waits ends at once, what runs is asked to stop."""
        return self._seen(await (await self._flows()).cancel(self._app.actor, self.id, reason=reason))

    async def retry(self, *, reason: str = "") -> FlowStatus:
        """Run again what did not succeed: dead letters are requeued, and what was cancelled or lost gets new runs.

        Those wait again for what they waited for, and `run` answers with them. Children that failed are run again with
        their runs: dead ones are requeued, others are submitted anew by the handler. What succeeded stays. All of it
        happens, or nothing.
        """
        return self._seen(await (await self._flows()).retry(self._app.actor, self.id, reason=reason))

    async def _flows(self) -> Flows:
        return (await self._app.services()).of(Flows)

    def _seen(self, flow: FlowStatus) -> FlowStatus:
        self._runs = {node.name: node.run_id for node in flow.nodes}
        return flow

    async def tree(self) -> str:
        """The flow as a tree of lines: how each run is doing; of a large one the first, and what runs or failed."""
        return "\n".join(tree(await self.find()))

    async def mermaid(self) -> str:
        """The flow as a Mermaid flowchart."""
        return mermaid(await self.find())

    find_sync = blocking(find)
    wait_sync = blocking(wait)
    cancel_sync = blocking(cancel)
    retry_sync = blocking(retry)
    tree_sync = blocking(tree)
    mermaid_sync = blocking(mermaid)

    def __repr__(self) -> str:
        return f"<flow {self.id}>"


class FlowCollection(Collection):
    """The flows that were submitted."""

    called = "app.flows"

    def handle(self, flow_id: UUID | str) -> FlowHandle:
        """A handle on a flow whose id was kept somewhere. Nothing is asked of the database yet."""
        return FlowHandle(self._app, parse_run_id(flow_id, "flow"))

    find = verb(Flows, Flows.find)
    list = verb(Flows, Flows.list)
    wait = verb(Flows, Flows.wait)
    cancel = verb(Flows, Flows.cancel)
    retry = verb(Flows, Flows.retry)

    find_sync = blocking(find)
    list_sync = blocking(list)
    wait_sync = blocking(wait)
    cancel_sync = blocking(cancel)
    retry_sync = blocking(retry)
