"""Starts handlers, without a task for each as long as they do not wait.

A handler that returns without ever having waited needs no task of its own, and making one takes longer than many a
handler. So handlers run one after the other inside one task, each in a fresh context. The first one that waits keeps
the task, which is its own from then on, and the others go on in another one. Of a job that has waited once, every
further run gets a task at once: it will wait again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context

    from mainspring.clock import Clock
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work

BURST_SECONDS = 0.002  # how long handlers may run one after the other before the event loop has its turn


class Launcher:
    """`execute` makes the coroutine that executes a run, and never raises."""

    def __init__(
        self,
        *,
        clock: Clock,
        execute: Callable[[Work, Handler], Coroutine[Any, Any, None]],
    ) -> None:
        self._clock = clock
        self._execute = execute
        self._queue: deque[tuple[Work, Handler]] = deque()
        self._task: asyncio.Task[None] | None = None  # the one in which they run one after the other
        self._known_to_wait: set[str] = set()  # jobs whose handlers have
        self._context = copy_context()  # what every run begins with: nothing of other runs

    def start(self, work: Work, handler: Handler) -> None:
        if handler.needs_thread or handler.name in self._known_to_wait:
            # Not by the loop's create_task: that makes up a name for each, which takes as long as the rest of it.
            context = self._context.copy()
            work.task = asyncio.Task(self._execute(work, handler), name=handler.name, context=context)
            return
        self._queue.append((work, handler))
        if self._task is None:
            self._begin()

    def close(self) -> None:
        """Who has not begun by now never does."""
        self._queue.clear()

    def _begin(self) -> None:
        self._task = asyncio.Task(self._run(), name="handlers", context=self._context.copy())

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._run_in(task)
        except GeneratorExit:
            self.close()  # nobody raised it: the event loop is gone, and Python puts away what was still waiting
            raise
        finally:
            if self._task is task:  # nobody waited in it, or somebody cancelled it
                self._hand_over()

    async def _run_in(self, task: asyncio.Task[None]) -> None:
        """Until one of them waits: the rest of that one is the rest of this task."""
        until = self._clock.monotonic() + BURST_SECONDS
        while self._queue:
            work, handler = self._queue.popleft()
            work.task = task
            execution, context = self._execute(work, handler), self._context.copy()
            try:
                waits_for = context.run(execution.send, None)
            except StopIteration:
                if task.cancelling():
                    return  # a handler cancelled it, and has returned: nobody else shall suffer from that
            else:
                self._known_to_wait.add(handler.name)
                task.set_name(handler.name)
                self._hand_over()
                await _Rest(execution, context, waits_for)
                return
            if self._clock.monotonic() >= until:
                await asyncio.sleep(0)
                until = self._clock.monotonic() + BURST_SECONDS

    def _hand_over(self) -> None:
        """The task is no longer there for all: who has not begun yet goes on in another one."""
        self._task = None
        if self._queue:
            self._begin()


class _Rest:
    """The rest of a coroutine that has begun, in its own context."""

    __slots__ = ("_context", "_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, None], context: Context, waits_for: Any) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        run, coroutine, waits_for = self._context.run, self._coroutine, self._waits_for
        while True:
            step: Callable[[Any], Any] = coroutine.send
            try:
                given: Any = yield waits_for
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:
                step, given = coroutine.throw, error
            try:
                waits_for = run(step, given)
            except StopIteration:
                return
