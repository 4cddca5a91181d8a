"""A worker process as its supervisor sees it: started, polled, and reached over a socket of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from mainspring.clock import Clock

log = structlog.get_logger()

# What is said over the socket, one word a line. The child says READY once its worker is registered, and LIMIT with an
# instant of the monotonic clock, which it shares with us: if it says nothing newer until then, its loop is blocked.
# DEPARTED is said before the worker's row says that it has stopped: from then on nobody expects heartbeats of it.
READY, LIMIT, DEPARTED = b"ready\n", b"limit ", b"departed\n"
HEARTBEAT, LOST, DRAIN, HURRY = b"heartbeat\n", b"lost\n", b"drain\n", b"hurry\n"

# How a child may end.
EXIT_DRAINED = 0
EXIT_LOST = 75  # declared lost: begin anew at once
EXIT_WORN = 76  # drained because handlers that would not stop hold too many slots: begin anew at once
EXIT_MISCONFIGURED = 78  # would fail the same way again


class ProcessCommand(NamedTuple):
    """How to start a process: its arguments and its environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


class SupervisedProcess:
    """A child process. Its stops and ends are read with waitpid: a frozen child gets no heartbeats."""

    def __init__(
        self, worker_id: UUID, command: Callable[[UUID, int], ProcessCommand], clock: Clock, drain_seconds: float
    ) -> None:
        self.worker_id = worker_id
        self.started_at = clock.monotonic()
        self._clock = clock
        self._drain_seconds = drain_seconds
        self.is_ready = False
        self.is_frozen = False
        self.is_told_lost = False
        self.has_departed = False
        self.is_draining = False  # asked to drain, not to be replaced
        self.kill_at = float("inf")
        self.hard_limit = float("inf")  # of what it executes, as it said last
        self._overdue_looks = 0
        self._heard = b""
        self.exit_code: int | None = None
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        arguments, environment = command(worker_id, theirs.fileno())
        # A session of its own: Ctrl-C goes to the supervisor, which lets its children finish.
        self._process = subprocess.Popen(arguments, env=environment, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_to_have_heartbeats(self) -> bool:
        return self.is_ready and not self.is_frozen and not self.has_departed and self.exit_code is None

    def poll(self) -> None:
        """Learn whether the child is ready, stopped, going on, or gone."""
        self._receive()
        while self.exit_code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                pid, status = self.pid, 0
            if pid == 0:
                return
            self._note_status(status)

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            while said := self._channel.recv(4096):
                *lines, self._heard = (self._heard + said).split(b"\n")
                for line in lines:
                    self._act_on(line + b"\n")

    def _act_on(self, word: bytes) -> None:
        if word == READY:
            self.is_ready = True
        elif word == DEPARTED:
            self.has_departed = True
        elif word.startswith(LIMIT):
            self.hard_limit = float(word.removeprefix(LIMIT))

    def is_stuck(self, now: float, looks: int) -> bool:
        """Whether the child has been past its hard limit for so many looks: it had its chance to say that it is not.

        Looks are counted, not time: after all of us were stopped for a while, the child needs a moment as well.
        """
        self._overdue_looks = self._overdue_looks + 1 if now > self.hard_limit and not self.is_frozen else 0
        return self._overdue_looks > looks

    def _note_status(self, status: int) -> None:
        if os.WIFSTOPPED(status):
            self.is_frozen = True
        elif os.WIFCONTINUED(status):
            self.is_frozen = False
        else:
            self.exit_code = os.waitstatus_to_exitcode(status)
            self._process.returncode = self.exit_code  # it was reaped here, not by Popen
            self._channel.close()

    def send(self, word: bytes) -> None:
        """Tell the child something; one that does not listen any more need not hear it."""
        with contextlib.suppress(OSError):
            self._channel.send(word)

    def heartbeat_arrived(self) -> None:
        self.send(HEARTBEAT)

    def drain(self) -> None:
        """Let it finish and end, for good; it has so long for it before it is to be killed."""
        if not self.is_draining:
            self.is_draining = True
            self.kill_at = self._clock.monotonic() + self._drain_seconds
            self.send(DRAIN)

    def declared_lost(self) -> None:
        self._receive()  # a heartbeat may have been under way when it departed, which is no loss
        if not self.is_told_lost and not self.has_departed:
            self.is_told_lost = True
            log.warning("a worker was declared lost and begins anew", worker=str(self.worker_id))
            self.send(LOST)

    def kill(self) -> None:
        """End the child and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
