"""Starts supervised workers quickly: an interpreter that has imported everything forks for each supervisor.

Importing takes most of the time until a supervisor starts its first process, and the fault tests start hundreds. What
is forked is a process of its own, with the environment it is given; so are the worker processes that it starts
(`forked_programs.py`).

As a program (`python -m tests.system.worker_server FD`) it is the server; orders come over that socket. Whoever waits
for a supervisor is a process of its own, too: it says the exit status before it lets the kernel forget the process, so
that nobody asks about a process id that belongs to nobody, or to somebody else.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import msgspec
import uvloop
from tests.system import sabotage
from tests.system.forked_programs import begin_programs_by_a_fork

from mainspring import wiring
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
LARGEST = 1 << 20
STREAMS = (0, 1, 2)


class Order(NamedTuple):
    """A supervisor to start: of which application, with which settings in JSON, and in which environment."""

    app: str
    settings: str
    environment: dict[str, str]


class Supervisor:
    """A supervisor that was started, as `subprocess.Popen` would show it."""

    def __init__(self, news: socket.socket) -> None:
        self._news = news
        self.pid = int(news.recv(16))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._news.settimeout(timeout)
            self.returncode = int(self._news.recv(16))
            self._news.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WorkerServer:
    """The server of this test process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.system.worker_server", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.stop)

    def start(self, order: Order) -> Supervisor:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._socket, [msgspec.json.encode(order)], [theirs.fileno(), *STREAMS])
        return Supervisor(ours)

    def stop(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def worker_server() -> WorkerServer:
    return WorkerServer()


def start_supervisor(app: str, settings: str, environment: Mapping[str, str]) -> Supervisor:
    return worker_server().start(Order(app, settings, dict(environment)))


# ── the server ──────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(orders: socket.socket) -> None:
    """Fork for each order, until nobody is there to give orders."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries those who watched
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, LARGEST, 1 + len(STREAMS))
        if not order:
            return
        if os.fork() == 0:
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(msgspec.json.decode(order, type=Order), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def watch(order: Order, descriptors: Sequence[int]) -> NoReturn:
    """Fork the supervisor; say which process it is, and how it ended."""
    news = socket.socket(fileno=descriptors[0])
    pid = os.fork()
    if pid == 0:
        news.close()
        become(order, descriptors[1:])
    news.send(str(pid).encode())
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    news.send(str(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status).encode())
    os.waitpid(pid, 0)
    os._exit(0)


def become(order: Order, streams: Sequence[int]) -> NoReturn:
    """Be the supervisor, in a process that was forked for it."""
    for number, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(order.environment)
    sabotage.apply()
    begin_programs_by_a_fork()
    settings = msgspec.json.decode(order.settings, type=WorkerSettings)
    sys.exit(uvloop.run(wiring.supervise(wiring.DatabaseLocation.chosen(), order.app, settings)))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
