"""Mainspring: the object an application is built around."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from mainspring import wiring
from mainspring.app.blocking import BackgroundLoop
from mainspring.app.chunk_job import ChunkJob, ChunkJobDecorator
from mainspring.app.collections import (
    BacklogCollection,
    BreakerCollection,
    ChainCollection,
    JobCollection,
    LimitCollection,
    OperationCollection,
    QueueCollection,
    RunCollection,
    TenantCollection,
    WorkerCollection,
)
from mainspring.app.flow import Flow, FlowCollection
from mainspring.app.job import Job, JobDecorator
from mainspring.app.logs import log_through_logging
from mainspring.app.running import running, running_sync
from mainspring.app.scheduling import CalendarCollection, ScheduleCollection, declared_schedule
from mainspring.app.sessions import Sessions
from mainspring.app.submitting import SubmittingToStore
from mainspring.clock import Clock, SystemClock, instant
from mainspring.errors import ForeignDatabase, InvalidInput
from mainspring.model.actor import DEFAULT_TENANT, DEFAULT_TENANT_NAME, TENANT_VARIABLE, Actor, Tenant
from mainspring.model.chain import checked_after
from mainspring.model.command import Command
from mainspring.model.decoration import SCHEDULE_OPTIONS, check_options, checked_function
from mainspring.model.event_loop import refuse_in_event_loop
from mainspring.model.job import JobDefinition, checked_name
from mainspring.model.limits import checked_memory
from mainspring.model.report import capture_level
from mainspring.model.resource import Resource
from mainspring.model.run import DEFAULT_PRIORITY
from mainspring.store.urls import checked_url
from mainspring.worker.command import handler_of_command
from mainspring.worker.current_attempt import current_tenant
from mainspring.worker.registry import Registry, handler_of

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import datetime, timedelta
    from pathlib import Path
    from types import TracebackType

    from mainspring.app.chunk_job import JobKeywords
    from mainspring.app.submitting import Submitting
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedule_texts import CalendarsGiven
    from mainspring.model.backlog import Backlog
    from mainspring.model.breaker import Breaker
    from mainspring.model.chain import JobsBefore
    from mainspring.model.concurrency import Limit
    from mainspring.model.context import Context
    from mainspring.model.dependency import Condition
    from mainspring.model.line import Delivery
    from mainspring.model.policy import RetryPolicy
    from mainspring.model.unique import Debounce, Unique
    from mainspring.schedule.deciding import CatchUp
    from mainspring.schedule.schedule import Schedule
    from mainspring.worker.environment import Middleware

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound="Callable[[], Any]")
M = TypeVar("M", bound="Middleware")


class Mainspring:
    """Define jobs, submit runs, wait for results.

    Uses the server named by `database_url` or MAINSPRING_DATABASE_URL, else an embedded PostgreSQL in
    `data_directory` or MAINSPRING_DATA_DIR. Nothing is opened before it is needed. It acts for the tenant named by
    `tenant` or MAINSPRING_TENANT, else for the one called `default`; see `for_tenant`.
    """

    is_for_one_tenant = False  # as `for_tenant` makes it

    def __init__(
        self,
        database_url: str | None = None,
        *,
        data_directory: Path | str | None = None,
        clock: Clock | None = None,
        submitted_by: str | None = None,
        capture_logs: str = "INFO",
        registry: Registry | None = None,
        tenant: str | None = None,
    ) -> None:
        log_through_logging()
        self.registry = registry or Registry()  # the jobs of another application, which this one then has, too
        self.clock = clock or SystemClock()
        self._capture_logs = capture_logs
        capture_level(capture_logs)
        self._url = None if database_url is None else checked_url(database_url)
        self._data_directory = data_directory
        self._location: wiring.DatabaseLocation | None = None
        self._submitted_by = submitted_by or who_am_i()
        self._sessions = Sessions(self._open)
        self._background = BackgroundLoop()
        self.submitting: Submitting = SubmittingToStore()
        self._has_tenant = tenant is not None
        self._installations = {""}  # that it has had under its URL, one after the other; nothing before it was opened
        self._act_for(chosen_tenant(tenant))
        self.declared: list[ScheduleRequest] = []  # schedules that stand in the code, beside their jobs

    def _act_for(self, tenant: str) -> None:
        self.tenant = checked_name(tenant, "tenant")  # its name
        self._found_tenant: Tenant | None = None
        self._installation = ""
        self._bound: Mainspring | None = None
        if tenant == DEFAULT_TENANT_NAME:
            self._found_tenant = Tenant(DEFAULT_TENANT, tenant)
        self.runs = RunCollection(self)
        self.jobs = JobCollection(self)
        self.queues = QueueCollection(self)
        self.limits = LimitCollection(self)
        self.breakers = BreakerCollection(self)
        self.backlogs = BacklogCollection(self)
        self.flows = FlowCollection(self)
        self.chains = ChainCollection(self)
        self.workers = WorkerCollection(self)
        self.operations = OperationCollection(self)
        self.schedules = ScheduleCollection(self)
        self.calendars = CalendarCollection(self)
        self.tenants = TenantCollection(self)

    def for_tenant(self, tenant: str) -> Mainspring:
        """This application as it acts for another tenant: `await app.for_tenant("acme").runs.list()`.

        It shares jobs, connections and everything else with this one, and needs not be closed. The tenant has to be
        there: `mainspring tenant create acme`. To submit a job: `await job.options(tenant="acme").submit(…)`.
        """
        return ActingForTenant(self, tenant)

    @property
    def actor(self) -> Actor:
        """Who asks: within a handler its run's tenant, unless the application was made for one; else that."""
        return self._actor(self._tenant_of_run() or self._own_tenant())

    @property
    def actor_of_child(self) -> Actor:
        """Who submits a child: its run's tenant, whomever the application was made for."""
        return self._actor(self._tenant_here() or self._own_tenant())

    def _actor(self, tenant: Tenant) -> Actor:
        return Actor(tenant.id, self._submitted_by, tenant.name)

    @property
    def acting_for(self) -> str:
        """The name of the tenant that it acts for at this moment."""
        tenant = self._tenant_of_run()
        return self.tenant if tenant is None else tenant.name

    @property
    def acting(self) -> Mainspring:
        """This application, bound to whom it acts for at this moment: what is handed out may be used elsewhere."""
        if not self._installation and current_tenant() is not None:
            return self  # whether the run that is executed is of this database is known when it was opened
        return self.bound_to(self.acting_for)

    def bound_to(self, tenant: str) -> Mainspring:
        """This application as it acts for a tenant, in whoever's handler it is used."""
        if tenant != self.tenant:
            return self.for_tenant(tenant)
        if not self.follows_runs:
            return self
        if self._bound is None:
            self._bound = self.for_tenant(self.tenant)
        return self._bound

    @property
    def follows_runs(self) -> bool:
        """Whether it acts for the tenant of a run inside its handler: it was made for nobody else."""
        return not (self._has_tenant or self.is_for_one_tenant)

    def _tenant_of_run(self) -> Tenant | None:
        return self._tenant_here() if self.follows_runs else None

    def _tenant_here(self) -> Tenant | None:
        """Whose run the present code is executed for: numbers of another database would be somebody else's there."""
        tenant = current_tenant()
        if tenant is None or tenant.installation not in self._installations:
            return None
        if tenant.installation != self._installation:
            raise ForeignDatabase(
                f"This handler executes a run of tenant {tenant.name!r} in a database that was replaced since.",
                hint="Let it end: the run starts again if the database that is there now has it.",
            )
        return tenant

    def _own_tenant(self) -> Tenant:
        if self._found_tenant is None:
            raise InvalidInput(
                f"This application acts for tenant {self.tenant!r}, which it has not looked up yet.",
                code="not-open",
                hint="Open it first: async with app: …",
                field="tenant",
            )
        return self._found_tenant

    @property
    def location(self) -> wiring.DatabaseLocation:
        return self._location or wiring.DatabaseLocation.chosen(self._url, self._data_directory)

    @property
    def used_location(self) -> wiring.DatabaseLocation | None:
        """What `use` was told last; None leaves the choice to URL, directory and environment."""
        return self._location

    def use(self, location: wiring.DatabaseLocation | None) -> None:
        """Use this database from now on: inside a worker, handlers submit to where their runs come from."""
        self._location = location

    # ── defining jobs ───────────────────────────────────────────────────────────────────────────────────────

    @overload
    def job(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> Job[P, R]: ...
    @overload
    def job(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = DEFAULT_PRIORITY,
        retry: RetryPolicy = ...,
        max_age: timedelta | float | None = None,
        on_disconnect: str = "continue",
        isolated: bool = False,
        memory: str | int | None = None,
        cpu: timedelta | None = None,
        delivery: Delivery | str = ...,
        labels: Iterable[str] = (),
        timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        start_within: timedelta | float | None = None,
        limit: Limit | Sequence[Limit] | None = None,
        unique: Unique | None = None,
        debounce: Debounce | None = None,
        after: JobsBefore | None = None,
        on: Condition | str | None = None,
        breaker: Breaker | None = None,
        backlog: Backlog | Sequence[Backlog] | None = None,
        capture_logs: str | None = None,
        schedule: str | Schedule | None = None,
        zone: str = ...,
        spread: timedelta | None = None,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        max_runs: int | None = None,
        calendars: CalendarsGiven = ...,
        catch_up: CatchUp | str = ...,
        overlap: str = ...,
        pause_after_failures: int | None = None,
    ) -> JobDecorator: ...

    @overload
    def job(
        self, *, chunk: int, chunk_wait: timedelta | float | None = None, **options: Unpack[JobKeywords]
    ) -> ChunkJobDecorator: ...

    def job(self, *decorated: Any, **options: Any) -> Any:
        """Register a function as a job: `@app.job` or `@app.job(queue="mail", priority=2)`.

        With `isolated=True` each run has a process of its own, which can be killed and held to limits:
        `memory="256MiB"` beyond what the application itself takes, `cpu` for its processor time.

        With `limit=Limit(3)` at most three of its runs execute at once, in the whole fleet; with
        `limit=Limit(1, key="customer")` one for each customer.

        With `unique=Unique("customer")` one run for each customer waits or runs, and whoever submits another one gets
        that; with `debounce=Debounce(30, key="customer")` the last one submitted within 30 seconds wins.

        With `after="load"` a run of it is submitted whenever one of the job `load` has succeeded, however that was
        submitted; with `on="failure"` or `on="end"` when it has failed, or ended anyhow. `After("load", result="rows")`
        hands the result on as an argument.

        With `breaker=Breaker(5)` its runs wait after five failures within a minute, and single ones are tried until one
        succeeds; with `breaker=Breaker(5, key="customer")` each customer has a circuit breaker of its own.

        With `backlog=Backlog(1_000)` at most a thousand of its runs wait, and what comes too much is refused.

        With `chunk=100` one call of the handler gets up to that many runs, as a list of items, and answers for each; a
        run waits for others for `chunk_wait` at most, 0.2 seconds unless told.

        With `schedule="every weekday at 09:00"` (cron, English, intervals, RRULE) and `zone="Europe/Berlin"` the job
        has a schedule with its own name, which takes effect when the application is deployed.
        """

        check_options(options)

        def decorate(function: Callable[..., Any]) -> Job[Any, Any]:
            kept = self._capture_level(options)
            own = {name: value for name, value in options.items() if name not in SCHEDULE_OPTIONS}
            definition = JobDefinition(**{"name": checked_function(function).__name__} | _readied(own))
            handler = replace(handler_of(definition, function), capture_level=kept)
            declared = declared_schedule(handler, options, instant(self.clock))
            self.registry.add(handler)
            if declared is not None:
                self.declared.append(declared)
            return Job(self, handler) if handler.chunk is None else ChunkJob(self, handler)

        return decorate(*decorated) if decorated else decorate

    def command(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        **options: Any,
    ) -> Job[..., dict[str, int]]:
        """Register a program as a job: `app.command("backup", ["pg_dump", "--file", "{path}"], queue="nightly")`.

        There is no shell. `{path}` is an argument of the run, `await backup.submit(path="…")`, and its text becomes
        part of that one argument of the program. Every run is isolated; it takes the options of `job`. An exit code
        other than 0 is a failed attempt.
        """
        check_options(options)
        command = Command.checked(argv, env, cwd)
        options |= {"name": name, "isolated": True, "command": command.argv}
        kept = self._capture_level(options)
        handler = replace(handler_of_command(JobDefinition(**_readied(options)), command), capture_level=kept)
        self.registry.add(handler)
        return Job(self, handler)

    def flow(self, name: str) -> Flow:
        """A graph of runs, to be drawn with `add` and submitted as one: see `Flow`."""
        return Flow(self, name)

    # ── what surrounds handlers ─────────────────────────────────────────────────────────────────────────────

    def on_start(self, hook: H) -> H:
        """Call this function, async or not, when a worker process (or that of an isolated run) begins."""
        self.registry.environment.start_hooks.append(hook)
        return hook

    def on_stop(self, hook: H) -> H:
        """Call this function, async or not, when a worker process (or that of an isolated run) ends."""
        self.registry.environment.stop_hooks.append(hook)
        return hook

    @overload
    def resource(self, function: Callable[..., AsyncIterator[T]], /) -> Resource[T]: ...
    @overload
    def resource(self, function: Callable[..., Iterator[T]], /) -> Resource[T]: ...
    @overload
    def resource(self, function: Callable[..., AbstractAsyncContextManager[T]], /) -> Resource[T]: ...
    @overload
    def resource(self, function: Callable[..., AbstractContextManager[T]], /) -> Resource[T]: ...
    def resource(self, function: Callable[..., Any], /) -> Resource[Any]:
        """Define what each process opens once and handlers are given: `pool: Pool = database.injected`."""
        resource: Resource[Any] = Resource(function)
        self.registry.environment.check(resource.needs.values())
        self.registry.environment.resources.append(resource)
        return resource

    def middleware(self, function: M) -> M:
        """Call this around every attempt: `async def f(context, call_next)`. The first one defined is outermost."""
        self.registry.environment.add_middleware(function)
        return function

    def _capture_level(self, options: dict[str, Any]) -> int | None:
        """Which log lines to keep: how a worker runs a job, and no part of the job's definition."""
        return capture_level(options.pop("capture_logs", None) or self._capture_logs)

    # ── a worker in this process ────────────────────────────────────────────────────────────────────────────

    def running(
        self, *, path: str | None = None, scheduler: bool = True, **settings: Any
    ) -> AbstractAsyncContextManager[Mainspring]:
        """Execute runs inside this process, for small services and notebooks: `async with app.running(slots=20): …`.

        Takes the settings of a worker: `queues` (those of the application's jobs unless told), `labels`, `slots`,
        `grace`, `lease_time`. At the end, what is running has `grace` seconds to finish, then it goes back in line.
        Code that blocks the event loop stops the heartbeats too: after `lease_time` another worker takes its runs over.
        Isolated jobs need `path`, from where their processes import the application: `"shop.jobs:app"`.
        Schedules are fired here as well, and those that the code declares take effect; `scheduler=False` leaves that to
        others. Any number of processes may do it at once.
        """
        return running(self, path, settings, scheduler=scheduler)

    def running_sync(
        self, *, path: str | None = None, scheduler: bool = True, **settings: Any
    ) -> AbstractContextManager[Mainspring]:
        """`running` for code that is not async: the worker has an event loop in a thread of its own."""
        refuse_in_event_loop("running_sync", "async with app.running()")
        return running_sync(self, path, settings, scheduler=scheduler)

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────────────

    @property
    def opener(self) -> Mainspring:
        return self

    async def services(self) -> wiring.Services:
        """What this application has open within the running event loop."""
        services = await self._sessions.get()
        definitions = services.submissions.definitions
        self._installation = definitions.installation
        self._installations.add(self._installation)
        if self.tenant != DEFAULT_TENANT_NAME:
            self._found_tenant = await definitions.tenant(self.tenant)
        return services

    async def database_url(self) -> str:
        """Where the database is, for connections of your own: `await asyncpg.connect(await app.database_url())`.

        The embedded PostgreSQL is started, and runs for as long as this application is open.
        """
        return (await self._sessions.get()).store.database.url

    def database_url_sync(self) -> str:
        """`database_url` for code that is not async."""
        refuse_in_event_loop("database_url_sync", "await app.database_url()")
        return self.blocking(self.database_url())

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one of this application's coroutines from code that is not async."""
        return self._background.run(work)

    async def _open(self) -> wiring.Services:
        if self._location is None:  # inside a worker, whoever started it knows
            wiring.explain_once(self.location)
        return wiring.services(await wiring.open_store(self.location), self.clock, self.registry)

    async def close(self) -> None:
        """Close what this application has open within the running event loop."""
        await self._sessions.close()

    def close_sync(self) -> None:
        """`close` for code that is not async."""
        refuse_in_event_loop("close_sync", "await app.close()")
        self.blocking(self.close())
        self._background.stop()

    async def __aenter__(self) -> Mainspring:
        try:
            await self.services()
        except BaseException:
            await self.close()  # there may be no such tenant
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


COLLECTIONS = "runs jobs queues limits breakers backlogs flows chains workers operations schedules calendars tenants"
OF_ONE_TENANT = {"_whole", "_has_opened", "_found_tenant", "_installation", "_bound", "tenant", *COLLECTIONS.split()}


class ActingForTenant(Mainspring):
    """An application as it acts for a tenant. All else is that of the application it was made from, as it is then."""

    is_for_one_tenant = True

    def __init__(self, whole: Mainspring, tenant: str) -> None:
        self._whole = whole
        self._has_opened = False
        self._act_for(tenant)

    def __getattr__(self, name: str) -> Any:
        if name == "_whole":
            raise AttributeError(name)
        return getattr(self._whole, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in OF_ONE_TENANT:
            super().__setattr__(name, value)
        else:
            setattr(self._whole, name, value)

    def for_tenant(self, tenant: str) -> Mainspring:
        """The application as it acts for yet another tenant."""
        return self._whole.for_tenant(tenant)

    async def __aenter__(self) -> Mainspring:
        self._has_opened = not self._sessions.is_open
        return await super().__aenter__()

    async def close(self) -> None:
        """Close what was opened for this tenant; what the whole application has open stays so."""
        if self._has_opened:
            self._has_opened = False
            await self._whole.close()

    def close_sync(self) -> None:
        """Nothing of its own is open."""


def chosen_tenant(given: str | None) -> str:
    """The tenant that an application is for: the one given, else what MAINSPRING_TENANT says, else the first one."""
    return given if given is not None else os.environ.get(TENANT_VARIABLE) or DEFAULT_TENANT_NAME


def _readied(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a definition takes them."""
    given = {name: value for name, value in options.items() if value is not None}
    if "after" in given or "on" in given:
        given["after"] = checked_after(given.pop("after", None), given.pop("on", None))
    if "memory" in given:
        given["memory"] = checked_memory(given["memory"])
    return given


def who_am_i() -> str:
    """Whom the audit names for what this process does."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
