"""How payloads become runs: the job and the options say what a run is, the submitter accepts it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from mainspring.control.accepting import accepted_from, check_verdicts
from mainspring.control.definitions import document_of
from mainspring.errors import InvalidInput
from mainspring.model.fan_out import check_not_awaited, child_elsewhere, child_header, name_for_many
from mainspring.model.flow import with_parents
from mainspring.model.invalid import say_which
from mainspring.model.options import NO_OPTIONS
from mainspring.model.payload import quoted
from mainspring.model.template import check_repeated, filled_in_turn, template_of, unique_and_waiting
from mainspring.store.notify import CALLERS_COMMIT_SECONDS
from mainspring.worker.fanning_out import children_here
from mainspring.worker.tracing import current_trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from uuid import UUID

    from mainspring.control.application import Application
    from mainspring.control.definitions import Definitions, Known, Registered
    from mainspring.control.limits import LimitsInForce
    from mainspring.control.submitter import Submitter
    from mainspring.model.actor import Actor
    from mainspring.model.backlog import BacklogNotice
    from mainspring.model.flow import NodeRequest
    from mainspring.model.job import JobDefinition
    from mainspring.model.options import SubmitOptions
    from mainspring.model.run import Accepted, AcceptedBatch, NewRun
    from mainspring.model.template import Template
    from mainspring.store.callers import CallersConnection
    from mainspring.store.notify import Waker, WakeUp
    from mainspring.store.submissions import Verdict


class PreparedRuns:
    """Runs ready to be accepted inside a caller's own transaction."""

    def __init__(
        self,
        *,
        ids: list[UUID],
        runs: list[NewRun],
        known: Known,
        wake_ups: list[WakeUp],
        waker: Waker,
        submitter: Submitter,
        backlogs: Mapping[str, BacklogNotice],
    ) -> None:
        self._ids = ids
        self._runs = runs
        self._known = document_of(frozenset([known]))
        self._wake_ups = wake_ups
        self._waker = waker
        self._submitter = submitter
        self._backlogs = backlogs

    async def send(self, connection: CallersConnection) -> AcceptedBatch:
        accepted = self._accepted(await connection.submit(self._ids, self._runs, self._known))
        for statement, values in self._counting(accepted):
            await connection.execute(statement, *values)
        return accepted

    def send_sync(self, connection: CallersConnection) -> AcceptedBatch:
        accepted = self._accepted(connection.submit_sync(self._ids, self._runs, self._known))
        for statement, values in self._counting(accepted):
            connection.execute_sync(statement, *values)
        return accepted

    def _accepted(self, verdicts: list[Verdict]) -> AcceptedBatch:
        check_verdicts(verdicts, self._runs)
        return accepted_from(self._ids, verdicts, self._runs, self._backlogs)

    def _counting(self, accepted: AcceptedBatch) -> list[tuple[str, tuple[str, str]]]:
        """What else to execute, so that new runs under backlog caps are counted when the caller has committed."""
        if not self._runs or self._runs[0].backlog is None:
            return []
        new = [place for place in range(len(self._ids)) if place not in accepted.earlier]
        return self._submitter.counting([self._ids[place] for place in new], [self._runs[place] for place in new])

    async def wake(self) -> None:
        """Whether and when the caller commits is the caller's to decide: wake whoever may claim a little later."""
        self._waker.wake_after_callers_commit(self._wake_ups)
        for seconds in CALLERS_COMMIT_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self._submitter.hint_at_gates, self._runs)


class Submissions:
    """Accepts runs of any job for anyone."""

    def __init__(
        self,
        *,
        definitions: Definitions,
        submitter: Submitter,
        application: Application,
        limits: LimitsInForce,
        waker: Waker,
    ) -> None:
        self.definitions = definitions
        self._submitter = submitter
        self._application = application
        self._limits = limits
        self._waker = waker

    async def submit(self, actor: Actor, definition: JobDefinition, options: SubmitOptions, payload: bytes) -> Accepted:
        """Accept one run of a job that the application defines, in one commit with others that arrive just now."""
        if options.child is not None:
            return (await self.submit_many(actor, definition, options, [payload])).single()

        async def submit() -> Accepted:
            template, known = await self._template(actor, definition, options)
            return await self._submitter.submit_one(template.filled(payload), known)

        return await self.definitions.again_if_replaced(submit)

    async def submit_many(
        self, actor: Actor, definition: JobDefinition, options: SubmitOptions, payloads: Sequence[bytes]
    ) -> AcceptedBatch:
        """Accept one run per payload: all of them, or none."""
        if options.child is not None:
            template_of_child = partial(self._template, actor, definition, options, has_own_lane=True)
            return await self._submit_children(definition.name, template_of_child, options, payloads)

        async def submit() -> AcceptedBatch:
            template, known = await self._template(actor, definition, options)
            runs = template.filled_many(payloads)
            check_repeated(runs)
            return await self._submitter.submit(runs, known)

        return await self.definitions.again_if_replaced(submit)

    async def _submit_children(
        self,
        job: str,
        template_of_child: Callable[[], Awaitable[tuple[Template, Known]]],
        options: SubmitOptions,
        payloads: Sequence[bytes],
    ) -> AcceptedBatch:
        """Accept children of the run whose handler submits them: those that it has not submitted before."""
        if len(payloads) != 1 and options.child is not True:
            raise name_for_many()
        children = children_here()
        name = None if options.child is True else str(options.child)

        async def submit() -> AcceptedBatch:
            template, known = await template_of_child()
            named = template.with_headers(child_header(children.fan_out))
            runs = filled_in_turn(map(named.keyed, keys), payloads)
            check_not_awaited(children.fan_out, (parent.run_id for run in runs for parent in run.after or ()))
            return await self._submitter.submit_children(runs, known, children.fan_out, may_fail=bool(options.may_fail))

        with children.keys(job, name, len(payloads)) as keys:
            return await self.definitions.again_if_replaced(submit)

    async def submit_by_name(
        self, actor: Actor, name: str, arguments: Mapping[str, Any], options: SubmitOptions = NO_OPTIONS
    ) -> Accepted:
        """Accept one run of a job that this or another application defines.

        Its arguments are checked here if the job is this application's, and when the run starts if it is not.
        """
        return await self.submit_payload(actor, name, self._application.encode(name, arguments), options)

    async def submit_payload(self, actor: Actor, name: str, payload: bytes, options: SubmitOptions) -> Accepted:
        """Accept one run of a job that this or another application defines, with arguments that were encoded before."""
        definition = self._application.definition_of(name)
        if definition is not None:
            return await self.submit(actor, definition, options, payload)
        if options.child is not None:
            template_of_child = partial(self._template_by_name, actor, name, options, has_own_lane=True)
            return (await self._submit_children(name, template_of_child, options, [payload])).single()

        async def submit() -> Accepted:
            template, known = await self._template_by_name(actor, name, options)
            return await self._submitter.submit_one(template.filled(payload), known)

        return await self.definitions.again_if_replaced(submit)

    async def built(
        self, actor: Actor, nodes: Sequence[NodeRequest], ids: Mapping[UUID, UUID]
    ) -> tuple[list[NewRun], frozenset[Known]]:
        """The runs of a flow's nodes, each with what it waits for. Most have their job and options in common."""
        templates: dict[tuple[int, int], tuple[Template, Known]] = {}
        for node in nodes:
            kind = (id(node.definition), id(node.options))
            if node.options.child is not None:
                raise child_elsewhere("of a flow")
            if node.options.uniqueness_for(node.definition) is not None:
                raise unique_and_waiting(node.definition.name, "flow")
            if kind not in templates:
                options = replace(node.options, after=None)  # what it waits for is each node's own
                templates[kind] = await self._template(actor, node.definition, options, has_own_lane=True)
        found = [templates[id(node.definition), id(node.options)][0] for node in nodes]
        built = [_built(template, node, ids) for template, node in zip(found, nodes, strict=True)]
        return built, frozenset(known for _, known in templates.values())

    # ── inside a caller's transaction ───────────────────────────────────────────────────────────────────────

    async def submit_on(
        self,
        connection: CallersConnection,
        actor: Actor,
        definition: JobDefinition,
        options: SubmitOptions,
        payloads: Sequence[bytes],
    ) -> AcceptedBatch:
        """Inside the caller's transaction, if that is one of the application's own database."""

        async def submit() -> AcceptedBatch:
            prepared = await self.prepare(actor, definition, options, payloads)
            accepted = await prepared.send(connection)
            await prepared.wake()
            return accepted

        return await self.definitions.again_if_replaced(submit)

    async def prepare(
        self, actor: Actor, definition: JobDefinition, options: SubmitOptions, payloads: Sequence[bytes]
    ) -> PreparedRuns:
        """For a connection that blocks: prepared in the event loop, sent in the caller's thread."""
        if options.child is not None:
            raise child_elsewhere("on a connection of yours")
        return await self._prepared(*await self._template(actor, definition, options), payloads)

    async def prepare_payload(self, actor: Actor, name: str, payload: bytes, options: SubmitOptions) -> PreparedRuns:
        """The same for one run of a job that this or another application defines."""
        definition = self._application.definition_of(name)
        if definition is not None:
            return await self.prepare(actor, definition, options, [payload])
        if options.child is not None:
            raise child_elsewhere("on a connection of yours")
        return await self._prepared(*await self._template_by_name(actor, name, options), [payload])

    async def _prepared(self, template: Template, known: Known, payloads: Sequence[bytes]) -> PreparedRuns:
        runs = filled_in_turn(repeat(template, len(payloads)), payloads)
        check_repeated(runs)
        ids = self._submitter.new_ids(runs)
        wake_ups = self._submitter.wake_ups(ids, runs)
        return PreparedRuns(
            ids=ids,
            runs=runs,
            known=known,
            wake_ups=wake_ups,
            waker=self._waker,
            submitter=self._submitter,
            backlogs=await self._submitter.look_at_backlogs(ids, runs) if template.caps else {},
        )

    async def _template(
        self, actor: Actor, definition: JobDefinition, options: SubmitOptions, *, has_own_lane: bool = False
    ) -> tuple[Template, Known]:
        registered = await self.definitions.registered(actor, definition, options.checked_line_of(definition))
        template = await self._template_of(actor, definition, options, registered, has_own_lane=has_own_lane)
        return template, registered.known

    async def _template_by_name(
        self, actor: Actor, name: str, options: SubmitOptions, *, has_own_lane: bool = False
    ) -> tuple[Template, Known]:
        """Of a job that another application defines."""
        definition, registered = await self.definitions.look_up(actor, name, options)
        template = await self._template_of(actor, definition, options, registered, has_own_lane=has_own_lane)
        return template, registered.known

    async def _template_of(
        self,
        actor: Actor,
        definition: JobDefinition,
        options: SubmitOptions,
        registered: Registered,
        *,
        has_own_lane: bool = False,
    ) -> Template:
        queue = options.line_of(definition).queue
        elsewhere = (
            has_own_lane
            or options.key is not None
            or options.after is not None
            or options.uniqueness_for(definition) is not None
        )
        rules, caps = await self._limits.of(actor, definition, queue, has_own_lane=elsewhere)
        return template_of(
            definition, options, registered.numbers, actor=actor, trace=current_trace(), rules=rules, caps=caps
        )


def _built(template: Template, node: NodeRequest, ids: Mapping[UUID, UUID]) -> NewRun:
    try:
        return template.waiting_for(with_parents(node.parents, ids)).filled(node.payload)
    except InvalidInput as error:
        say_which(error, f"Node {quoted(node.name)}", node=node.name)
        raise
