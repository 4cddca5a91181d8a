"""Starts `mainspring` commands quickly: an interpreter that has imported everything forks for each command.

Importing takes most of the time of a short command, and the tests start hundreds. What is forked is a process of its
own: its arguments, environment, folder, standard streams and exit code are those of a command that a shell starts. How
the program itself begins, and ends in its first moments, is tested without this.

As a program (`python -m tests.system.command_server FD`) it is the server; commands come over that socket, one by one.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from mainspring import cli
from mainspring.cli import __main__ as program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
LARGEST = 1 << 20


class Order(NamedTuple):
    """A command to run: the words after `mainspring`, its folder and its environment."""

    words: list[str]
    cwd: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.err.splitlines()[-1])["error"]
        return error


class CommandServer:
    """The server of this test process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.system.command_server", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.stop)

    def run(self, order: Order, streams: Sequence[int], timeout: float) -> int:
        """Run a command with these standard streams; answers with its exit code."""
        self.start(order, streams)
        return self.wait(timeout)

    def start(self, order: Order, streams: Sequence[int]) -> None:
        socket.send_fds(self._socket, [json.dumps(order).encode()], list(streams))

    def wait(self, timeout: float) -> int:
        self._socket.settimeout(timeout)
        try:
            return int(self._socket.recv(16))
        except TimeoutError:
            os.killpg(self._process.pid, signal.SIGKILL)
            command_server.cache_clear()
            raise

    def stop(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def command_server() -> CommandServer:
    return CommandServer()


def run_command(words: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float) -> Answer:
    """Run one command that reads nothing, and wait for its end."""
    order = Order(list(words), str(cwd), dict(environment))
    with TemporaryFile() as out, TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        code = command_server().run(order, [nothing.fileno(), out.fileno(), err.fileno()], timeout)
        return Answer(code, _written(out), _written(err))


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def serve(commands: socket.socket) -> None:
    """Fork for each order, and answer with how it ended; until nobody is there to give orders."""
    import_all()
    while True:
        order, streams, _, _ = socket.recv_fds(commands, LARGEST, 3)
        if not order:
            return
        child = os.fork()
        if child == 0:
            commands.close()
            become(Order(*json.loads(order)), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        commands.send(str(os.waitstatus_to_exitcode(status)).encode())


def import_all() -> None:
    for module in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):
        importlib.import_module(module.name)


def become(order: Order, streams: Sequence[int]) -> NoReturn:
    """Be the command, in a process that was forked for it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), max(streams) + 1)
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.cwd)
    sys.argv = ["mainspring", *order.words]
    sys.path[0] = order.cwd  # as with `python -m`
    code: object = None
    try:
        program.main()
    except SystemExit as leaving:
        code = leaving.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
