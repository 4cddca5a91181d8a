"""`app.runs` and its like: the services of `control/`, bound to an application and to whom it acts for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from mainspring.app.binding import blocking, blocking_stream, stream, verb
from mainspring.app.handle import Handle
from mainspring.app.job import Job
from mainspring.control.backlogs import Backlogs
from mainspring.control.breakers import Breakers
from mainspring.control.chains import Chains
from mainspring.control.dead import DeadLetters
from mainspring.control.explaining import Explanations
from mainspring.control.jobs import Jobs
from mainspring.control.limits import Limits
from mainspring.control.lists import Lists
from mainspring.control.operations import Operations
from mainspring.control.queues import Queues, Workers
from mainspring.control.reruns import Reruns
from mainspring.control.results import Results
from mainspring.control.runs import Runs
from mainspring.control.tenants import Tenants
from mainspring.control.watching import Watching
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.model.ids import parse_run_id
from mainspring.model.options import SubmitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.model.actor import Actor
    from mainspring.model.options import SubmitKeywords


class Collection:
    """What is bound to an application. Each method has a twin for code that is not async, with `_sync` at its end."""

    __slots__ = ("_app",)
    called = "app"

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    @property
    def opener(self) -> Mainspring:
        return self._app

    @property
    def leading(self) -> tuple[Actor]:
        return (self._app.actor,)


class RunCollection(Collection):
    """All runs there are."""

    called = "app.runs"

    def handle(self, run_id: UUID | str) -> Handle[Any]:
        """A handle on a run whose id was kept somewhere. Nothing is asked of the database yet."""
        return Handle(self._app.acting, parse_run_id(run_id))

    find = verb(Runs, Runs.find)
    explain = verb(Explanations, Explanations.explain)
    cancel = verb(Runs, Runs.cancel)
    change = verb(Runs, Runs.change)
    result = verb(Results, Results.result)
    logs = verb(Watching, Watching.logs)
    watch = stream(Watching, Watching.watch)
    list = verb(Lists, Lists.list)
    each = stream(Lists, Lists.each)
    page = verb(Lists, Lists.page)
    count = verb(Lists, Lists.count)
    requeue = verb(DeadLetters, DeadLetters.requeue)
    purge = verb(DeadLetters, DeadLetters.purge)

    find_sync = blocking(find)
    explain_sync = blocking(explain)
    cancel_sync = blocking(cancel)
    change_sync = blocking(change)
    result_sync = blocking(result)
    logs_sync = blocking(logs)
    watch_sync = blocking_stream(watch)
    list_sync = blocking(list)
    each_sync = blocking_stream(each)
    page_sync = blocking(page)
    count_sync = blocking(count)
    requeue_sync = blocking(requeue)
    purge_sync = blocking(purge)

    async def rerun(
        self, run_id: UUID | str, *, arguments: Mapping[str, Any] | None = None, reason: str = ""
    ) -> Handle[Any]:
        """Run something again that is over: a dead run is requeued, one that ended gets a new run (its `rerun_of`)."""
        reruns = (await self._app.services()).of(Reruns)
        return Handle(self._app.acting, await reruns.rerun(self._app.actor, run_id, arguments=arguments, reason=reason))

    rerun_sync = blocking(rerun)


class JobCollection(Collection):
    """The jobs that applications have registered."""

    called = "app.jobs"

    find = verb(Jobs, Jobs.find)
    list = verb(Jobs, Jobs.list)

    async def submit(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[SubmitKeywords]
    ) -> Handle[Any]:
        """Accept one run of a job by its name, also of one that another application defines.

        Its arguments are checked here if the job is this application's, and when the run starts if it is not. Options
        are those of `job.options`.
        """
        checked, given = SubmitOptions.checked(**options), arguments or {}
        if name in self._app.registry:
            job: Job[Any, Any] = Job(self._app, self._app.registry.find(name), checked)
            return await self._app.submitting.submit(job, self._app.registry.encode(name, given))
        submissions = (await self._app.services()).submissions
        actor = self._app.actor if checked.child is None else self._app.actor_of_child
        return Handle(
            self._app.bound_to(actor.tenant_name), *await submissions.submit_by_name(actor, name, given, checked)
        )

    find_sync = blocking(find)
    list_sync = blocking(list)
    submit_sync = blocking(submit)


class QueueCollection(Collection):
    """The queues there are."""

    called = "app.queues"

    list = verb(Queues, Queues.list)
    pause = verb(Queues, Queues.pause)
    resume = verb(Queues, Queues.resume)
    pressure = verb(Queues, Queues.pressure)
    set_marks = verb(Queues, Queues.set_marks)

    list_sync = blocking(list)
    pause_sync = blocking(pause)
    resume_sync = blocking(resume)
    pressure_sync = blocking(pressure)
    set_marks_sync = blocking(set_marks)


class LimitCollection(Collection):
    """How many runs may execute at once."""

    called = "app.limits"

    list = verb(Limits, Limits.list)
    show = verb(Limits, Limits.show)
    set = verb(Limits, Limits.set)
    remove = verb(Limits, Limits.remove)

    list_sync = blocking(list)
    show_sync = blocking(show)
    set_sync = blocking(set)
    remove_sync = blocking(remove)


class BacklogCollection(Collection):
    """How many runs may wait for their first start."""

    called = "app.backlogs"

    list = verb(Backlogs, Backlogs.list)
    show = verb(Backlogs, Backlogs.show)
    set = verb(Backlogs, Backlogs.set)
    remove = verb(Backlogs, Backlogs.remove)

    list_sync = blocking(list)
    show_sync = blocking(show)
    set_sync = blocking(set)
    remove_sync = blocking(remove)


class ChainCollection(Collection):
    """Which jobs follow which: `@app.job(after="load")`."""

    called = "app.chains"

    list = verb(Chains, Chains.list)
    pause = verb(Chains, Chains.pause)
    resume = verb(Chains, Chains.resume)
    remove = verb(Chains, Chains.remove)

    list_sync = blocking(list)
    pause_sync = blocking(pause)
    resume_sync = blocking(resume)
    remove_sync = blocking(remove)


class BreakerCollection(Collection):
    """Circuit breakers: after so many failures the runs of a job wait, until one that is tried succeeds."""

    called = "app.breakers"

    list = verb(Breakers, Breakers.list)
    show = verb(Breakers, Breakers.show)
    set = verb(Breakers, Breakers.set)
    remove = verb(Breakers, Breakers.remove)
    open = verb(Breakers, Breakers.open)
    close = verb(Breakers, Breakers.close)

    list_sync = blocking(list)
    show_sync = blocking(show)
    set_sync = blocking(set)
    remove_sync = blocking(remove)
    open_sync = blocking(open)
    close_sync = blocking(close)


class TenantCollection(Collection):
    """The tenants there are, and their shares of the workers."""

    called = "app.tenants"

    @property
    def opener(self) -> Mainspring:
        """They are the installation's, and the one that an application is for may have to be made first."""
        return self._app.for_tenant(DEFAULT_TENANT_NAME)

    @property
    def leading(self) -> tuple[Actor]:
        return (self.opener.actor,)

    list = verb(Tenants, Tenants.list)
    find = verb(Tenants, Tenants.find)
    create = verb(Tenants, Tenants.create)
    set_weight = verb(Tenants, Tenants.set_weight)

    list_sync = blocking(list)
    find_sync = blocking(find)
    create_sync = blocking(create)
    set_weight_sync = blocking(set_weight)


class WorkerCollection(Collection):
    """The workers there are, and those that ended lately."""

    called = "app.workers"

    list = verb(Workers, Workers.list)
    drain = verb(Workers, Workers.drain)

    list_sync = blocking(list)
    drain_sync = blocking(drain)


class OperationCollection(Collection):
    """Acts on many runs, chosen by a filter, that can be cut off and resumed."""

    called = "app.operations"

    start = verb(Operations, Operations.start)
    work = stream(Operations, Operations.work)
    find = verb(Operations, Operations.find)
    list = verb(Operations, Operations.list)

    start_sync = blocking(start)
    work_sync = blocking_stream(work)
    find_sync = blocking(find)
    list_sync = blocking(list)
