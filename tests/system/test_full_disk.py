"""PostgreSQL's disk is full: nothing accepted is lost, clients are told, and everything goes on when there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.checker import Answer, CallLog
from tests.waiting import eventually

from mainspring import Mainspring, MainspringError
from mainspring.store.embedded.postmaster import visible_postmaster
from mainspring.wiring import DatabaseLocation, open_store

from .machinery import System, is_alive
from .test_losing_the_database import _effects_table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SIZE = 160  # MiB


@pytest.fixture
def small_disk() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk to fill")
    folder = Path(tempfile.mkdtemp(prefix="mainspring-disk-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}m,mode=755", "tmpfs", folder], check=False)
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("this machine does not let root mount a tmpfs")
    yield folder
    stop_what_is_left(folder / "data" / "postgresql")
    subprocess.run(["umount", "-l", folder], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def stop_what_is_left(data: Path) -> None:
    """The server, if a worker that was dying still used it when we left. Nothing else would ever end it."""
    if (left := visible_postmaster(data)) is not None:
        os.kill(left.pid, signal.SIGQUIT)
        assert eventually(lambda: not is_alive(left.pid))


@pytest.fixture
async def system(small_disk: Path) -> AsyncIterator[System]:
    """A durable server on the small disk, and workers for it."""
    store = await open_store(DatabaseLocation(data_directory=small_disk / "data"))
    assert store.server is not None
    system = System(store.server.dsn, await _effects_table(store.server.dsn))
    yield system
    for tree in system.trees:
        if tree.process.poll() is None:
            tree.kill()
    system.connection.terminate()
    await store.close()


def fill(disk: Path) -> Path:
    """Take all the room there is."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):  # a buffer would be flushed, and fail, once more
        while True:
            file.write(b"\0" * 65_536)
    return filler


@pytest.mark.long
@pytest.mark.timeout(200)
async def test_nothing_accepted_is_lost_while_the_disk_is_full(small_disk: Path, system: System, jobs: Any) -> None:
    # asyncpg leaves behind futures of broken operations that nobody awaits; they are not what is tested here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    system.start(environment={"MAINSPRING_DATABASE_URL": "", "MAINSPRING_DATA_DIR": str(small_disk / "data")})
    assert await system.live_workers(1)
    app = Mainspring(data_directory=small_disk / "data", submitted_by="tester")
    quick = app.job(jobs.quick.handler.function)
    log, errors = CallLog(), list[MainspringError]()

    async def submit() -> None:
        try:
            handles = await quick.submit_many([{"number": n} for n in range(50)])
        except MainspringError as error:
            errors.append(error)
            log.record(Answer.UNKNOWN if error.code == "outcome-unknown" else Answer.FAILED)
        else:
            log.record(Answer.OK, *(handle.id for handle in handles))

    await submit()
    filler = fill(small_disk)
    while not errors:
        await submit()
    filler.unlink()

    async def is_accepted() -> bool:
        await submit()
        return log.calls[-1].answer is Answer.OK

    assert await system.eventually(is_accepted)  # a server that stopped for want of space is started again first
    await app.close()

    assert {error.code for error in errors} <= {"database-disk-full", "outcome-unknown", "database-unreachable"}
    system.connection.terminate()
    system.connection = await _effects_table(system.url)
    assert await system.eventually(
        lambda: system.value("select count(distinct run_id) >= $1 from attempt", len(log.accepted))
    )
    report = await system.report(log.accepted, calls=log.calls)
    assert report.violations == [], report
    assert await system.live_workers(1)
