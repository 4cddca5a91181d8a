"""Threads for handlers that are not async. They do not keep their process from ending.

A ThreadPoolExecutor would: Python waits at its exit for every thread of one, so a handler that was abandoned because it
would not stop keeps the application's process for as long as it likes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = tuple[asyncio.Future[Any], Callable[[], Any]]


class HandlerThreads:
    """As many as are needed at once, up to `most`. Calls are made, and answered, in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._idle: deque[None] = deque()  # one for each thread that has finished a call and takes the next one
        self._is_closed = False

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """What the function returns or raises. If whoever waits is cancelled before it begins, it does not."""
        if self._is_closed:
            raise RuntimeError("The threads for handlers are closed.")
        answer = asyncio.get_running_loop().create_future()
        self._calls.put((answer, function))
        try:
            self._idle.pop()
        except IndexError:
            self._start_thread()
        return answer

    def _start_thread(self) -> None:
        if self._threads < self._most:
            name = f"mainspring-handler_{self._threads}"
            self._threads += 1
            threading.Thread(target=_serve, args=(self._calls, self._idle), name=name, daemon=True).start()

    def close(self) -> None:
        """Threads end when they have finished their call; what has not begun is cancelled."""
        self._is_closed = True
        with contextlib.suppress(Empty):
            while (call := self._calls.get_nowait()) is not None:
                call[0].cancel()
        for _ in range(self._threads):
            self._calls.put(None)


def _serve(calls: SimpleQueue[Call | None], idle: deque[None]) -> None:
    while (call := calls.get()) is not None:
        _make(*call)
        del call  # or what it holds would live until the next one comes
        idle.append(None)


def _make(answer: asyncio.Future[Any], function: Callable[[], Any]) -> None:
    if answer.cancelled():
        return
    settle: Callable[[asyncio.Future[Any], Any], None] = _return
    value: Any
    try:
        value = function()
    except concurrent.futures.CancelledError as error:  # asyncio has one of its own, and awaits look for that
        settle, value = _raise, asyncio.CancelledError(*error.args)
    except BaseException as error:
        settle, value = _raise, error
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        answer.get_loop().call_soon_threadsafe(settle, answer, value)
    del answer, function, value  # an error knows this frame: a circle that would wait for the garbage collector


def _return(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _raise(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
