"""Throughput: a producer, a worker and PostgreSQL together on this machine, beside the bare SQL loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.bare_loop import bare_loop
from benchmarks.harness import (
    FAULTS,
    Numbers,
    bar,
    durable_server,
    executed_count,
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
    from collections.abc import Awaitable, Callable

    from benchmarks.harness import Looker
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
    "constant_per_s",
    "constant_wal_bytes_per_job",
    "sleeping_per_s",
    "chunked_per_s",
)
ROUNDS = 3
WARM_UP = 2.0


async def run(seconds: float, *, rounds: int = ROUNDS) -> Numbers:
    rounds_measured = []
    async with durable_server() as server:
        for number in range(1, rounds + 1):
            say(f"round {number} of {rounds}: Mainspring, the bare loop, and three other loads, {seconds:g} s each")
            rounds_measured.append(await _round(server, seconds))
    return medians(rounds_measured)


async def _round(server: EmbeddedServer, seconds: float) -> Numbers:
    """Ours and the bare loop with payloads that differ; then equal ones; handlers that wait; and chunks."""
    ours = await measured(server, seconds, payload="random")
    bare = await bare_loop(await fresh_database(server, "bare"), seconds)
    constant = await measured(server, seconds)
    sleeping = await measured(server, seconds, job="sleeper", payload="random")
    chunked = await measured(server, seconds, job="noop_in_chunks", payload="random")
    say(f"  {ours['jobs_per_s']:,.0f} jobs/s; bare {bare:,.0f}; ratio {ours['jobs_per_s'] / bare:.2f}")
    return {
        **ours,
        **{name: sum(each[name] for each in (ours, constant, sleeping, chunked)) for name in FAULTS},
        "unsettled": max(each["unsettled"] for each in (ours, constant, sleeping, chunked)),
        "bare_per_s": bare,
        "ratio": ours["jobs_per_s"] / bare,
        "constant_per_s": constant["jobs_per_s"],
        "constant_wal_bytes_per_job": constant["wal_bytes_per_job"],
        "sleeping_per_s": sleeping["jobs_per_s"],
        "chunked_per_s": chunked["jobs_per_s"],
    }


async def measured(
    server: EmbeddedServer, seconds: float, *, prepare: Callable[[str], Awaitable[None]] | None = None, **orders: str
) -> Numbers:
    """All figures are per run in history. WAL is counted until the last run is there: nothing may be put off."""
    url, executed_before = await fresh_database(server, "ours"), executed_count()
    if prepare is not None:
        await prepare(url)
    with Worker(url) as worker, Producer(url, **orders) as producer:
        async with observer(url) as connection:
            await producer.is_warm()
            wal_before = await _wal_bytes(connection)
            producer.begin()
            await until_finished(connection, 1, seconds=30)
            await pass_time(WARM_UP, "warming up")
            before, began = await _reading(connection, worker, producer, server), time.perf_counter()
            await pass_time(seconds, "measuring")
            after, span = await _reading(connection, worker, producer, server), time.perf_counter() - began
            report = await producer.end()
            await until_finished(connection, report.submitted, seconds=30)
            found = await faults(connection, report.submitted)
            wal_bytes = await _wal_bytes(connection) - wal_before
    jobs = after["jobs"] - before["jobs"]
    return {
        "jobs_per_s": jobs / span,
        **found,
        "unsettled": max(0.0, after["executed"] - executed_before - after["jobs"]),
        "python_us_per_job": 1e6 * (after["python"] - before["python"]) / jobs,
        "postgres_us_per_job": 1e6 * (after["postgres"] - before["postgres"]) / jobs,
        "wal_bytes_per_job": wal_bytes / report.timed,
    }


async def _reading(connection: Looker, worker: Worker, producer: Producer, server: EmbeddedServer) -> Numbers:
    return {
        "executed": executed_count(),  # before the look at history, so that this is not more than there was
        "jobs": await connection.fetchval("select count(*) from attempt"),
        "python": worker.cpu_seconds() + producer.cpu_seconds(),
        "postgres": cpu_seconds(server.pid),
    }


async def _wal_bytes(connection: Looker) -> float:
    return float(await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'"))


def show(numbers: Numbers) -> str:
    most = max(numbers["jobs_per_s"], numbers["bare_per_s"], numbers["constant_per_s"], numbers["chunked_per_s"])
    return "\n".join(
        [
            bar("Mainspring", numbers["jobs_per_s"], most, "jobs/s"),
            bar("bare SQL loop", numbers["bare_per_s"], most, "jobs/s"),
            bar("with equal payloads", numbers["constant_per_s"], most, "jobs/s"),
            bar("handlers that wait 0–50 ms", numbers["sleeping_per_s"], most, "jobs/s"),
            bar("a hundred runs per call", numbers["chunked_per_s"], most, "jobs/s"),
            f"  ratio {numbers['ratio']:.2f} · lost {numbers['lost']:.0f} · duplicated {numbers['duplicated']:.0f}"
            f" · unsettled {numbers['unsettled']:,.0f}",
            f"  per job: {numbers['python_us_per_job']:.1f} µs Python,"
            f" {numbers['postgres_us_per_job']:.1f} µs PostgreSQL, {numbers['wal_bytes_per_job']:.0f} bytes of WAL"
            f" ({numbers['constant_wal_bytes_per_job']:.0f} with equal payloads)",
        ]
    )
