"""The child's own end of what its handler tells: it says so to its worker."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from mainspring.worker.capture import words_of
from mainspring.worker.isolation.wire import COME_BACK, LEAVE_SLOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.worker.isolation.child import Line


class Voice:
    """Implements `mainspring.model.report.Listener` over the line to the worker."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def progress(self, fraction: float, message: str) -> None:
        self._line.tell("progress", (fraction, message))

    def log(self, level: str, logger: str, text: str) -> None:
        self._line.tell("log", (level, logger, text))

    async def checkpoint(self, data: bytes) -> None:
        await asyncio.to_thread(self.checkpoint_sync, data)

    def checkpoint_sync(self, data: bytes) -> None:
        self._line.ask("checkpoint", msgspec.Raw(data))


class ChildAttempt:
    """The attempt that a child makes, as its `CURRENT_ATTEMPT`. The slot is its worker's: see `waits.py`."""

    def __init__(self, line: Line) -> None:
        self.pid = os.getpid()
        self.waits = self
        self._line = line

    async def leave(self, attempt: ChildAttempt) -> None:
        await asyncio.to_thread(self._line.ask, LEAVE_SLOT, None)

    async def come_back(self, attempt: ChildAttempt) -> None:
        await asyncio.to_thread(self._line.ask, COME_BACK, None)


class _Capture(logging.Handler):
    """Everything logged in this process belongs to the one run it is for, whatever thread it comes from."""

    def __init__(self, voice: Voice, level: int) -> None:
        super().__init__(level)
        self._voice = voice

    def emit(self, record: logging.LogRecord) -> None:
        self._voice.log(*words_of(record))


@contextmanager
def captured_here(voice: Voice, level: int | None) -> Iterator[None]:
    """Have lines of `logging` kept, once: handlers that would also print them are set aside."""
    if level is None:
        yield
        return
    root = logging.getLogger()
    printing = [each for each in root.handlers if getattr(each, "stream", None) in (sys.stdout, sys.stderr)]
    if not root.handlers and root.level == logging.WARNING:
        root.setLevel(level)
    for handler in printing:
        root.removeHandler(handler)
    root.addHandler(_Capture(voice, level))
    yield
