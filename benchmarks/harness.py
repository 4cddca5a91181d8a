"""What benchmarks share: a durable server of their own, rounds, medians, progress, bar charts, one JSON object."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import asyncpg
import msgspec
from rich.console import Console
from rich.progress import Progress

from benchmarks.jobs import COUNTER_VARIABLE
from mainspring.store.database import SCHEMA, Database
from mainspring.store.embedded import EmbeddedServer
from mainspring.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

Numbers = dict[str, float]
Looker: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
FAULTS = {"lost", "duplicated"}


@asynccontextmanager
async def durable_server(**settings: str) -> AsyncIterator[EmbeddedServer]:
    """A fresh embedded server with the settings people get: fsync, synchronous_commit, full_page_writes on."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-bench-"))
    folder.chmod(0o755)
    counter = folder / "finished"
    counter.write_bytes(bytes(8))
    os.environ[COUNTER_VARIABLE] = str(counter)
    say("starting a durable PostgreSQL")
    server = await asyncio.to_thread(EmbeddedServer.acquire, folder / "data", settings=settings)
    try:
        yield server
    finally:
        await asyncio.to_thread(server.release)
        shutil.rmtree(folder, ignore_errors=True)


def executed_count() -> int:
    """How many runs all workers of this benchmark have executed so far."""
    return int.from_bytes(Path(os.environ[COUNTER_VARIABLE]).read_bytes(), sys.byteorder)


async def empty_database(server: EmbeddedServer, name: str) -> str:
    """A database of its own with nothing in it; answers with its URL."""
    admin = await asyncpg.connect(server.dsn)
    await admin.execute(f"drop database if exists {name} with (force)")
    await admin.execute(f"create database {name}")
    await admin.close()
    return server.dsn_for(name)


async def fresh_database(server: EmbeddedServer, name: str) -> str:
    """A migrated database of its own; answers with its URL."""
    url = await empty_database(server, name)
    connection = await Database(url).connect()
    await migrate(connection)
    await connection.close()
    return url


@asynccontextmanager
async def observer(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection for looking on, which never counts as one of Mainspring's."""
    settings = {"search_path": SCHEMA, "application_name": "benchmark", "timezone": "UTC"}
    connection = await asyncpg.connect(url, server_settings=settings)
    try:
        yield connection
    finally:
        await connection.close()


# ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def wait_until(condition: Callable[[], Awaitable[bool]], *, seconds: float, every: float = 0.05) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if await condition():
            return True
        await asyncio.sleep(every)
    return False


async def pass_time(seconds: float, what: str) -> None:
    """Let time go by; people at a terminal see how much."""
    if not sys.stderr.isatty():
        await asyncio.sleep(seconds)
        return
    until = time.monotonic() + seconds
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"  {what}", total=seconds)
        while (left := until - time.monotonic()) > 0:
            progress.update(task, completed=seconds - left)
            await asyncio.sleep(min(left, 0.1))


@contextmanager
def advancing(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how much of something is done; whoever does it says so by each call. Without a terminal, in tenths."""
    if sys.stderr.isatty():
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"  {what}", total=total)
            yield lambda count: progress.advance(task, count)
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if 10 * done // total > 10 * before // total:
            say(f"{what}: {done / total:.0%}")

    yield advance


async def until_finished(
    connection: asyncpg.Connection[asyncpg.Record], count: int, *, seconds: float, but_for_priority: int = -1
) -> bool:
    """Wait until so many runs have ended; those of one priority may be left out."""

    async def has_finished() -> bool:
        counted = "select count(*) >= $1 from attempt where priority <> $2"
        return bool(await connection.fetchval(counted, count, but_for_priority))

    return await wait_until(has_finished, seconds=seconds, every=0.2)  # counting takes processor time


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def faults(connection: asyncpg.Connection[asyncpg.Record], accepted: int) -> Numbers:
    """Accepted runs that did not end, and ends beyond one per run."""
    ended, runs = await connection.fetchrow(  # type: ignore[misc]
        "select count(*), count(distinct run_id) from attempt where state = 'succeeded'"
    )
    return {"lost": accepted - runs, "duplicated": ended - runs}


def medians(rounds: list[Numbers]) -> Numbers:
    """Each field's median over the rounds; counts of faults are added up instead."""
    return {
        name: sum(each[name] for each in rounds) if name in FAULTS else statistics.median(each[name] for each in rounds)
        for name in rounds[0]
    }


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────


def say(sentence: str) -> None:
    """Progress goes to standard error; standard output is for results."""
    print(f"\033[2m• {sentence}\033[0m" if sys.stderr.isatty() else f"• {sentence}", file=sys.stderr, flush=True)


def bar(label: str, value: float, most: float, unit: str) -> str:
    width = 0 if most <= 0 else min(40, round(40 * value / most))
    return f"  {label:<28} {'█' * width}{'·' * (40 - width)} {value:,.6g} {unit}"


def as_json(numbers: Mapping[str, object]) -> str:
    return msgspec.json.encode(_rounded(numbers)).decode()


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return round(value, 4) if isinstance(value, float) else value
