"""A backup is restored while the world has moved on: `mainspring restored`, and what happens without it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from tests.waiting import PATIENCE

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME
from .test_cli import mainspring, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from mainspring.store.embedded import EmbeddedServer

    from .machinery import System

REASON = ("--reason", "a test")


class Backups:
    """Makes backups of a database, and new databases of backups."""

    def __init__(self, server: EmbeddedServer, folder: Path) -> None:
        self._server = server
        self._dump = folder / "backup"
        self._made: list[str] = []

    def _run(self, program: str, *words: str) -> None:
        subprocess.run([self._server.binaries.folder / program, *words], check=True, timeout=PATIENCE)

    def take(self, url: str) -> None:
        self._run("pg_dump", "--format=custom", f"--file={self._dump}", url)

    async def restore(self) -> str:
        """The URL of a database that is as the backup was."""
        self._made.append(f"restored_{uuid4().hex[:12]}")
        await self._administer(f"create database {self._made[-1]}")
        url = self._server.dsn_for(self._made[-1])
        self._run("pg_restore", "--exit-on-error", f"--dbname={url}", str(self._dump))
        return url

    async def remove(self) -> None:
        for name in self._made:
            await self._administer(f"drop database {name} with (force)")

    async def _administer(self, statement: str) -> None:
        admin = await asyncpg.connect(self._server.dsn)
        await admin.execute(statement)
        await admin.close()


@pytest.fixture
async def backups(server: EmbeddedServer, tmp_path: Path) -> AsyncIterator[Backups]:
    backups = Backups(server, tmp_path)
    yield backups
    await backups.remove()


async def restored_after_more_fences(system: System, jobs: Any, backups: Backups) -> tuple[str, set[UUID], int]:
    """A restored database, runs that a worker of its backup held, and the highest fence that was handed out since.

    Handlers say their fences to the database that was backed up: it stands for the world, which nobody restores.
    """
    victim = system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 5)
    assert await system.eventually(lambda: system.started(5))
    backups.take(system.url)
    victim.kill()
    other = system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.eventually(lambda: system.started(10))
    other.kill()
    await system.tell_them_to_go_on()
    return await backups.restore(), {handle.id for handle in handles}, max(f for _, f in await system.effects())


async def fences_of(system: System, url: str, runs: Iterable[UUID], already: int) -> list[int]:
    """The fences with which the handlers of these runs start on a restored database."""
    system.start(url=url, lease_time=SHORT_LEASE_TIME)
    assert await system.eventually(lambda: system.started(already + len(set(runs))))
    return [fence for run_id, fence in (await system.effects())[already:] if run_id in set(runs)]


@pytest.mark.invariant(4)
@pytest.mark.long
async def test_no_fence_is_handed_out_again_after_a_restore(system: System, jobs: Any, backups: Backups) -> None:
    url, runs, highest = await restored_after_more_fences(system, jobs, backups)
    already = len(await system.effects())

    answer = mainspring("restored", *REASON, "--yes", "--database-url", url, "-o", "json")

    assert (answer.code, answer.document["workers"], answer.document["rescued"]) == (0, 1, 5), answer
    fences = await fences_of(system, url, runs, already)
    assert (len(fences), min(fences) > highest) == (5, True)
    assert min(fences) == answer.document["fence"] + 1


@pytest.mark.long
async def test_without_it_fences_are_handed_out_again(system: System, jobs: Any, backups: Backups) -> None:
    """The control."""
    url, runs, highest = await restored_after_more_fences(system, jobs, backups)

    fences = await fences_of(system, url, runs, len(await system.effects()))

    assert (highest, fences) == (2, [2] * 5)


async def test_it_is_refused_while_workers_work_and_when_nobody_can_be_asked(system: System) -> None:
    system.start()
    assert await system.live_workers(1)
    options = ("restored", *REASON, "--database-url", system.url)

    assert refused(*options, "--yes")["code"] == "workers-alive"
    assert refused(*options)["code"] == "not-confirmed"
    assert await system.count("audit", "action like 'restore%'") == 0


async def test_it_says_what_it_will_do_and_what_it_did(url: str) -> None:
    options = ("restored", *REASON, "--database-url", url)

    planned = mainspring(*options, "--dry-run")
    done = mainspring(*options, "--yes")

    assert planned.out.splitlines() == [
        "0 workers listed as live: declared lost, unless they send a heartbeat",
        "0 runs held by workers: back in line, or lost if delivered at most once",
        "0 waiting runs: fences lifted above any that was handed out",
        "this installation: a new id",
    ]
    assert mainspring(*options, "--dry-run", "-o", "json").document == {
        "workers": 0,
        "watch_seconds": 0.0,
        "running": 0,
        "waiting": 0,
    }
    assert done.out.splitlines()[0] == "0 workers lost; 0 runs back in line"
    assert done.out.splitlines()[2].startswith("this installation is now ")


async def test_a_reason_is_needed(url: str) -> None:
    assert mainspring("restored", "--yes", "--database-url", url).code == 2
    assert refused("restored", "--reason", "", "--yes", "--database-url", url)["code"] == "invalid-reason"
