"""Throughput: producers, a worker and PostgreSQL together on this machine, beside the bare SQL loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import asyncpg

from benchmarks.bare_loop import bare_loop
from benchmarks.harness import (
    Numbers,
    Worker,
    bar,
    cpu_seconds,
    durable_server,
    fresh_database,
    medians,
    say,
    wait_until,
)

if TYPE_CHECKING:
    from mainspring.store.embedded import EmbeddedServer

ROUNDS = 3
WARM_UP = 2.0


async def run(seconds: float) -> Numbers:
    rounds = []
    async with durable_server() as server:
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}: Mainspring, then the bare loop, {seconds:g} s each")
            ours = await _mainspring(server, seconds)
            bare = await bare_loop(await fresh_database(server, "bare"), seconds)
            rounds.append(ours | {"bare_per_s": bare, "ratio": ours["jobs_per_s"] / bare})
            say(f"  {ours['jobs_per_s']:,.0f} jobs/s; bare {bare:,.0f}; ratio {rounds[-1]['ratio']:.2f}")
    return medians(rounds)


async def _mainspring(server: EmbeddedServer, seconds: float) -> Numbers:
    url = await fresh_database(server, "ours")
    worker = Worker(url)
    producer = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.producer", str(seconds + WARM_UP + 60)],
        env=os.environ | {"MAINSPRING_DATABASE_URL": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    connection = await asyncpg.connect(url, server_settings={"search_path": "mainspring"})
    try:
        await wait_until(lambda: _has_finished(connection, 1), seconds=30)
        await asyncio.sleep(WARM_UP)
        before, began = await _reading(connection, worker, producer, server), time.perf_counter()
        await asyncio.sleep(seconds)
        after, span = await _reading(connection, worker, producer, server), time.perf_counter() - began
        accepted = int((await asyncio.to_thread(producer.communicate, "\n"))[0])
        await wait_until(lambda: _has_finished(connection, accepted), seconds=30)
        lost, duplicated = await _check(connection, accepted)
    finally:
        worker.stop()
        producer.kill()
        producer.wait()
        await connection.close()
    jobs = after["jobs"] - before["jobs"]
    return {
        "jobs_per_s": jobs / span,
        "lost": lost,
        "duplicated": duplicated,
        "python_us_per_job": 1e6 * (after["python"] - before["python"]) / jobs,
        "postgres_us_per_job": 1e6 * (after["postgres"] - before["postgres"]) / jobs,
        "wal_bytes_per_job": (after["wal"] - before["wal"]) / jobs,
    }


async def _reading(
    connection: asyncpg.Connection[asyncpg.Record],
    worker: Worker,
    producer: subprocess.Popen[str],
    server: EmbeddedServer,
) -> Numbers:
    return {
        "jobs": await connection.fetchval("select count(*) from attempt"),
        "wal": float(await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'")),
        "python": worker.cpu_seconds() + cpu_seconds(producer.pid),
        "postgres": cpu_seconds(server.pid),
    }


async def _has_finished(connection: asyncpg.Connection[asyncpg.Record], count: int) -> bool:
    return bool(await connection.fetchval("select count(*) >= $1 from attempt", count))


async def _check(connection: asyncpg.Connection[asyncpg.Record], accepted: int) -> tuple[int, int]:
    """Accepted runs that did not end, and ends beyond one per run."""
    ended, runs = await connection.fetchrow(  # type: ignore[misc]
        "select count(*), count(distinct run_id) from attempt where state = 'succeeded'"
    )
    return accepted - runs, ended - runs


def show(numbers: Numbers) -> str:
    most = max(numbers["jobs_per_s"], numbers["bare_per_s"])
    return "\n".join(
        [
            bar("Mainspring", numbers["jobs_per_s"], most, "jobs/s"),
            bar("bare SQL loop", numbers["bare_per_s"], most, "jobs/s"),
            f"  ratio {numbers['ratio']:.2f} · lost {numbers['lost']:.0f} · duplicated {numbers['duplicated']:.0f}",
            f"  per job: {numbers['python_us_per_job']:.1f} µs Python, {numbers['postgres_us_per_job']:.1f} µs PostgreSQL,"
            f" {numbers['wal_bytes_per_job']:.0f} bytes of WAL",
        ]
    )
