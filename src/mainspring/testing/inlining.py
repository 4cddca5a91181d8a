"""Inline mode: submitting a job executes it at once, here, without a database.

Arguments and results are encoded and decoded as in real life, so what could not be stored fails here too. One
attempt is made, so a handler that asks for another one or snoozes has failed; delays, keys, limits, timeouts and a
caller's connection mean nothing. For those there is `run_until_idle`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from mainspring.app.handle import Handle
from mainspring.clock import instant
from mainspring.control.results import End
from mainspring.errors import RunAlreadyEnded, RunNotFound, RunNotSucceeded
from mainspring.model.context import Context
from mainspring.model.ids import run_id_bytes
from mainspring.model.lifecycle import State
from mainspring.model.line import Delivery
from mainspring.model.payload import MAX_RESULT_BYTES, encode
from mainspring.model.steering import Cancel, Steering
from mainspring.worker.finishing import not_finished
from mainspring.worker.work import error_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring

R = TypeVar("R")


@contextmanager
def inline(app: Mainspring) -> Iterator[list[Handle[Any]]]:
    """Within this block, `submit` executes the job's function; the list has the handle of each run, in order."""
    before, performer = app.shortcut, _Performer(app)
    app.shortcut = performer
    try:
        yield performer.handles
    finally:
        app.shortcut = before


class InlineHandle(Handle[R]):
    """A run that has ended before anyone could ask."""

    __slots__ = ("_cause", "_end")

    def __init__(self, app: Mainspring, run_id: UUID, end: End, cause: Exception | None) -> None:
        super().__init__(app, run_id)
        self._end = end
        self._cause = cause

    async def result(self, timeout: float | None = None) -> R:
        return self.result_sync()

    def result_sync(self, timeout: float | None = None) -> R:
        try:
            value: Any = self._end.value(self.id)
        except RunNotSucceeded as error:
            raise error from self._cause
        return value  # type: ignore[no-any-return]  # JSON: the handler's annotation is the promise

    async def find(self) -> NoReturn:
        raise RunNotFound(f"Run {self.id} was executed inline and is kept nowhere.", hint="Ask for its result.")

    async def cancel(self, reason: str = "") -> NoReturn:
        raise RunAlreadyEnded(f"Run {self.id} is {self._end.state}; there is nothing to cancel.")


class _Performer:
    """Executes what is submitted."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self.handles: list[Handle[Any]] = []

    async def submit(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        run_id = self._new_run_id()
        try:
            finisher = _finisher_for(job)
            call = _call(job, run_id, payload, finisher)
            # A plain function goes to a thread, as in a worker: it may block, and submit others with submit_sync.
            result = await call() if job.handler.is_async else await asyncio.to_thread(call)
            return self._ended(run_id, _succeeded(result, finisher))
        except Exception as error:
            return self._ended(run_id, _failed(error), cause=error)

    def submit_sync(self, job: Job[Any, R], payload: bytes) -> Handle[R]:
        if job.handler.is_async:
            return self._app.blocking(self.submit(job, payload))
        run_id = self._new_run_id()
        try:
            finisher = _finisher_for(job)
            return self._ended(run_id, _succeeded(_call(job, run_id, payload, finisher)(), finisher))
        except Exception as error:
            return self._ended(run_id, _failed(error), cause=error)

    def _new_run_id(self) -> UUID:
        return UUID(bytes=run_id_bytes(1, 0, instant(self._app.clock))[0])

    def _ended(self, run_id: UUID, end: End, cause: Exception | None = None) -> Handle[Any]:
        handle: Handle[Any] = InlineHandle(self._app, run_id, end, cause)
        self.handles.append(handle)
        return handle


class _Finisher:
    """There is no run to finish: all that counts is that the handler says so. The connection is not touched."""

    def __init__(self) -> None:
        self.end: End | None = None

    async def finish(self, connection: object, result: str | None) -> None:
        self.finish_sync(connection, result)

    def finish_sync(self, connection: object, result: str | None) -> None:
        self.end = End(State.SUCCEEDED, None if result is None else result.encode(), None)


def _finisher_for(job: Job[Any, Any]) -> _Finisher | None:
    return _Finisher() if job.handler.definition.delivery is Delivery.TRANSACTIONAL else None


def _call(job: Job[Any, Any], run_id: UUID, payload: bytes, finisher: _Finisher | None) -> Callable[[], Any]:
    positional, named = job.handler.arguments.decode(payload)
    if job.handler.arguments.wants_context:
        positional = (Context(run_id=run_id, job=job.name, attempt=1, fence=1, finisher=finisher), *positional)
    return partial(job.handler.function, *positional, **named)


def _succeeded(result: Any, finisher: _Finisher | None) -> End:
    if isinstance(result, Steering):
        return _failed(result)
    if finisher is not None:
        if finisher.end is None:
            raise not_finished(result)
        return finisher.end
    data = None if result is None else encode(result, what="result", limit=MAX_RESULT_BYTES)
    return End(State.SUCCEEDED, data, None)


def _failed(error: Exception) -> End:
    return End(State.CANCELLED if isinstance(error, Cancel) else State.DEAD, None, error_document(error))
