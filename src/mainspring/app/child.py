"""A supervised worker process: `python -m mainspring.app.child`, as the supervisor starts it.

Listens to its supervisor over an inherited socket. If the supervisor vanishes, nobody sends heartbeats for this
process any more, so it drains and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import structlog

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.app.logs import log_to_stderr
from mainspring.errors import MainspringError
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.worker.event_loop import run_in_loop
from mainspring.worker.running import Ending
from mainspring.worker.supervised import (
    DEPARTED,
    DRAIN,
    EXIT_DRAINED,
    EXIT_LOST,
    EXIT_MISCONFIGURED,
    EXIT_WORN,
    HEARTBEAT,
    HURRY,
    LIMIT,
    LOST,
    READY,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.worker.running import RunningWorker

log = structlog.get_logger()

EXIT_FAULT = 1
SWITCH_SECONDS = 0.001  # so long each handler that computes keeps the event loop waiting; Python's is 5 ms
EXIT_CODES = {Ending.FAULT: EXIT_FAULT, Ending.GAVE_UP: EXIT_WORN, Ending.WORN: EXIT_WORN}


class SupervisorChannel:
    """The inherited socket, in the direction of the supervisor."""

    def __init__(self, channel: socket.socket) -> None:
        self.socket = channel

    def announce(self, hard_limit: float) -> None:
        """Say by when our handlers have to be over."""
        self._say(b"%s%.3f\n" % (LIMIT, hard_limit))

    def depart(self) -> None:
        """Say that our worker ends, whatever is still to be closed: it needs no more heartbeats."""
        self._say(DEPARTED)

    def _say(self, word: bytes) -> None:
        """Not through the loop: the next handler may block it at once."""
        with contextlib.suppress(OSError):
            os.write(self.socket.fileno(), word)


class Child:
    """A worker process that does what its supervisor says. `start` starts its worker."""

    def __init__(self, start: Callable[[], Awaitable[RunningWorker]], channel: SupervisorChannel, grace: float) -> None:
        self._start = start
        self._channel = channel
        self._grace = grace
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._exit_code = EXIT_DRAINED

    async def run(self) -> int:
        reader, writer = await asyncio.open_connection(sock=self._channel.socket)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._asked_to_stop)
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # a terminal's Ctrl-C is the supervisor's business
        worker = await self._start()
        _calm_garbage_collection()
        writer.write(READY)
        listening = asyncio.create_task(self._listen(reader, worker))
        ending = await worker.until_it_has_to_end(self._stopping)
        if ending.is_urgent:
            self._hurry.set()
        await worker.drain(self._grace, self._hurry, self._channel.depart)
        listening.cancel()
        return EXIT_CODES.get(ending, self._exit_code)

    def _asked_to_stop(self) -> None:
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    async def _listen(self, reader: asyncio.StreamReader, worker: RunningWorker) -> None:
        with contextlib.suppress(ConnectionError):  # it was killed before it had read all we said
            while word := await reader.readline():
                self._heed(word, worker)
        log.warning("the supervisor is gone; draining")
        self._asked_to_stop()

    def _heed(self, word: bytes, worker: RunningWorker) -> None:
        if word == HEARTBEAT:
            worker.heartbeat_arrived()
        elif word == DRAIN:
            self._stopping.set()
        elif word == HURRY:
            self._stopping.set()
            self._hurry.set()
        elif word == LOST:
            # Someone else has our runs by now: stop the handlers, try to deliver what is done, begin anew.
            self._exit_code = EXIT_LOST
            self._stopping.set()
            self._hurry.set()


async def _main(configuration: wiring.ChildConfiguration) -> int:
    app = load_app(configuration.app)
    app.use(configuration.location)
    store = await wiring.open_store(configuration.location)
    channel = SupervisorChannel(socket.socket(fileno=configuration.channel))
    try:
        start = partial(
            wiring.start_worker,
            store,
            app.registry,
            configuration.settings,
            clock=app.clock,
            worker_id=UUID(configuration.worker_id),
            isolation=wiring.isolation(configuration.app, configuration.location),
            announce=channel.announce,
            tenant=app.tenant,
        )
        return await Child(start, channel, configuration.settings.grace).run()
    finally:
        await app.close()
        await store.close()


def _calm_garbage_collection() -> None:
    """What is loaded now stays; runs come and go by the thousand and free themselves without the collector."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # whoever read it is gone, or a handler closed it
            stream.flush()


def main() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    log_to_stderr()
    configuration = msgspec.json.decode(os.environ.pop(wiring.CHILD_VARIABLE), type=wiring.ChildConfiguration)
    try:
        code = run_in_loop(_main(configuration))
    except MainspringError as error:
        sys.stderr.write(f"error: {error} [{error.code}]\n")
        code = EXIT_FAULT if isinstance(error, DATABASE_ERRORS) else EXIT_MISCONFIGURED
    except Exception:
        log.exception("this worker process ended by a fault")
        code = EXIT_FAULT
    _flush_output()
    os._exit(code)  # threads of handlers that would not stop must not keep the process


if __name__ == "__main__":
    main()
