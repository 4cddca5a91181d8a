"""Starts a zygote and keeps a few children in stock, so that an isolated run begins without waiting for a fork."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
from collections import deque
from typing import TYPE_CHECKING

import structlog

from mainspring.worker.isolation import processes, zygote
from mainspring.worker.isolation.process import IsolatedProcess
from mainspring.worker.isolation.zygote import FDS_PER_CHILD, MESSAGE_BYTES, ControlMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.worker.supervised import ProcessCommand

log = structlog.get_logger()

STOCK = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
END_SECONDS = zygote.END_SECONDS + 1.0
KILL_SECONDS = 5.0  # how long a kill may take before we go on without its confirmation
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class ChildPool:
    """`command` says how to start a zygote that speaks over the given file descriptor."""

    def __init__(self, command: Callable[[int], ProcessCommand], *, stock: int = STOCK) -> None:
        self._command = command
        self._stock = stock
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent: deque[bytes] = deque()
        self._idle: deque[IsolatedProcess] = deque()
        self._alive: dict[int, IsolatedProcess] = {}
        self._waiting: deque[asyncio.Future[IsolatedProcess]] = deque()
        self._asked = 0
        self._pause = FIRST_PAUSE
        self._starting: asyncio.TimerHandle | None = None
        self._is_closed = False

    # ── children ────────────────────────────────────────────────────────────────────────────────────────────

    async def take(self) -> IsolatedProcess:
        """A child that has nothing to do yet."""
        self.start()
        self._pause = FIRST_PAUSE
        if self._idle:
            child = self._idle.popleft()
            self._restock()
            return child
        waiting: asyncio.Future[IsolatedProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._restock()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._give(waiting.result())
            raise

    def tell(self, child: IsolatedProcess) -> None:
        """Request it, and whatever is in its process group, to stop."""
        child.is_asked_to_stop = True
        self._send(ControlMessage(zygote.STOP, child.pid))

    def kill(self, child: IsolatedProcess) -> None:
        """End it with all its descendants."""
        child.is_killed = True
        self._send(ControlMessage(zygote.KILL, child.pid))
        asyncio.get_running_loop().call_later(KILL_SECONDS, child.give_up)

    def release(self, child: IsolatedProcess) -> None:
        """It has sent its final message: nothing of it should be there much longer."""
        if not child.is_gone and not child.is_killed:
            asyncio.get_running_loop().call_later(KILL_SECONDS, self._kill_if_there, child)

    def _kill_if_there(self, child: IsolatedProcess) -> None:
        if self._alive.get(child.pid) is child:
            self.kill(child)

    def _give(self, child: IsolatedProcess) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(child)
                return
        self._idle.append(child)

    def _restock(self) -> None:
        """Request for as many children as are wanted and not on their way."""
        waiting = sum(not each.done() for each in self._waiting)
        missing = self._stock + waiting - len(self._idle) - self._asked
        if missing > 0 and self._control is not None:
            self._asked += missing
            self._send(ControlMessage(zygote.FORK, missing))

    def _restock_later(self) -> None:
        asyncio.get_running_loop().call_later(self._pause, self._restock)
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    # ── the zygote ──────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start a zygote unless there is one. To be called from the main thread: if that ends, the zygote does."""
        if self._control is not None or self._is_closed:
            return
        for shortcoming in processes.shortcomings():
            log.warning("this system isolates less than it should", because=shortcoming)
        try:
            self._control, self._process = self._spawn()
        except OSError as error:  # too many processes or files
            log.error("the process that starts isolated runs could not be started", because=str(error))
            self._start_later()
            return
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._receive)
        self._restock()

    def _spawn(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as failing:
            failing.callback(ours.close)
            arguments, environment = self._command(theirs.fileno())
            process = subprocess.Popen(arguments, env=environment, pass_fds=[theirs.fileno()], start_new_session=True)
            failing.pop_all()
        return ours, process

    def _start_later(self) -> None:
        if self._starting is not None:
            self._starting.cancel()  # of many that wait for a child, each would begin to try by itself
        self._starting = asyncio.get_running_loop().call_later(self._pause, self.start)
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def _send(self, message: ControlMessage) -> None:
        self._unsent.append(message.packed())
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """A zygote that is stopped for a while loses no word of ours."""
        if self._control is None:
            self._unsent.clear()
            return
        loop = asyncio.get_running_loop()
        try:
            while self._unsent:
                self._control.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            loop.add_writer(self._control.fileno(), self._flush)
            return
        except OSError:
            self._unsent.clear()  # it is gone, and we shall hear of it
        loop.remove_writer(self._control.fileno())

    def _receive(self) -> None:
        while self._control is not None:
            try:
                data, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, FDS_PER_CHILD, _CLOSE_ON_EXEC)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if len(data) < MESSAGE_BYTES:
                self._zygote_ended()
                return
            self._act_on(ControlMessage.unpacked(data), fds)

    def _act_on(self, message: ControlMessage, fds: list[int]) -> None:
        if message.what == zygote.EXITED:
            self._child_exited(message.pid, message.status)
            return
        self._asked -= 1
        if message.what == zygote.FORKED and len(fds) == FDS_PER_CHILD:
            child = self._alive[message.pid] = IsolatedProcess(message.pid, fds)
            self._give(child)
        else:
            self._fork_failed(message, fds)

    def _fork_failed(self, message: ControlMessage, fds: list[int]) -> None:
        """The zygote could not make a child, or we have no room for its files: then it sees us gone, and ends."""
        for fd in fds:
            os.close(fd)
        because = os.strerror(errno.EMFILE if message.what == zygote.FORKED else message.pid)
        log.warning("an isolated process could not be started", because=because)
        self._restock_later()

    def _child_exited(self, pid: int, status: int | None) -> None:
        child = self._alive.pop(pid, None)
        if child is None:
            return
        if child in self._idle:  # it had done nothing yet: is something wrong with all of them?
            self._idle.remove(child)
            log.warning("an isolated process ended before it was needed", status=status, said=child.last_output())
            child.close()
            self._restock_later()
        child.ended(status)

    def _zygote_ended(self) -> None:
        """Its children are gone with it. Another one is started after a while."""
        assert self._control is not None
        asyncio.get_running_loop().remove_reader(self._control.fileno())
        self._control.close()
        self._control = None
        self._unsent.clear()
        self._asked = 0
        code = self._reaped()
        log.error("the process that starts isolated runs ended", exit_code=code)
        for pid in list(self._alive):
            processes.send_to_group(pid, signal.SIGKILL)  # the kernel killed the child, not what it had started
            self._child_exited(pid, None)
        self._start_later()

    def _reaped(self) -> int | None:
        assert self._process is not None
        try:
            return self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """The zygote sees us go, and leaves nobody behind."""
        self._is_closed = True
        if self._control is None:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._control.fileno())
        loop.remove_writer(self._control.fileno())
        self._control.close()
        self._control = None
        for child in self._idle:
            child.close()
        self._idle.clear()
        with contextlib.suppress(ProcessLookupError):
            self._reaped()
