"""One child as its worker sees it: told what to run, and listened to until its final message or its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any, Protocol

from mainspring.errors import BadFrame, MainspringError
from mainspring.model.payload import printable
from mainspring.worker.isolation.wire import Done, Failed, Frames, Notice, Reply, Request, framed, from_child

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.worker.isolation.wire import Start

READ_BYTES = 65_536
MAX_READS = 16  # of one pipe before the others have a turn
KEPT_OUTPUT = 16_384  # of each stream: the end of what was printed


class MessageReceiver(Protocol):
    """What becomes of what the child of one run says and prints."""

    def on_notice(self, kind: str, body: Any) -> None: ...

    async def on_request(self, kind: str, body: Any) -> Any: ...

    def on_output(self, stream: str, data: bytes) -> None: ...


class NoReceiver:
    """Nobody listens: what is asked for cannot be done."""

    def on_notice(self, kind: str, body: Any) -> None: ...

    async def on_request(self, kind: str, body: Any) -> Any:
        raise MainspringError(f"This worker does not know how to do {kind!r}.", code="not-done")

    def on_output(self, stream: str, data: bytes) -> None: ...


class IsolatedProcess:
    """`status` is what the kernel said when the child ended; None as long as it lives, or if nobody knows."""

    def __init__(self, pid: int, fds: Sequence[int]) -> None:
        self.pid = pid
        self.status: int | None = None
        self.is_gone = False
        self.is_asked_to_stop = False  # to stop
        self.is_killed = False
        self.fault: BadFrame | None = None  # it said what is not in the protocol
        self.tails = {"stdout": bytearray(), "stderr": bytearray()}
        self._channel = socket.socket(fileno=fds[0])
        self._channel.setblocking(False)
        self._pipes = {"stdout": fds[1], "stderr": fds[2]}
        for fd in self._pipes.values():
            os.set_blocking(fd, False)
        self._frames = Frames()
        self._receiver: MessageReceiver = NoReceiver()
        self._final: asyncio.Future[Done | Failed | None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def execute(self, start: Start, receiver: MessageReceiver) -> Done | Failed | None:
        """Have the child run something; answers with its final message, or None if it ended without one."""
        loop = asyncio.get_running_loop()
        self._receiver = receiver
        self._final = loop.create_future()
        loop.add_reader(self._channel.fileno(), self._receive)
        for stream, fd in self._pipes.items():
            loop.add_reader(fd, self._read_output, stream)
        try:
            with contextlib.suppress(OSError):  # it is gone already, and that will be told
                await loop.sock_sendall(self._channel, framed(start))
            if self.is_gone:
                self.ended(self.status)
            return await self._final
        finally:
            self.close()

    # ── listening ───────────────────────────────────────────────────────────────────────────────────────────

    def _receive(self) -> bool:
        """Act on what has arrived; answers whether there may be more."""
        try:
            data = self._channel.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:  # it closed its end, as a program does that became another one; its exit is still to come
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            return False
        try:
            for body in self._frames.feed(data):
                self._act_on(from_child(body))
        except BadFrame as error:
            self.fault = error
            self._settle(None)
        return True

    def _act_on(self, message: Notice | Request | Done | Failed) -> None:
        if isinstance(message, Notice):
            self._receiver.on_notice(message.kind, message.body)
        elif isinstance(message, Request):
            answering = asyncio.get_running_loop().create_task(self._answer(message))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)
        else:
            self._settle(message)

    async def _answer(self, question: Request) -> None:
        try:
            answer = Reply(question.number, body=await self._receiver.on_request(question.kind, question.body))
        except MainspringError as error:
            answer = Reply(question.number, error=str(error), code=error.code)
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._channel, framed(answer))

    def _read_output(self, stream: str) -> None:
        """Whoever prints never waits for us, and we keep only so much of it."""
        for _ in range(MAX_READS):
            try:
                data = os.read(self._pipes[stream], READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                asyncio.get_running_loop().remove_reader(self._pipes[stream])
                return
            tail = self.tails[stream]
            tail += data
            del tail[:-KEPT_OUTPUT]
            self._receiver.on_output(stream, data)

    def last_output(self) -> str:
        """Of a child that ended before anybody listened: the end of what it printed."""
        for stream in self._pipes:
            self._read_output(stream)
        return printable(self.tail.decode(errors="replace").strip(), KEPT_OUTPUT)

    @property
    def tail(self) -> bytes:
        """The end of what it printed: of its complaints, if there were any."""
        return bytes(self.tails["stderr"] or self.tails["stdout"])

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────

    def ended(self, status: int | None) -> None:
        """The kernel says that it is gone. What it said before may still be on its way through the socket."""
        self.is_gone, self.status = True, status
        while self._final is not None and not self._final.done():
            if not self._receive():
                self._settle(None)

    def give_up(self) -> None:
        """It was killed, and nobody confirms that it is gone."""
        self._settle(None)

    def _settle(self, word: Done | Failed | None) -> None:
        if self._final is not None and not self._final.done():
            for stream in self._pipes:
                self._read_output(stream)
            self._final.set_result(word)

    def close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        loop = asyncio.get_running_loop()
        for fd in (self._channel.fileno(), *self._pipes.values()):
            loop.remove_reader(fd)
        for answering in self._answering:
            answering.cancel()
        self._channel.close()
        for fd in self._pipes.values():
            os.close(fd)
