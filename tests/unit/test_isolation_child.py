"""Inside the child of one run, without forking it."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any
from uuid import UUID

import msgspec

from mainspring import Mainspring
from mainspring.worker.isolation.child import Life, Line
from mainspring.worker.isolation.wire import Start

PATIENCE = 30.0


class Mouth(Line):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[msgspec.Struct] = []
        self._sending = threading.RLock()

    def say(self, message: msgspec.Struct) -> None:
        self.said.append(message)


async def test_a_handler_told_to_stop_before_its_loop_could_hear_is_stopped_all_the_same() -> None:
    app = Mainspring("postgresql://nowhere.invalid/none")

    @app.job(isolated=True)
    async def wait() -> None:
        await asyncio.sleep(3_600)

    async def close() -> None: ...

    mouth = Mouth()
    life = Life(mouth, Start(UUID(int=1), "wait", 1, 1, msgspec.Raw(b"{}")), app.registry, close)
    life._context.request_cancel()  # as the plain signal handler does
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(PATIENCE):
            await life._run_async()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)

    said: list[Any] = mouth.said
    assert all(word.is_cancelled for word in said)
