"""The zygote: forks a child whenever the worker asks for one, tells when one is gone, kills, and leaves nothing behind.

It and the worker exchange messages of a fixed size over a socket; with each fork travel the worker's ends of the
child's socket and of its two output pipes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
import traceback
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from mainspring.worker.isolation import processes

if TYPE_CHECKING:
    from collections.abc import Callable

# Asked by the worker …
FORK, STOP, KILL = b"f", b"s", b"k"
# … and told by the zygote.
FORKED, FORK_FAILED, EXITED = b"b", b"n", b"g"

END_SECONDS = 5
FDS_PER_CHILD = 3  # socket, stdout, stderr

_MESSAGE = struct.Struct("!cii")
MESSAGE_BYTES = _MESSAGE.size


class ControlMessage(NamedTuple):
    """`pid` is a count for FORK and an errno for FORK_FAILED; `status` is what waitpid said, for EXITED."""

    what: bytes
    pid: int
    status: int = 0

    def packed(self) -> bytes:
        return _MESSAGE.pack(*self)

    @classmethod
    def unpacked(cls, data: bytes) -> ControlMessage:
        return cls(*_MESSAGE.unpack(data))


class Zygote:
    """`run_child` is what a child does with its socket; it never returns."""

    def __init__(self, control: socket.socket, run_child: Callable[[socket.socket], NoReturn]) -> None:
        self._control = control
        self._run_child = run_child
        self._children: set[int] = set()
        self._others = set(processes.children_of(os.getpid()))  # started while the application was imported
        self._is_ending = False

    def run(self) -> None:
        """Until the worker is gone."""
        waker, wakened = socket.socketpair()
        waker.setblocking(False)
        wakened.setblocking(False)
        self._listen_to_signals(waker)
        processes.adopt_orphans()
        gc.collect()
        gc.freeze()  # what is there now is never looked at again, so that forks go on sharing its pages
        while not self._is_ending:
            readable, _, _ = select.select([self._control, wakened], [], [])
            if wakened in readable:
                with contextlib.suppress(BlockingIOError):
                    wakened.recv(4096)
            if self._control in readable:
                self._act_on()
            self._reap()
        self._end()

    def _listen_to_signals(self, waker: socket.socket) -> None:
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._asked_to_end)
        parent = os.getppid()
        processes.die_with_parent(signal.SIGTERM)
        self._is_ending = os.getppid() != parent

    def _asked_to_end(self, number: int, frame: object) -> None:
        self._is_ending = True

    def _act_on(self) -> None:
        try:
            data = self._control.recv(MESSAGE_BYTES)
        except OSError:
            data = b""
        if len(data) < MESSAGE_BYTES:
            self._is_ending = True
            return
        what, pid, _ = ControlMessage.unpacked(data)
        if what == FORK:
            for _ in range(pid):
                self._fork()
        elif pid in self._children:  # anyone else is gone, and the number may be somebody else's by now
            if what == KILL:
                processes.kill_family(pid)
            else:
                processes.send_to_group(pid, signal.SIGTERM)

    # ── forking ─────────────────────────────────────────────────────────────────────────────────────────────

    def _fork(self) -> None:
        try:
            fds = ChildPipes.made()
            pid = self._fork_with(fds)
        except OSError as error:  # too many processes or files: the worker asks again after a while
            self._say(ControlMessage(FORK_FAILED, error.errno or 0))
            return
        self._children.add(pid)
        with contextlib.suppress(OSError):  # the worker is gone; the next look at its socket says so
            socket.send_fds(self._control, [ControlMessage(FORKED, pid).packed()], fds.of_worker)
        fds.close()

    def _fork_with(self, fds: ChildPipes) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            fds.close()
            raise
        if pid == 0:
            try:
                self._control.close()
                self._run_child(_set_up_child(parent, fds))
            except BaseException:
                traceback.print_exc()  # through the child's own pipe: the worker may want to know
            finally:
                os._exit(1)  # whatever happens, a child never goes on as a zygote
        return pid

    def _say(self, message: ControlMessage) -> None:
        with contextlib.suppress(OSError):
            self._control.send(message.packed())

    # ── reaping ─────────────────────────────────────────────────────────────────────────────────────────────

    def _reap(self) -> None:
        """Tell of every child that ended, then kill what it left behind."""
        ended = False
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                ended = True
                if pid in self._children:
                    self._children.discard(pid)
                    self._kill_orphans()
                    self._say(ControlMessage(EXITED, pid, status))
        if ended:
            self._kill_orphans()

    def _kill_orphans(self) -> None:
        """A living child adopts its own orphans: what comes to us belongs to one that is gone."""
        for pid in self._orphans():
            processes.kill_family(pid)

    def _orphans(self) -> set[int]:
        return set(processes.children_of(os.getpid())) - self._children - self._others

    def _end(self) -> None:
        """Leave nobody behind, as far as a few seconds and our rights allow."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(END_SECONDS)
        while self._children or self._orphans():
            for pid in self._children | self._orphans():
                processes.kill_family(pid)
            pid, _ = os.waitpid(-1, 0)
            self._children.discard(pid)


class ChildPipes(NamedTuple):
    """Both ends of a child's socket and of its two output pipes."""

    socket_of_worker: int
    stdout_of_worker: int
    stderr_of_worker: int
    socket_of_child: int
    stdout_of_child: int
    stderr_of_child: int

    @classmethod
    def made(cls) -> ChildPipes:
        made: list[int] = []
        try:
            made += (each.detach() for each in socket.socketpair())
            made += os.pipe()
            made += os.pipe()
        except OSError:
            for fd in made:
                os.close(fd)
            raise
        return cls(made[0], made[2], made[4], made[1], made[3], made[5])

    @property
    def of_worker(self) -> list[int]:
        return list(self[:FDS_PER_CHILD])

    def close(self) -> None:
        for fd in self:
            os.close(fd)


def _set_up_child(parent: int, fds: ChildPipes) -> socket.socket:
    """What every child does first: a session of its own, its own output, and dependence on the zygote."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    processes.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    processes.adopt_orphans()
    processes.leave_no_core()
    processes.volunteer_for_the_oom_killer()
    _forget_inherited_chance()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((nothing, 0), (fds.stdout_of_child, 1), (fds.stderr_of_child, 2)):
        os.dup2(fd, target)
    for fd in (nothing, *fds.of_worker, fds.stdout_of_child, fds.stderr_of_child):
        os.close(fd)
    return socket.socket(fileno=fds.socket_of_child)


def _forget_inherited_chance() -> None:
    """Python seeds its generator anew after a fork; numpy does not, and all runs would draw the same numbers."""
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()
