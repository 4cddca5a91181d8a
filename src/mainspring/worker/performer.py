"""Calls the handler of one attempt with its arguments: `async def` in the event loop, `def` in a thread.

An isolated one is called elsewhere: see `mainspring.worker.isolation`.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput
from mainspring.model.context import Context
from mainspring.model.payload import JSON_CODEC
from mainspring.worker.finishing import finishing_of
from mainspring.worker.work import ATTEMPT, CODEC, FENCE, ID, PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.worker.isolation.isolation import Isolation
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work


class Performer:
    """Without `isolation` every handler is called in this process. `begins` hears of limited ones before they begin."""

    def __init__(self, *, threads: int, begins: Callable[[Work], None], isolation: Isolation | None = None) -> None:
        self._begins = begins
        self._isolation = isolation
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="mainspring-handler")

    async def perform(self, work: Work, handler: Handler) -> Any:
        if work.row[CODEC] != JSON_CODEC:
            raise InvalidInput(f"Codec {work.row[CODEC]} is not known to this worker.", code="unknown-codec")
        if self._isolation is not None and self._isolation.is_for(work, handler):
            return await self._isolation.perform(work, handler, self._begins)
        if work.limit is not None:
            self._begins(work)
        positional, named = handler.arguments.decode(work.row[PAYLOAD])
        if handler.arguments.wants_context:
            positional = (_context_of(work, handler), *positional)
        if handler.is_async:
            return await handler.function(*positional, **named)
        call = partial(copy_context().run, handler.function, *positional, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def tell(self, work: Work) -> None:
        """Ask the handler to stop: its context says so, and an `async def` is cancelled where it waits."""
        if self._isolation is not None and self._isolation.holds(work):
            self._isolation.tell(work)
            return
        if work.context is not None:
            work.context.request_cancel()
        if work.handler is not None and work.handler.is_async and work.task is not None:
            work.task.cancel()

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
        self._threads.shutdown(wait=False, cancel_futures=True)


def _context_of(work: Work, handler: Handler) -> Context:
    row = work.row
    work.context = Context(
        run_id=row[ID],
        job=handler.name,
        attempt=row[ATTEMPT] + 1,
        fence=row[FENCE],
        finisher=finishing_of(work, handler),
    )
    return work.context
