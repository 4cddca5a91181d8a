"""Flows as their authors draw them: nodes are calls of jobs, and results of some are arguments of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from mainspring.app.binding import blocking, run_verb, verb
from mainspring.app.collections import Collection
from mainspring.app.handle import Handle
from mainspring.control.flows import Flows
from mainspring.errors import InvalidInput
from mainspring.model.dependency import NodeId, ResultOf, check_nodes, checked_parents, with_inputs
from mainspring.model.flow import MAX_NAME_LENGTH, NodeRequest
from mainspring.model.flow_drawing import mermaid, tree
from mainspring.model.ids import parse_run_id
from mainspring.model.job import checked_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.model.actor import Actor
    from mainspring.model.dependency import Condition, Otherwise, Parent

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
        submitted = await flows.submit(self._app.actor, self.name, [node.request() for node in self.nodes.values()])
        return FlowHandle(self._app.acting, submitted.id, submitted.runs)

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

    __slots__ = ("_app", "_runs", "id")
    called = "flow"

    def __init__(self, app: Mainspring, flow_id: UUID, runs: Mapping[UUID, UUID] | None = None) -> None:
        self._app = app
        self._runs = runs or {}
        self.id = flow_id

    @property
    def opener(self) -> Mainspring:
        return self._app

    @property
    def leading(self) -> tuple[Actor, UUID]:
        return self._app.actor, self.id

    def run(self, node: Node[R]) -> Handle[R]:
        """The run of a node of the flow that was submitted here. A retry may have made another one: see `find`."""
        if node.id not in self._runs:
            raise InvalidInput(
                f"{node!r} is no node of this flow as it was submitted here.",
                code="node-of-another-flow",
                hint="Ask the handle that submit returned, or find the run by its name in `await flow.find()`.",
                field="node",
            )
        return Handle(self._app, self._runs[node.id])

    find = run_verb(Flows, Flows.find)
    wait = run_verb(Flows, Flows.wait)
    cancel = run_verb(Flows, Flows.cancel)
    retry = run_verb(Flows, Flows.retry)

    async def tree(self) -> str:
        """The flow as a tree of lines, with how each run is doing."""
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
