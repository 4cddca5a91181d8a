"""Inside the child of one run, without forking it."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring import Mainspring
from mainspring.worker.isolation.child import ChildChannel, IsolatedAttempt
from mainspring.worker.isolation.wire import Failed, Start

PATIENCE = 30.0


class RecordingChannel(ChildChannel):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[msgspec.Struct] = []
        self._sending = threading.RLock()

    def send(self, message: msgspec.Struct) -> None:
        self.sent.append(message)


async def test_a_handler_told_to_stop_before_its_loop_could_hear_is_stopped_all_the_same() -> None:
    app = Mainspring("postgresql://nowhere.invalid/none")

    @app.job(isolated=True)
    async def wait() -> None:
        await asyncio.Event().wait()

    async def close() -> None: ...

    channel = RecordingChannel()
    attempt = IsolatedAttempt(channel, Start(UUID(int=1), "wait", 1, 1, msgspec.Raw(b"{}")), app.registry, close)
    attempt._context.request_cancel()  # as the plain signal handler does
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(PATIENCE):
            await attempt._run_async()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)

    sent: list[Any] = channel.sent
    assert all(word.is_cancelled for word in sent)


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit])
async def test_what_a_thread_cannot_hand_on_is_the_last_word_all_the_same(kind: type[BaseException]) -> None:
    """With something around it, a plain handler runs in a thread of the child."""
    app = Mainspring("postgresql://nowhere.invalid/none")
    app.on_start(lambda: None)

    @app.job(isolated=True)
    def fail() -> None:
        raise kind("no more")

    async def close() -> None: ...

    channel = RecordingChannel()
    attempt = IsolatedAttempt(channel, Start(UUID(int=1), "fail", 1, 1, msgspec.Raw(b"{}")), app.registry, close)
    try:
        async with asyncio.timeout(PATIENCE):
            await attempt._run_async()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    (word,) = channel.sent
    assert isinstance(word, Failed)
    assert (word.names[0], word.message) == (("builtins", kind.__name__), "no more")
