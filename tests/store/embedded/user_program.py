"""A process that uses the embedded server as it is told, in JSON: a request per line in, an answer out.

Started by `users.UserProcess`, never imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import asyncpg

from mainspring.errors import MainspringError
from mainspring.store.embedded import EmbeddedServer


class User:
    server: EmbeddedServer

    def acquire(self, directory: str, **options: Any) -> dict[str, object]:
        self.server = EmbeddedServer.acquire(Path(directory), **options)
        return {"pid": self.server.pid, "dsn": self.server.dsn}

    def query(self, statement: str) -> object:
        return asyncio.run(query(self.server.dsn, statement))

    def ensure_running(self) -> int:
        self.server.ensure_running()
        return self.server.pid

    def release(self) -> None:
        self.server.release()

    def release_in_a_forked_child(self) -> int:
        child = os.fork()
        if child == 0:
            self.server.release()
            sys.exit(0)  # runs atexit in the child, as a careless program would
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def fork_and_linger(self) -> int:
        listening, speaking = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(speaking, b"here")
            signal.pause()
        os.read(listening, 4)
        return child

    def hammer(self, directory: str, rounds: int) -> int:
        answers = 0
        for _ in range(rounds):
            with EmbeddedServer.acquire(Path(directory), unsafe_for_tests=True) as server:
                answers += asyncio.run(query(server.dsn, "select 1"))
        return answers

    def become(self, uid: int) -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)


async def query(dsn: str, statement: str) -> Any:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def answer(user: User, request: dict[str, Any]) -> dict[str, object]:
    try:
        return {"result": getattr(user, request["verb"])(**request["arguments"])}
    except MainspringError as error:
        return {"error": error.code, "message": str(error)}


def main() -> None:
    user = User()
    for line in sys.stdin:
        print(json.dumps(answer(user, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
