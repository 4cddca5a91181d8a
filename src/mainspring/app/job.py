"""A job as its author sees it: a function that can also be submitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from mainspring.errors import InvalidInput
from mainspring.model.dependency import with_inputs
from mainspring.model.event_loop import refuse_in_event_loop
from mainspring.model.invalid import say_which
from mainspring.model.options import NO_OPTIONS, SubmitOptions
from mainspring.store.callers import callers_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from datetime import datetime, timedelta

    from mainspring.app.handle import Handle
    from mainspring.app.mainspring import Mainspring
    from mainspring.app.scheduling import ScheduledJob
    from mainspring.control.schedule_requests import ScheduleKeywords
    from mainspring.model.actor import Actor
    from mainspring.model.context import Context
    from mainspring.model.dependency import Condition, Otherwise
    from mainspring.model.job import JobDefinition
    from mainspring.model.line import Delivery
    from mainspring.model.policy import RetryPolicy
    from mainspring.model.unique import Debounce, Unique
    from mainspring.schedule.schedule import Schedule
    from mainspring.store.callers import CallersConnection
    from mainspring.worker.registry import Handler

P = ParamSpec("P")
R = TypeVar("R")


class Job(Generic[P, R]):
    """A registered function. Calling it runs it here and now; submitting it makes a run."""

    def __init__(
        self,
        app: Mainspring,
        handler: Handler,
        options: SubmitOptions = NO_OPTIONS,
        connection: CallersConnection | None = None,
    ) -> None:
        self._app = app
        self._options = options
        self._connection = connection
        self.handler = handler
        self.__name__ = handler.name
        self.__doc__ = handler.function.__doc__

    @property
    def name(self) -> str:
        return self.handler.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        if self.handler.arguments.injected:
            self.handler.arguments.check_resources(kwargs)
        function = self.handler.function if self.handler.chunk is None else self.handler.chunk.function
        return function(*args, **kwargs)

    def options(
        self,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        queue: str | None = None,
        labels: Iterable[str] | None = None,
        delivery: Delivery | str | None = None,
        tags: Iterable[str] | None = None,
        key: str | None = None,
        max_age: timedelta | float | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        start_within: timedelta | float | None = None,
        headers: Mapping[str, str] | None = None,
        after: object = None,
        on: Condition | str | None = None,
        otherwise: Otherwise | str | None = None,
        unique: Unique | bool | None = None,
        debounce: Debounce | bool | None = None,
        child: str | bool | None = None,
        may_fail: bool | None = None,
        connection: object | None = None,
        tenant: str | None = None,
    ) -> Self:
        """The same job with other options for what is submitted through it.

        `labels` are what a worker must have, instead of those the job names. `delivery` is `"at_least_once"` or
        `"at_most_once"`, instead of what the job says.
        `retry`, `timeout`, `run_timeout`, `start_within` and `max_age` replace what the job says.
        `unique` and `debounce` say which runs are one, instead of what the job says; False: none are.
        `headers` are small texts that travel with the run; handlers find them in `context.headers`.
        `after` are runs, by their handles or ids, that have to end before this one may start: `on` says how,
        `"success"`, `"failure"` or `"end"`; if one ends otherwise, this one is cancelled, or with `otherwise="hold"`
        waits on.
        `child=True` makes it a child of the run whose handler submits it: that run ends when all its children have,
        and is a dead letter if one does not succeed, unless with `may_fail=True`. A handler that runs again finds the
        children of its earlier attempts, in their order, or by names: `child="north"`.
        `tenant` is whose run it is to be, instead of whom the application acts for.
        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: the run exists if and only if your
        transaction commits.
        """
        options = SubmitOptions.checked(
            at=at,
            delay=delay,
            priority=priority,
            queue=queue,
            labels=labels,
            delivery=delivery,
            tags=tags,
            key=key,
            max_age=max_age,
            retry=retry,
            timeout=timeout,
            run_timeout=run_timeout,
            start_within=start_within,
            headers=headers,
            after=after,
            on=on,
            otherwise=otherwise,
            unique=unique,
            debounce=debounce,
            child=child,
            may_fail=may_fail,
        )
        options.check_for(self.definition)
        callers = None if connection is None else callers_connection(connection)
        if options.child is not None and (tenant is not None or self.is_of_one_tenant):
            raise InvalidInput(
                "A child belongs to the tenant of its run.",
                code="tenant-of-child",
                hint="Leave out the tenant, or submit it as a run of its own.",
                field="tenant",
                value=tenant or self._app.tenant,
            )
        app = self._app if tenant is None else self._app.for_tenant(tenant)
        return type(self)(app, self.handler, options, callers)

    def scheduled(self, name: str, when: str | Schedule, **settings: Unpack[ScheduleKeywords]) -> ScheduledJob[P]:
        """A schedule of this job, still to be made: `await job.scheduled("acme", "every day at 9").create(42)`.

        `when` is anything a schedule understands: cron, English, intervals, instants, RRULE. `zone`, `spread`,
        `starts_at`, `ends_at`, `max_runs`, `calendars`, `catch_up`, `overlap` and `pause_after_failures` say more about
        it; options of its runs come from `options`. `calendars=["holidays"]` leaves out the days of a stored calendar.
        """
        from mainspring.app.scheduling import ScheduledJob  # it binds services, which know jobs

        return ScheduledJob(self, name, when, settings)

    # ── submitting ──────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Accept one run with these arguments; when this returns, it is durable.

        An argument may be what another run will return, `handle.output`: the run then waits for that one.
        """
        return await self._app.submitting.submit(*self.with_inputs(args, kwargs))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """`submit` for code that is not async."""
        refuse_in_event_loop("submit_sync", f"await {self.name}.submit(…)")
        return self._app.submitting.submit_sync(*self.with_inputs(args, kwargs))

    def with_inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Self, bytes]:
        """The payload of a call, and the job to submit it through: it waits for runs whose results are arguments."""
        payload, outputs = self.handler.arguments.encode_with_outputs(args, kwargs)
        if not outputs:
            return self, payload
        options = replace(self._options, after=with_inputs(self._options.after or (), outputs))
        return type(self)(self._app, self.handler, options, self._connection), payload

    async def submit_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle[R]]:
        """Accept one run per mapping of arguments: all of them, or none."""
        return await self._app.submitting.submit_many(self, self._payloads(calls))

    def submit_many_sync(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle[R]]:
        """`submit_many` for code that is not async."""
        refuse_in_event_loop("submit_many_sync", f"await {self.name}.submit_many(…)")
        return self._app.submitting.submit_many_sync(self, self._payloads(calls))

    def _payloads(self, calls: Iterable[Mapping[str, Any]]) -> list[bytes]:
        if self._options.key is not None:
            raise InvalidInput(
                "One idempotency key cannot stand for many runs.",
                code="key-for-many",
                hint="Submit them one by one, each with its own key.",
                field="key",
            )
        encode = self.handler.arguments.encode_call
        payloads = []
        for index, call in enumerate(calls):
            try:
                payloads.append(encode(call))
            except InvalidInput as error:
                say_which(error, f"Item {index}", item=index)
                raise
        return payloads

    # ── what submissions look at ────────────────────────────────────────────────────────────────────────────

    @property
    def definition(self) -> JobDefinition:
        return self.handler.definition

    @property
    def submit_options(self) -> SubmitOptions:
        return self._options

    @property
    def connection(self) -> CallersConnection | None:
        return self._connection

    @property
    def app(self) -> Mainspring:
        return self._app

    @property
    def actor(self) -> Actor:
        """Who submits it at this moment."""
        return self._app.actor if self._options.child is None else self._app.actor_of_child

    @property
    def is_of_one_tenant(self) -> bool:
        """Whether it was told for whom to submit: `options(tenant=…)`."""
        return self._app.is_for_one_tenant

    @property
    def opener(self) -> Mainspring:
        return self._app


class JobDecorator:
    """What `app.job(…)` returns, for type checkers."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Job[P, R]: ...
    def __call__(self, function: Any, /) -> Any:
        raise TypeError("a job decorator is a plain function")
