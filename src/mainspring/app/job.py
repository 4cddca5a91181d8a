"""A job as its author sees it: a function that can also be submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model import job as rules
from mainspring.model.event_loop import refuse_in_event_loop
from mainspring.model.headers import checked_headers
from mainspring.model.line import Line
from mainspring.model.policy import NO_OVERRIDES, Overrides
from mainspring.model.run import NewRun
from mainspring.store.callers import CallersConnection, callers_connection
from mainspring.worker.tracing import TRACEPARENT, current_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime, timedelta

    from mainspring.app.handle import Handle
    from mainspring.app.mainspring import Mainspring
    from mainspring.model.policy import RetryPolicy
    from mainspring.worker.registry import Handler

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run differs from what its job says; checked when made."""

    at: datetime | None = None
    delay: float | None = None
    priority: int | None = None
    queue: str | None = None
    labels: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    max_age: float | None = None
    start_within: float | None = None
    overrides: Overrides = NO_OVERRIDES
    connection: CallersConnection | None = None


def checked_options(
    *,
    at: datetime | None,
    delay: timedelta | float | None,
    priority: int | None,
    queue: str | None,
    labels: Iterable[str] | None,
    tags: Iterable[str] | None,
    key: str | None,
    max_age: timedelta | float | None,
    retry: RetryPolicy | None = None,
    timeout: timedelta | float | None = None,
    run_timeout: timedelta | float | None = None,
    start_within: timedelta | float | None = None,
    headers: Mapping[str, str] | None = None,
    connection: object | None,
) -> Options:
    if at is not None and delay is not None:
        raise InvalidInput(
            "Both at and delay were given; a run starts at one time.",
            code="at-and-delay",
            hint="Give one of them.",
            field="delay",
        )
    checked = rules.checked_tags(tags)
    return Options(
        at=rules.checked_at(at),
        delay=rules.checked_delay(delay),
        priority=None if priority is None else rules.checked_priority(priority),
        queue=None if queue is None else rules.checked_name(queue, "queue"),
        labels=None if labels is None else rules.checked_labels(labels),
        tags=None if checked is None else tuple(checked),
        key=rules.checked_key(key),
        headers=checked_headers(headers),
        max_age=rules.checked_max_age(max_age),
        start_within=rules.checked_limit(start_within, "start_within"),
        overrides=Overrides(
            retry=None if retry is None else rules.checked_retry(retry),
            timeout=rules.checked_span(timeout, "timeout"),
            run_timeout=rules.checked_span(run_timeout, "run_timeout"),
        ),
        connection=None if connection is None else callers_connection(connection),
    )


class Job(Generic[P, R]):
    """A registered function. Calling it runs it here and now; submitting it makes a run."""

    def __init__(self, app: Mainspring, handler: Handler, options: Options | None = None) -> None:
        self._app = app
        self._options = options or Options()
        self.handler = handler
        self.__name__ = handler.name
        self.__doc__ = handler.function.__doc__

    @property
    def name(self) -> str:
        return self.handler.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        if self.handler.arguments.injected:
            self.handler.arguments.check_resources(kwargs)
        return self.handler.function(*args, **kwargs)

    def options(
        self,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        queue: str | None = None,
        labels: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        key: str | None = None,
        max_age: timedelta | float | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        start_within: timedelta | float | None = None,
        headers: Mapping[str, str] | None = None,
        connection: object | None = None,
    ) -> Job[P, R]:
        """The same job with other options for what is submitted through it.

        `labels` are what a worker must have, instead of those the job names.
        `retry`, `timeout`, `run_timeout`, `start_within` and `max_age` replace what the job says.
        `headers` are small texts that travel with the run; handlers find them in `context.headers`.
        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: the run exists if and only if your
        transaction commits.
        """
        options = checked_options(
            at=at,
            delay=delay,
            priority=priority,
            queue=queue,
            labels=labels,
            tags=tags,
            key=key,
            max_age=max_age,
            retry=retry,
            timeout=timeout,
            run_timeout=run_timeout,
            start_within=start_within,
            headers=headers,
            connection=connection,
        )
        return Job(self._app, self.handler, options)

    # ── submitting ──────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Accept one run with these arguments; when this returns, it is durable."""
        return await self._app.submissions.submit(self, self.handler.arguments.encode(args, kwargs))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """`submit` for code that is not async."""
        refuse_in_event_loop("submit_sync", f"await {self.name}.submit(…)")
        return self._app.submissions.submit_sync(self, self.handler.arguments.encode(args, kwargs))

    async def submit_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle[R]]:
        """Accept one run per mapping of arguments: all of them, or none."""
        return await self._app.submissions.submit_many(self, self._payloads(calls))

    def submit_many_sync(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle[R]]:
        """`submit_many` for code that is not async."""
        refuse_in_event_loop("submit_many_sync", f"await {self.name}.submit_many(…)")
        return self._app.submissions.submit_many_sync(self, self._payloads(calls))

    def _payloads(self, calls: Iterable[Mapping[str, Any]]) -> list[bytes]:
        if self._options.key is not None:
            raise InvalidInput(
                "One idempotency key cannot stand for many runs.",
                code="key-for-many",
                hint="Submit them one by one, each with its own key.",
                field="key",
            )
        encode = self.handler.arguments.encode
        payloads = []
        for index, call in enumerate(calls):
            try:
                payloads.append(encode((), call))
            except InvalidInput as error:
                error.message = f"Item {index}: {error.message}"
                error.fields["item"] = index
                raise
        return payloads

    # ── for the application ─────────────────────────────────────────────────────────────────────────────────

    @property
    def app(self) -> Mainspring:
        return self._app

    @property
    def headers(self) -> Mapping[str, str] | None:
        return self._options.headers

    @property
    def connection(self) -> CallersConnection | None:
        return self._options.connection

    @property
    def line(self) -> Line:
        """Where a run submitted through this waits."""
        own, options = self.handler.definition.line, self._options
        return Line(options.queue or own.queue, own.labels if options.labels is None else options.labels, own.delivery)

    def template(self, job_id: int, job_version: int, line_id: int, submitted_by: str) -> NewRun:
        """Everything about a new run but its payload."""
        definition, options = self.handler.definition, self._options
        return NewRun(
            job_id=job_id,
            job_version=job_version,
            line_id=line_id,
            priority=definition.priority if options.priority is None else options.priority,
            payload=b"",
            headers=_headers_json(options.headers),
            tags=None if options.tags is None else list(options.tags),
            submitted_by=submitted_by,
            at=options.at,
            delay=options.delay,
            max_age=options.max_age or _seconds(definition.max_age),
            key=options.key,
            start_within=options.start_within or _seconds(definition.start_within),
            overrides=options.overrides.as_json(),
        )

    def filled(self, template: NewRun, payload: bytes) -> NewRun:
        digest = None
        if template.key is not None:
            line = self.line
            content = (self.name, payload.decode(), line.queue, template.priority, template.tags)
            spans = (template.at, template.delay, template.max_age)
            digest = rules.content_digest(*content, *spans, *_since_then(line, template))
        return template._replace(payload=payload, digest=digest)

    def filled_many(self, template: NewRun, payloads: Iterable[bytes]) -> list[NewRun]:
        """One run without a key per payload. Cut and joined by hand: `_replace` costs a batch a microsecond per run."""
        place = NewRun._fields.index("payload")
        before, after = template[:place], template[place + 1 :]
        return [NewRun._make((*before, payload, *after)) for payload in payloads]


def _since_then(line: Line, template: NewRun) -> Iterator[object]:
    """What the content of a run has besides what it always had: without it, the digest that older programs computed."""
    if line.labels:
        yield line.labels
    if template.start_within is not None or template.overrides is not None:
        yield {"start_within": template.start_within, "overrides": template.overrides}


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _headers_json(given: Mapping[str, str] | None) -> str | None:
    """What travels with the run: the caller's trace context, unless another one was given, and what else was given."""
    if given is None or TRACEPARENT not in given:
        given = current_trace() | dict(given or {})
    return msgspec.json.encode(given).decode() if given else None
