"""Where one peer performs once: its server, empty, with its tables made, and its own books of what is unfinished."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import asyncpg

from benchmarks.harness import empty_database
from benchmarks.peers.peer import Keeps, PeerFailed
from benchmarks.peers.programs.counting import FOLDER_VARIABLE
from benchmarks.peers.valkey import Valkey
from benchmarks.processes import Process, Submitting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from benchmarks.peers.environments import Environment
    from benchmarks.peers.peer import Peer
    from mainspring.store.embedded import EmbeddedServer

STOP_PATIENCE = 1.0  # nothing is left to do, and everything it kept is thrown away


@dataclass(frozen=True, kw_only=True)
class Stage:
    peer: Peer
    environment: Environment
    variables: dict[str, str]
    folder: Path  # of the counts
    log: IO[str]
    remaining: Callable[[], Awaitable[int]]

    def submitting(self, count: int, warm_up: int) -> Submitting:
        return Submitting(
            self.peer.submitting(count, warm_up),
            self.variables,
            folder=self.environment.folder,
            log=self.log,
            is_talkative=True,
        )

    def process(self, command: tuple[str, ...]) -> Process:
        return Process(command, self.variables, folder=self.environment.folder, log=self.log, patience=STOP_PATIENCE)

    def executed(self) -> list[int]:
        """How many jobs each worker process has executed so far."""
        return [int.from_bytes(path.read_bytes(), "little") for path in self.folder.iterdir()]

    def last_words(self) -> str:
        """The end of what its programs said, for people who wonder why they stopped."""
        return "\n".join(Path(self.log.name).read_text(errors="replace").splitlines()[-12:])


@asynccontextmanager
async def stage_of(peer: Peer, environment: Environment, server: EmbeddedServer) -> AsyncIterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="peers-"))
    counts = folder / "counts"
    counts.mkdir()
    keeping = _in_postgresql if peer.keeps is Keeps.POSTGRESQL else _in_valkey
    try:
        with (folder / "log").open("w") as log:
            async with keeping(peer, server, folder) as (places, remaining):
                variables = {**environment.variables, **places, **peer.variables, FOLDER_VARIABLE: str(counts)}
                stage = Stage(
                    peer=peer,
                    environment=environment,
                    variables=variables,
                    folder=counts,
                    log=log,
                    remaining=remaining,
                )
                await _install(stage)
                yield stage
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _install(stage: Stage) -> None:
    if stage.peer.install:
        installing = stage.process(stage.peer.install).process
        if await asyncio.to_thread(installing.wait):
            raise PeerFailed(f"could not make its tables:\n{stage.last_words()}")


Kept = tuple[dict[str, str], "Callable[[], Awaitable[int]]"]


@asynccontextmanager
async def _in_postgresql(peer: Peer, server: EmbeddedServer, folder: Path) -> AsyncIterator[Kept]:
    """A database of its own, after a checkpoint, so that nobody pays for what others wrote."""
    url = await empty_database(server, "peer")
    connection = await asyncpg.connect(url, server_settings={"application_name": "benchmark"})
    await connection.execute("checkpoint")

    async def remaining() -> int:
        return int(await connection.fetchval(peer.remaining[0]))

    parts = urlsplit(url)
    query = parse_qs(parts.query)
    places = {
        "MAINSPRING_DATABASE_URL": url,
        "DATABASE_URL": url,
        "PGHOST": query["host"][0],
        "PGPORT": query["port"][0],
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path.removeprefix("/"),
    }
    try:
        yield places, remaining
    finally:
        await connection.close()


@asynccontextmanager
async def _in_valkey(peer: Peer, server: EmbeddedServer, folder: Path) -> AsyncIterator[Kept]:
    async with Valkey.started(folder) as valkey:

        async def remaining() -> int:
            return sum([await valkey.ask(command) for command in peer.remaining])

        yield {"VALKEY_URL": valkey.url}, remaining
