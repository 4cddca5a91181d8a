"""Throughput: a producer, a worker and PostgreSQL together on this machine, beside the bare SQL loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.bare_loop import bare_loop
from benchmarks.harness import (
    Numbers,
    bar,
    durable_server,
    faults,
    fresh_database,
    medians,
    observer,
    pass_time,
    say,
    until_finished,
)
from benchmarks.processes import Producer, Worker, cpu_seconds

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.embedded import EmbeddedServer

FIELDS = (
    "jobs_per_s",
    "bare_per_s",
    "ratio",
    "lost",
    "duplicated",
    "unsettled",
    "python_us_per_job",
    "postgres_us_per_job",
    "wal_bytes_per_job",
)
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
    with Worker(url) as worker, Producer(url) as producer:
        async with observer(url) as connection:
            await producer.is_warm()
            producer.begin()
            await until_finished(connection, 1, seconds=30)
            await pass_time(WARM_UP, "warming up")
            before, began = await _reading(connection, worker, producer, server), time.perf_counter()
            await pass_time(seconds, "measuring")
            after, span = await _reading(connection, worker, producer, server), time.perf_counter() - began
            unsettled = await connection.fetchval("select max(unsettled) from worker")  # as workers said last
            accepted = (await producer.end()).submitted
            await until_finished(connection, accepted, seconds=30)
            found = await faults(connection, accepted)
    jobs = after["jobs"] - before["jobs"]
    return {
        "jobs_per_s": jobs / span,
        **found,
        "unsettled": float(unsettled or 0),
        "python_us_per_job": 1e6 * (after["python"] - before["python"]) / jobs,
        "postgres_us_per_job": 1e6 * (after["postgres"] - before["postgres"]) / jobs,
        "wal_bytes_per_job": (after["wal"] - before["wal"]) / jobs,
    }


async def _reading(
    connection: asyncpg.Connection[asyncpg.Record], worker: Worker, producer: Producer, server: EmbeddedServer
) -> Numbers:
    return {
        "jobs": await connection.fetchval("select count(*) from attempt"),
        "wal": float(await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'")),
        "python": worker.cpu_seconds() + producer.cpu_seconds(),
        "postgres": cpu_seconds(server.pid),
    }


def show(numbers: Numbers) -> str:
    most = max(numbers["jobs_per_s"], numbers["bare_per_s"])
    return "\n".join(
        [
            bar("Mainspring", numbers["jobs_per_s"], most, "jobs/s"),
            bar("bare SQL loop", numbers["bare_per_s"], most, "jobs/s"),
            f"  ratio {numbers['ratio']:.2f} · lost {numbers['lost']:.0f} · duplicated {numbers['duplicated']:.0f}"
            f" · unsettled {numbers['unsettled']:,.0f}",
            f"  per job: {numbers['python_us_per_job']:.1f} µs Python,"
            f" {numbers['postgres_us_per_job']:.1f} µs PostgreSQL, {numbers['wal_bytes_per_job']:.0f} bytes of WAL",
        ]
    )
