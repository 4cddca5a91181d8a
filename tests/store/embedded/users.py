"""Other processes that use the embedded server, and what tests do to processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("user_program.py")


class UserProcess:
    """A process of its own, told what to do. `ask` waits for the answer; `tell` and `hear` are its halves."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def tell(self, verb: str, **arguments: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"verb": verb, "arguments": arguments}) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, verb: str, **arguments: object) -> Any:
        self.tell(verb, **arguments)
        answer = self.hear()
        assert "error" not in answer, answer["message"]
        return answer["result"]

    def acquire(self, directory: Path, **options: object) -> int:
        """The process id of the server this process now uses."""
        pid: int = self.ask("acquire", directory=str(directory), unsafe_for_tests=True, **options)["pid"]
        return pid

    def exit(self) -> int:
        """End it in the ordinary way: its input ends, and it leaves main()."""
        self._close()
        return self.process.wait(30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def interrupt_group(self) -> int:
        """What a terminal does on Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)
        status = self.process.wait(30)
        self._close()
        return status

    def _close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        if self.process.poll() is not None or self.process.wait(30) is not None:
            self.process.stdout.close()


async def query(dsn: str, statement: str) -> Any:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def has_ended(pid: int) -> bool:
    """True as soon as the system has also tidied up after the process."""
    return eventually(lambda: not is_alive(pid))


def processes_naming(text: str) -> Iterator[int]:
    """The processes with this text in their command line, other than ourselves."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if os.fsencode(text) in line and int(folder.name) != os.getpid():
                yield int(folder.name)


def family_of(postmaster: int) -> list[int]:
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *(int(pid) for pid in children.split())]


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not any(is_alive(pid) for pid in pids))
