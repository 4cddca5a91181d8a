"""An event loop in a thread, for programs that have none: blocking twins of async calls run there."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class BackgroundLoop:
    """Started on first use; a daemon, so that it never keeps a program alive."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop()).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_until_stopped, args=(self._loop,), name="mainspring-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End the loop and its thread; the next call starts another one."""
        with self._lock:
            if self._loop is not None and self._thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop = self._thread = None


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
