"""In the child: sends what its handler reports to its worker."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.fan_out import Children, of_transactional
from mainspring.worker.current_attempt import words_of
from mainspring.worker.isolation.wire import COME_BACK, FANS_OUT, LEAVE_SLOT, PREVIOUS_SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.model.actor import Tenant
    from mainspring.model.fan_out import FanOut
    from mainspring.worker.isolation.child import ChildChannel


class ReportSender:
    """Implements `mainspring.model.report.Listener` over the channel to its worker."""

    def __init__(self, channel: ChildChannel) -> None:
        self._channel = channel

    def progress(self, fraction: float, message: str) -> None:
        self._channel.notify("progress", (fraction, message))

    def log(self, level: str, logger: str, text: str) -> None:
        self._channel.notify("log", (level, logger, text))

    async def checkpoint(self, data: bytes) -> None:
        await asyncio.to_thread(self.checkpoint_sync, data)

    def checkpoint_sync(self, data: bytes) -> None:
        self._channel.request("checkpoint", msgspec.Raw(data))

    async def previous_success_at(self) -> datetime | None:
        return await asyncio.to_thread(self.previous_success_at_sync)

    def previous_success_at_sync(self) -> datetime | None:
        answer = self._channel.request(PREVIOUS_SUCCESS, None)
        return None if answer is None else datetime.fromisoformat(answer)


class ChildAttempt:
    """The attempt that a child makes, as its `CURRENT_ATTEMPT`. The slot is its worker's: see `waits.py`."""

    def __init__(self, channel: ChildChannel, job: str, fan_out: FanOut | None, tenant: Tenant | None = None) -> None:
        self.pid = os.getpid()
        self.waits = self
        self._channel = channel
        self._job = job
        self._fan_out = fan_out
        self.tenant = tenant
        self._children: Children | None = None

    def fan_out(self) -> Children:
        """The worker has to know before there is a child: it is who lets the run wait for it."""
        if self._fan_out is None:
            raise of_transactional(self._job)
        if self._children is None:
            self._children = Children(self._fan_out)
            self._channel.notify(FANS_OUT, None)
        return self._children

    async def leave(self, attempt: ChildAttempt) -> None:
        await asyncio.to_thread(self._channel.request, LEAVE_SLOT, None)

    async def come_back(self, attempt: ChildAttempt) -> None:
        await asyncio.to_thread(self._channel.request, COME_BACK, None)


class _Capture(logging.Handler):
    """Everything logged in this process belongs to the one run it is for, whatever thread it comes from."""

    def __init__(self, sender: ReportSender, level: int) -> None:
        super().__init__(level)
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        self._sender.log(*words_of(record))


@contextmanager
def captured_here(sender: ReportSender, level: int | None) -> Iterator[None]:
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
    root.addHandler(_Capture(sender, level))
    yield
