"""Inside the child of one run: receive what to run, keep within its limits, run it, send what came of it, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from mainspring.errors import InvalidInput, LeaseLost, MainspringError, OutOfMemory, RunCancelled
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.model.context import Context
from mainspring.model.limits import readable_size
from mainspring.model.payload import printable
from mainspring.model.steering import Steering
from mainspring.worker.command import become
from mainspring.worker.current_attempt import CURRENT_ATTEMPT
from mainspring.worker.environment import NOTHING
from mainspring.worker.event_loop import run_in_loop
from mainspring.worker.handler_errors import (
    HOPELESS,
    MAX_ERROR_LENGTH,
    MAX_TRACEBACK_LENGTH,
    call_carrying,
    message_of,
    traceback_of,
    unpacked,
)
from mainspring.worker.isolation import processes
from mainspring.worker.isolation.sender import ChildAttempt, ReportSender, captured_here
from mainspring.worker.isolation.wire import Done, Failed, Frames, Notice, Reply, Request, Start, framed, to_child

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

    from mainspring.worker.environment import Surroundings
    from mainspring.worker.registry import Registry

READ_BYTES = 65_536


class ChildChannel:
    """The child's end of the socket. Any thread may use it; whoever asks waits for its answer."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._frames = Frames()
        self._sending = threading.RLock()  # a signal or the collector may have something to say in between
        self._asking = threading.Lock()
        self._asked = 0

    def receive(self) -> Any:
        """The next message, waiting for it. A worker that is gone ends us."""
        data = b""
        while True:
            for body in self._frames.feed(data):
                return to_child(body)
            data = self._channel.recv(READ_BYTES)
            if not data:
                os._exit(0)

    def send(self, message: msgspec.Struct) -> None:
        data = framed(message)
        with self._sending:
            self._channel.sendall(data)

    def notify(self, kind: str, body: Any) -> None:
        """Let the worker know; nobody answers."""
        self.send(Notice(kind, body))

    def request(self, kind: str, body: Any) -> Any:
        """Have the worker do something; blocks until it has."""
        with self._asking:
            self._asked += 1
            self.send(Request(self._asked, kind, body))
            answer = self.receive()
        assert isinstance(answer, Reply)
        if answer.error is not None:
            refusal = LeaseLost if answer.code == LeaseLost.code else MainspringError
            raise refusal(answer.error, code=answer.code)
        return answer.body


def run_child(
    socket_to_worker: socket.socket, registry: Registry, close: Callable[[], Coroutine[Any, Any, None]]
) -> NoReturn:
    """All that a child does. `close` closes what the application has opened meanwhile."""
    channel = ChildChannel(socket_to_worker)
    start = channel.receive()
    assert isinstance(start, Start)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what was printed before a crash is seen
    IsolatedAttempt(channel, start, registry, close).run()
    os._exit(0)  # nothing of the application's is cleaned up: it was only borrowed from the zygote


class IsolatedAttempt:
    def __init__(
        self, channel: ChildChannel, start: Start, registry: Registry, close: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._channel = channel
        self._start = start
        self._handler = registry.find(start.job)
        self._environment = registry.environment
        self._close = close
        self._pid = os.getpid()
        self._sender = ReportSender(channel)
        self._context = Context(
            run_id=start.run_id,
            job=start.job,
            attempt=start.attempt,
            fence=start.fence,
            listener=self._sender,
            headers=start.headers,
            checkpointed=start.checkpointed,
            finisher=start.finishing,
            returns=self._handler.returns,
            tenant=DEFAULT_TENANT_NAME if start.tenant is None else start.tenant.name,
        )

    def run(self) -> None:
        CURRENT_ATTEMPT.set(ChildAttempt(self._channel, self._start.job, self._start.fan_out, self._start.tenant))
        with captured_here(self._sender, self._handler.capture_level):
            self._run()

    def _run(self) -> None:
        if self._handler.command is None:
            self._limit()
        signal.signal(signal.SIGTERM, lambda number, frame: self._context.request_cancel())
        if self._handler.command is None and (self._handler.is_async or not self._is_bare):
            run_in_loop(self._run_async())
        else:
            try:
                self._finish(self._call())
            except BaseException as error:  # whatever it is, it ends this attempt
                self._fail(error)

    @property
    def _is_bare(self) -> bool:
        """Whether nothing surrounds the handler: then one that is not async needs no event loop."""
        return self._environment.is_empty and not self._environment.has_hooks

    def _limit(self) -> None:
        if self._start.memory is not None:
            is_ours = self._handler.command is None  # a program begins with nothing, a handler with the application
            processes.limit_memory(self._start.memory, beyond_present=is_ours)
        if self._start.cpu is not None:
            processes.limit_cpu(self._start.cpu)

    def _call(self, surroundings: Surroundings = NOTHING) -> Any:
        positional, named = self._handler.arguments.decode(bytes(self._start.payload))
        if self._handler.command is not None:
            become(self._handler.command, named, self._limit)
        if self._handler.arguments.wants_context:
            positional = (self._context, *positional)
        if self._handler.arguments.injected:
            named |= surroundings.given(self._handler.arguments.injected)
        return self._handler.function(*positional, **named)

    async def _run_async(self) -> None:
        task = asyncio.ensure_future(self._await_handler())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop, task)
        if self._context.is_cancelled:  # told before this loop could hear it
            self._stop(task)
        await asyncio.wait([task])
        await self._close()

    async def _await_handler(self) -> None:
        try:
            self._finish(await self._call_within())
        except BaseException as error:
            self._fail(error)

    async def _call_within(self) -> Any:
        if self._is_bare:
            return await self._call()
        return await self._environment.around_one(self._handler.arguments.injected.values(), self._call_through)

    async def _call_through(self, surroundings: Surroundings) -> Any:
        call = partial(self._call, surroundings)
        return await surroundings.around(
            self._context, call if self._handler.is_async else partial(asyncio.to_thread, call_carrying, call)
        )

    def _stop(self, task: asyncio.Future[None]) -> None:
        self._context.request_cancel()
        if self._handler.is_async:
            task.cancel()

    # ── how it ended ────────────────────────────────────────────────────────────────────────────────────────

    def _finish(self, result: Any) -> None:
        if isinstance(result, Steering):
            self._fail(result)
            return
        try:
            data = self._handler.returns.encode(result)
        except InvalidInput as error:
            self._fail(error, is_hopeless=True)
        else:
            self._send_final(Done(None if data is None else msgspec.Raw(data)))

    def _fail(self, error: BaseException, *, is_hopeless: bool = False) -> None:
        error = unpacked(error)
        is_hopeless = is_hopeless or isinstance(error, HOPELESS)
        is_cancelled = self._context.is_cancelled and isinstance(error, (asyncio.CancelledError, RunCancelled))
        self._send_final(self._failure(error, is_cancelled=is_cancelled, is_hopeless=is_hopeless))

    def _failure(self, error: BaseException, **flags: bool) -> Failed:
        if isinstance(error, MemoryError) and self._start.memory is not None:
            error = _out_of_memory(error, self._start.memory)
        return Failed(
            names=[_name(kind) for kind in type(error).__mro__],
            message=printable(message_of(error), MAX_ERROR_LENGTH),
            traceback=printable(traceback_of(error)[-MAX_TRACEBACK_LENGTH:], MAX_TRACEBACK_LENGTH),
            code=error.code if isinstance(error, MainspringError) else None,
            steering=error.as_document() if isinstance(error, Steering) else None,
            **flags,
        )

    def _send_final(self, message: Done | Failed) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # the handler forked, and both returned: only one of them speaks for the run
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # whatever the handler made of it
                stream.flush()
        self._channel.send(message)


def _out_of_memory(error: BaseException, limit: int) -> OutOfMemory:
    wrapped = OutOfMemory(
        f"The run needed more than its {readable_size(limit)} of memory.", hint="Raise its limit: memory=…."
    )
    wrapped.__cause__ = error
    return wrapped.with_traceback(error.__traceback__)


def _name(kind: type) -> tuple[str, str]:
    return printable(kind.__module__, 200), printable(kind.__qualname__, 200)
