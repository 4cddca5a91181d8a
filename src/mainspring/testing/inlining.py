"""Inline mode: submitting a job executes it at once, here, without a database.

Arguments and results are encoded and decoded as in real life, so what could not be stored fails here too. One
attempt is made, so a handler that asks for another one or snoozes has failed; delays, keys of any kind, limits,
timeouts and a caller's connection mean nothing. For those there is `run_until_idle`. A chunk handler gets what is
submitted together in chunks, and what is submitted alone, alone.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from mainspring.app.handle import Handle
from mainspring.clock import instant
from mainspring.errors import RunAlreadyEnded, RunNotFound, RunNotSucceeded
from mainspring.model.context import Context
from mainspring.model.event_loop import refuse_in_event_loop
from mainspring.model.ids import run_id_bytes
from mainspring.model.lifecycle import State
from mainspring.model.line import Delivery
from mainspring.model.results import RunEnd
from mainspring.model.steering import Cancel, Steering
from mainspring.testing.inline_chunks import InlineChunk
from mainspring.testing.reported import Reported
from mainspring.worker.current_attempt import CURRENT_ATTEMPT, captured, words_of
from mainspring.worker.environment import NOTHING
from mainspring.worker.finishing import not_finished
from mainspring.worker.handler_errors import await_carrying, call_carrying, error_document, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from logging import LogRecord
    from typing import NoReturn

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.model.report import LogLine
    from mainspring.worker.environment import Surroundings

R = TypeVar("R")
T = TypeVar("T")

_TENANT: ContextVar[str | None] = ContextVar("mainspring_inline_tenant", default=None)  # of the run that is executed

# Whoever runs the tests is meant, not the handler.
_NOT_ITS_OWN = (asyncio.CancelledError, SystemExit, KeyboardInterrupt)


@contextmanager
def inline(app: Mainspring) -> Iterator[list[Handle[Any]]]:
    """Within this block, `submit` executes the job's function; the list has the handle of each run, in order."""
    before, performer = app.submitting, _Performer(app)
    app.submitting = performer
    try:
        with captured(_hear, app.registry.capture_level):
            yield performer.handles
    finally:
        app.submitting = before


def _hear(attempt: object, record: LogRecord) -> None:
    if isinstance(attempt, _Attempt) and record.levelno >= attempt.capture_level:
        attempt.reported.log(*words_of(record))


class InlineHandle(Handle[R]):
    """A run that has ended before anyone could ask."""

    __slots__ = ("_cause", "_end", "reported")

    def __init__(
        self, app: Mainspring, run_id: UUID, end: RunEnd, reported: Reported, cause: BaseException | None
    ) -> None:
        super().__init__(app, run_id)
        self.reported = reported
        self._end = end
        self._cause = cause

    @property
    def output(self) -> R:
        """What it returned: it is there already."""
        return self._value()

    async def result(self, timeout: float | None = None) -> R:
        return self._value()

    def result_sync(self, timeout: float | None = None) -> R:
        refuse_in_event_loop("result_sync", "await handle.result(…)")  # as in real life
        return self._value()

    def _value(self) -> R:
        try:
            value: Any = self._end.value(self.id, self._app.registry.returns_of(self._end.job))
        except RunNotSucceeded as error:
            raise error from self._cause
        return value  # type: ignore[no-any-return]  # converted to what the handler's annotation says

    async def find(self) -> NoReturn:
        raise RunNotFound(f"Run {self.id} was executed inline and is kept nowhere.", hint="Ask for its result.")

    async def logs(self, *, attempt: int | None = None) -> list[LogLine]:
        return self.reported.lines

    def watch(self) -> NoReturn:
        raise RunNotFound(f"Run {self.id} was executed inline and is kept nowhere.", hint="Ask for its logs.")

    async def cancel(self, *, reason: str = "") -> NoReturn:
        raise RunAlreadyEnded(f"Run {self.id} is {self._end.state}; there is nothing to cancel.")

    async def change(self, **changes: Any) -> NoReturn:
        raise RunAlreadyEnded(f"Run {self.id} is {self._end.state}; there is nothing to change.")


class _Performer:
    """Executes what is submitted."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self.handles: list[Handle[Any]] = []

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        attempt = _Attempt(self._app, job)
        try:
            # As in a worker, each attempt has a task, and so a context, of its own.
            result = await attempt.in_a_task(attempt.perform(payload))
            return self._ended(attempt, attempt.succeeded(result))
        except (*_NOT_ITS_OWN, GeneratorExit):  # the handler's own would be carried
            raise
        except BaseException as error:
            return self._failed(attempt, unpacked(error))

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if job.handler.is_async or not self._app.registry.environment.is_empty:
            return self._app.blocking(self.submit(job, payload))
        attempt = _Attempt(self._app, job)
        try:
            result = copy_context().run(attempt.perform_here, payload)
            return self._ended(attempt, attempt.succeeded(result))
        except _NOT_ITS_OWN:
            raise
        except BaseException as error:
            return self._failed(attempt, error)

    async def submit_many(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        chunk = job.handler.chunk
        if chunk is None:
            return [await self.submit(job, payload) for payload in payloads]
        chunks = [payloads[first : first + chunk.size] for first in range(0, len(payloads), chunk.size)]
        return [handle for each in chunks for handle in await self._submit_chunk(job, each)]

    async def _submit_chunk(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        attempts = [_Attempt(self._app, job) for _ in payloads]
        call = InlineChunk(job.handler, self._app.registry.environment, [each.context for each in attempts])
        try:
            answers = await attempts[0].in_a_task(call.answers(payloads, attempts[0].speaker))
        except (*_NOT_ITS_OWN, GeneratorExit):
            raise
        except BaseException as error:
            answers = [unpacked(error)] * len(attempts)
        return [self._answered(attempt, answer) for attempt, answer in zip(attempts, answers, strict=True)]

    def _answered(self, attempt: _Attempt, answer: Any) -> Handle[Any]:
        if isinstance(answer, BaseException):
            return self._failed(attempt, answer)
        try:
            return self._ended(attempt, attempt.succeeded(answer))
        except Exception as error:
            return self._failed(attempt, error)

    def submit_many_sync(self, job: Job[Any, R], payloads: Sequence[bytes]) -> list[Handle[R]]:
        if job.handler.chunk is not None:
            return self._app.blocking(self.submit_many(job, payloads))
        return [self.submit_sync(job, payload) for payload in payloads]

    def _failed(self, attempt: _Attempt, error: BaseException) -> Handle[Any]:
        return self._ended(attempt, attempt.failed(error), cause=error)

    def _ended(self, attempt: _Attempt, end: RunEnd, cause: BaseException | None = None) -> Handle[Any]:
        handle: Handle[Any] = InlineHandle(self._app, attempt.run_id, end, attempt.reported, cause)
        self.handles.append(handle)
        return handle


class _Finisher:
    """There is no run to finish: all that counts is that the handler says so. The connection is not touched."""

    def __init__(self) -> None:
        self.is_finished = False
        self.result: bytes | None = None

    async def finish(self, connection: object, result: str | None) -> None:
        self.finish_sync(connection, result)

    def finish_sync(self, connection: object, result: str | None) -> None:
        self.is_finished = True
        self.result = None if result is None else result.encode()


class _Attempt:
    """The one attempt that is made at a run."""

    waits = None  # there are no slots

    def __init__(self, app: Mainspring, job: Job[Any, Any]) -> None:
        self.run_id = UUID(bytes=run_id_bytes(1, 0, instant(app.clock))[0])
        self.reported = Reported(app.clock)
        self.finisher = _Finisher() if job.handler.definition.delivery is Delivery.TRANSACTIONAL else None
        self.capture_level = job.handler.capture_level or 0
        self._job = job
        self._environment = app.registry.environment
        self.context = Context(
            tenant=(job.app.follows_runs and _TENANT.get()) or job.app.tenant,
            run_id=self.run_id,
            job=job.name,
            attempt=1,
            fence=1,
            listener=self.reported,
            headers=job.submit_options.headers,
            finisher=self.finisher,
            returns=job.handler.returns,
        )

    async def perform(self, payload: bytes) -> Any:
        """With resources that are opened for this attempt only, and through middleware; hooks belong to processes."""

        async def call_through(surroundings: Surroundings) -> Any:
            call = self._call(payload, surroundings)
            # A plain function goes to a thread, as in a worker: it may block, and submit others with submit_sync.
            call = call if handler.is_async else partial(asyncio.to_thread, call_carrying, call)
            return await surroundings.around(self.context, call)

        handler = self._job.handler
        return await self._environment.around_one(handler.arguments.injected.values(), call_through, with_hooks=False)

    async def in_a_task(self, performing: Coroutine[Any, Any, T]) -> T:
        """What is submitted meanwhile is submitted for the same tenant."""
        token = _TENANT.set(self.context.tenant)
        try:
            return await asyncio.create_task(await_carrying(performing))
        finally:
            _TENANT.reset(token)

    @property
    def tenant(self) -> None:
        """There is no database in which it would have a number: `_TENANT` has its name."""

    @property
    def speaker(self) -> _Attempt | None:
        """Whose lines are kept: its own, unless the job keeps none."""
        return None if self._job.handler.capture_level is None else self

    def perform_here(self, payload: bytes) -> Any:
        _TENANT.set(self.context.tenant)
        return self._call(payload, NOTHING)()

    def _call(self, payload: bytes, surroundings: Surroundings) -> Callable[[], Any]:
        handler = self._job.handler
        CURRENT_ATTEMPT.set(self.speaker)
        positional, named = handler.arguments.decode(payload)
        if handler.arguments.wants_context:
            positional = (self.context, *positional)
        return partial(handler.function, *positional, **named, **surroundings.given(handler.arguments.injected))

    def succeeded(self, result: Any) -> RunEnd:
        if isinstance(result, Steering):
            return self.failed(result)
        if self.finisher is None:
            return RunEnd(State.SUCCEEDED, self._job.handler.returns.encode(result), None, self._job.name)
        if not self.finisher.is_finished:
            raise not_finished(result)
        return RunEnd(State.SUCCEEDED, self.finisher.result, None, self._job.name)

    def failed(self, error: BaseException) -> RunEnd:
        state = State.CANCELLED if isinstance(error, Cancel) else State.DEAD
        return RunEnd(state, None, error_document(error), self._job.name)
