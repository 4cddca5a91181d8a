"""What benchmarks share: a durable server of their own, rounds, medians, progress, a bar chart, one JSON object."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from mainspring.store.database import Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

Numbers = dict[str, float]


@asynccontextmanager
async def durable_server() -> AsyncIterator[EmbeddedServer]:
    """A fresh embedded server with the settings people get: fsync, synchronous_commit, full_page_writes on."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-bench-"))
    folder.chmod(0o755)
    say("starting a durable PostgreSQL")
    server = await asyncio.to_thread(EmbeddedServer.acquire, folder / "data")
    try:
        yield server
    finally:
        await asyncio.to_thread(server.release)
        shutil.rmtree(folder, ignore_errors=True)


async def fresh_database(server: EmbeddedServer, name: str) -> str:
    """A migrated database of its own; answers with its URL."""
    admin = await asyncpg.connect(server.dsn)
    await admin.execute(f"drop database if exists {name} with (force)")
    await admin.execute(f"create database {name}")
    await admin.close()
    url = server.dsn_for(name)
    connection = await Database(url).connect()
    await migrate(connection)
    await connection.close()
    return url


class Worker:
    """A real `mainspring worker` with its supervisor and children."""

    def __init__(self, url: str, *, app: str = "benchmarks.jobs:app", **settings: Any) -> None:
        settings = {"queues": ["bench"], "slots": 1000} | settings
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", app, msgspec.json.encode(settings).decode()],
            env=os.environ | {"MAINSPRING_DATABASE_URL": url},
        )

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)


def cpu_seconds(pid: int) -> float:
    """The processor time a process and all its descendants have used, those that ended included."""
    ticks = 0
    for each in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> Iterable[int]:
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from descendants(int(child))


async def wait_until(condition: Any, *, seconds: float, every: float = 0.05) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if await condition():
            return True
        await asyncio.sleep(every)
    return False


def medians(rounds: list[Numbers]) -> Numbers:
    """Each field's median over the rounds; counts of faults are added up instead."""
    summed = {"lost", "duplicated"}
    return {
        name: sum(each[name] for each in rounds) if name in summed else statistics.median(each[name] for each in rounds)
        for name in rounds[0]
    }


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def say(sentence: str) -> None:
    """Progress goes to standard error; standard output is for results."""
    print(f"\033[2m• {sentence}\033[0m" if sys.stderr.isatty() else f"• {sentence}", file=sys.stderr, flush=True)


def bar(label: str, value: float, most: float, unit: str) -> str:
    width = 0 if most <= 0 else round(40 * value / most)
    return f"  {label:<28} {'█' * width}{'·' * (40 - width)} {value:,.6g} {unit}"


def as_json(numbers: Numbers) -> str:
    return msgspec.json.encode({name: round(value, 4) for name, value in numbers.items()}).decode()
