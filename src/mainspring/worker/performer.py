"""Calls the handler of one attempt with its arguments: `async def` in the event loop, `def` in a thread.

An isolated one is called elsewhere: see `mainspring.worker.isolation`.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.model.chunk import answers_of
from mainspring.model.context import Context
from mainspring.model.headers import read_headers
from mainspring.model.payload import JSON_CODEC
from mainspring.store.columns import ATTEMPT, CODEC, FENCE, HEADERS, ID, PAYLOAD
from mainspring.worker.chunk import lists_for
from mainspring.worker.chunk_middleware import ChunkMiddleware
from mainspring.worker.current_attempt import CURRENT_ATTEMPT, words_of
from mainspring.worker.environment import NOTHING
from mainspring.worker.finishing import finishing_of
from mainspring.worker.handler_errors import call_carrying
from mainspring.worker.isolation.receiver import ReportReceiver
from mainspring.worker.threads import HandlerThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from logging import LogRecord

    from mainspring.worker.environment import Surroundings
    from mainspring.worker.gatherer import ChunkCall
    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registry import Handler
    from mainspring.worker.reporter import Reporter
    from mainspring.worker.work import Work


class Performer:
    """Without `isolation` every handler is called in this process."""

    def __init__(
        self,
        *,
        threads: int,
        reporter: Reporter,
        surroundings: Surroundings = NOTHING,
        isolation: Isolation | None = None,
    ) -> None:
        self._surroundings = surroundings
        self._isolation = isolation
        self._threads = HandlerThreads(threads)
        self._reporter = reporter

    async def perform(self, work: Work, handler: Handler, begins: Callable[[Work], None]) -> Any:
        """What the handler returns. `begins` is called when a run with a time limit begins: waiting does not count."""
        check_codec(work)
        if self._isolation is not None and self._isolation.is_for(work, handler):
            return await self._perform_isolated(self._isolation, work, handler, begins)
        if work.limit is not None:
            begins(work)
        positional, named = handler.arguments.decode(work.row[PAYLOAD])
        CURRENT_ATTEMPT.set(work)
        if self._surroundings is not NOTHING and (handler.arguments.injected or self._surroundings.middleware):
            return await self._perform_within(work, handler, positional, named)
        if handler.arguments.wants_context:
            positional = (await self._context_of(work, handler), *positional)
        if handler.is_async:
            return await handler.function(*positional, **named)
        return await self._call_in_thread(handler.function, positional, named)

    async def _perform_within(
        self, work: Work, handler: Handler, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """With resources, and through middleware, for which there is a context whether the handler wants it or not."""
        context = await self._context_of(work, handler)
        if handler.arguments.wants_context:
            positional = (context, *positional)
        named |= self._surroundings.given(handler.arguments.injected)
        if handler.is_async:
            return await self._surroundings.around(context, partial(handler.function, *positional, **named))
        return await self._surroundings.around(
            context, partial(self._call_in_thread, handler.function, positional, named)
        )

    async def perform_call(self, call: ChunkCall, handler: Handler, begins: Callable[[Work], None]) -> Sequence[Any]:
        """What the handler answers for each run of a chunk."""
        if call.limit is not None:
            begins(call)
        CURRENT_ATTEMPT.set(call)
        if not self._surroundings.middleware and not handler.arguments.wants_context:
            return await self._call_for(handler, call.items)
        contexts = await asyncio.gather(*(self._context_of(run, handler) for run in call.runs))
        if not self._surroundings.middleware:
            return await self._call_for(handler, call.items, contexts)
        return await ChunkMiddleware(
            partial(self._call_for, handler), self._surroundings, call.items, contexts
        ).answers()

    async def _call_for(
        self, handler: Handler, items: Sequence[Any], contexts: Sequence[Context] = ()
    ) -> Sequence[Any]:
        assert handler.chunk is not None
        lists = lists_for(handler, items, contexts)
        given = self._surroundings.given(handler.arguments.injected)
        if handler.is_async:
            result = await handler.chunk.function(*lists, **given)
        else:
            result = await self._call_in_thread(handler.chunk.function, lists, given)
        return answers_of(handler.name, result, len(items))

    async def _call_in_thread(
        self, function: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        call = partial(copy_context().run, call_carrying, function, *positional, **named)
        return await self._threads.call(call)

    async def _perform_isolated(
        self, isolation: Isolation, work: Work, handler: Handler, begins: Callable[[Work], None]
    ) -> Any:
        report = partial(self._reporter.report_of, work)
        receiver = ReportReceiver(report, keeps_output=handler.capture_level is not None, work=work)
        checkpointed = await self._checkpointed(work, handler)
        if work.is_cancelled or work.is_interrupted:
            raise asyncio.CancelledError  # while we looked for the checkpoint
        try:
            return await isolation.perform(work, handler, begins, receiver, checkpointed)
        finally:
            receiver.close()

    async def _checkpointed(self, work: Work, handler: Handler) -> Any:
        """Whoever is the first to claim a run finds no checkpoint, and does not look for one."""
        if work.row[FENCE] == 1 or not handler.arguments.wants_context:
            return None
        work.report = self._reporter.report_of(work)  # it is this attempt's to take away if the run ends
        return await self._reporter.checkpointed(work.row[ID])

    async def _context_of(self, work: Work, handler: Handler) -> Context:
        row = work.row
        checkpointed = await self._checkpointed(work, handler)
        work.context = Context(
            run_id=row[ID],
            job=handler.name,
            attempt=row[ATTEMPT] + 1,
            fence=row[FENCE],
            listener=self._reporter.report_of(work),
            headers=read_headers(row[HEADERS]),
            checkpointed=checkpointed,
            finisher=finishing_of(work, handler),
            returns=handler.returns,
            tenant=DEFAULT_TENANT_NAME if work.tenant is None else work.tenant.name,
        )
        if work.is_cancelled or work.is_interrupted:
            work.context.request_cancel()  # while we looked for the checkpoint
        return work.context

    def hear(self, work: Work, record: LogRecord) -> None:
        """A handler logged a line."""
        handler = work.handler
        if handler is None or handler.capture_level is None or record.levelno < handler.capture_level:
            return
        first = next((run for run in work.runs if not run.is_settled), None)  # of a chunk, one keeps what is said
        if first is not None and work.worker_id == self._reporter.worker_id:
            self._reporter.report_of(first).log(*words_of(record))

    def tell(self, work: Work) -> None:
        """Ask the handler to stop: its context says so, and an `async def` is cancelled where it waits."""
        if self._isolation is not None and self._isolation.holds(work):
            self._isolation.tell(work)
            return
        for run in work.runs:
            if run.context is not None:
                run.context.request_cancel()
        if work.handler is not None and work.handler.is_async and work.task is not None and work.started_at is not None:
            work.task.cancel()  # not before its first step, which looks itself: such a task would never take one

    def kill(self, work: Work) -> bool:
        """End the handler for certain, if that can be done; then `perform` soon raises CancelledError.

        Code in this process cannot be ended against its will: the answer is no, and the caller abandons it.
        """
        if self._isolation is None or not self._isolation.holds(work):
            return False
        self._isolation.kill(work)
        return True

    def close(self) -> None:
        """Threads whose handlers would not stop are left behind; isolated processes are not."""
        if self._isolation is not None:
            self._isolation.close()
        self._threads.close()


def check_codec(work: Work) -> None:
    if work.row[CODEC] != JSON_CODEC:
        raise InvalidInput(f"Codec {work.row[CODEC]} is not known to this worker.", code="unknown-codec")
