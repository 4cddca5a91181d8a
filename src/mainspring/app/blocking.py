"""An event loop in a thread, for programs that have none: blocking twins of async calls run there.

A process that is forked inherits the loop but not its thread: it begins anew, with a loop and connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
import weakref
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from mainspring.errors import InvalidInput, MainspringError
from mainspring.model.event_loop import refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

ENDING_SECONDS = 5.0  # how long to wait for what was told to end

_all: weakref.WeakSet[BackgroundLoop] = weakref.WeakSet()


class BackgroundLoop:
    """Started on first use; a daemon, so that it never keeps a program alive."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._inherited: list[asyncio.AbstractEventLoop] = []
        _all.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns."""
        try:
            refuse_in_event_loop("A blocking call", "await its twin, which has the same name without _sync")
        except InvalidInput:
            work.close()  # or Python complains that nobody awaited it
            raise
        is_over = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_told_when_over(work, is_over), self._running_loop())
        try:
            return future.result()
        except CancelledError:
            raise _closed() from None
        finally:
            if not future.done():  # Ctrl-C: what nobody waits for any more ends, too
                future.cancel()
                is_over.wait(ENDING_SECONDS)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _new_loop()
                self._thread = threading.Thread(
                    target=_run_until_stopped, args=(self._loop,), name="mainspring-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End the loop and its thread; the next call starts another one."""
        with self._lock:
            if self._loop is not None and self._thread is not None:
                # Those who wait in other threads are told: nobody would ever answer them.
                asyncio.run_coroutine_threadsafe(_cancel_all_others(), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop = self._thread = None

    def begin_anew(self) -> None:
        """In a forked child. Someone may have held the lock, and the loop is our parent's: nothing of it is touched.

        Nor is it forgotten: what it still has to do would complain while it is put away.
        """
        if self._loop is not None:
            self._inherited.append(self._loop)
        self._loop = self._thread = None
        self._lock = threading.Lock()


async def _told_when_over(work: Coroutine[Any, Any, T], is_over: threading.Event) -> T:
    try:
        return await work
    finally:
        is_over.set()


async def _cancel_all_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=ENDING_SECONDS)


def _closed() -> MainspringError:
    return MainspringError(
        "The application was closed while this call waited.",
        code="application-closed",
        hint="Close the application after the last call.",
    )


def _new_loop() -> asyncio.AbstractEventLoop:
    """With poll rather than epoll: the kernel would share that with forked children.

    What a child closes would then be taken from its parent's loop.
    """
    selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
    return asyncio.SelectorEventLoop(selector())


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _begin_anew_in_child() -> None:
    for each in list(_all):
        each.begin_anew()


os.register_at_fork(after_in_child=_begin_anew_in_child)
