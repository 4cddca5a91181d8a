"""Latency: how long after somebody calls `submit` its handler starts, in a quiet house and behind a long line.

Three measurements: single submissions at an even pace; the same with priority 0 while a million runs of priority 9
keep the worker busy; and what share priority 9 still gets when priority 0 alone could keep the worker busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.filling import fill
from benchmarks.harness import (
    Numbers,
    bar,
    durable_server,
    fresh_database,
    medians,
    observer,
    pass_time,
    percentile,
    say,
    until_finished,
)
from benchmarks.processes import Producer, Worker
from mainspring.model.run import LEAST_URGENT, MOST_URGENT

if TYPE_CHECKING:
    from datetime import datetime

    import asyncpg

    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("p50_ms", "p99_ms", "behind_backlog_p50_ms", "behind_backlog_p99_ms", "low_priority_share")
ROUNDS = 3
WARM_UP = 2.0
PER_SECOND = 1_000
BACKLOG = 1_000_000
MOST_URGENT_WAITING = 20_000
FASTEST = 40_000  # runs per second: by how much the backlog may shrink at most

# The caller notes the moment of its call in the payload. Caller, worker and database share this machine's clock.
WAITS = """
select extract(epoch from started_at) - (convert_from(payload, 'utf8')::jsonb ->> 'note')::double precision as wait
from attempt where priority = $1 and submitted_at >= $2 and submitted_at < $3"""
SHARE = """
select avg((priority = $1)::int)::double precision from attempt where recorded_at >= $2 and recorded_at < $3"""


async def run(seconds: float) -> Numbers:
    async with durable_server() as server:
        quiet = [await _quiet(server, seconds, number) for number in range(1, ROUNDS + 1)]
        behind = await _behind_backlog(server, seconds)
    return medians(quiet) | medians(behind)


async def _quiet(server: EmbeddedServer, seconds: float, number: int) -> Numbers:
    url = await fresh_database(server, "quiet")
    with Worker(url):
        async with observer(url) as connection:
            p50, p99 = await _paced(url, connection, seconds, priority=5)
    say(f"round {number} of {ROUNDS}, {PER_SECOND:,}/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    return {"p50_ms": p50, "p99_ms": p99}


async def _behind_backlog(server: EmbeddedServer, seconds: float) -> list[Numbers]:
    url = await fresh_database(server, "behind")
    rounds = []
    async with observer(url) as connection:
        for number in range(1, ROUNDS + 1):
            await _top_up(url, connection, seconds)
            with Worker(url):
                p50, p99 = await _paced(url, connection, seconds, priority=MOST_URGENT)
                share = await _share_of_least_urgent(url, connection, seconds)
            say(
                f"round {number} of {ROUNDS}, priority 0 behind {BACKLOG:,}:"
                f" p50 {p50:.1f} ms, p99 {p99:.1f} ms; share of priority 9: {share:.1%}"
            )
            rounds.append({"behind_backlog_p50_ms": p50, "behind_backlog_p99_ms": p99, "low_priority_share": share})
    return rounds


async def _top_up(url: str, connection: asyncpg.Connection[asyncpg.Record], seconds: float) -> None:
    """So many that a million still wait when the measurement ends."""
    wanted = BACKLOG + int(FASTEST * (seconds + WARM_UP))
    missing = wanted - await connection.fetchval("select count(*) from ready")
    say(f"filling the line with {missing:,} runs of priority 9")
    await fill(url, missing, priority=LEAST_URGENT)


async def _paced(
    url: str, connection: asyncpg.Connection[asyncpg.Record], seconds: float, *, priority: int
) -> tuple[float, float]:
    """Median and 99th percentile of the wait, in milliseconds, of single submissions at an even pace."""
    with Producer(url, priority=priority, per_second=PER_SECOND) as producer:
        began, ended = await _produced(producer, connection, seconds, f"submitting {PER_SECOND:,}/s")
    waits = [1000 * float(row["wait"]) for row in await connection.fetch(WAITS, priority, began, ended)]
    if len(waits) < 0.95 * PER_SECOND * seconds:
        raise RuntimeError(f"{len(waits) / seconds:.0f} runs per second were submitted and ended, not {PER_SECOND}.")
    return percentile(waits, 0.5), percentile(waits, 0.99)


async def _share_of_least_urgent(url: str, connection: asyncpg.Connection[asyncpg.Record], seconds: float) -> float:
    """The share of priority 9 while priority 0 always has something waiting too."""
    with Producer(url, priority=MOST_URGENT, most_waiting=MOST_URGENT_WAITING) as producer:
        began, ended = await _produced(producer, connection, seconds, "keeping the worker busy with priority 0")
    return float(await connection.fetchval(SHARE, LEAST_URGENT, began, ended))


async def _produced(
    producer: Producer, connection: asyncpg.Connection[asyncpg.Record], seconds: float, what: str
) -> tuple[datetime, datetime]:
    """Let a producer work, and all it submitted end; answers between which instants everything was in full swing."""
    before = await connection.fetchval("select count(*) from attempt where priority <> $1", LEAST_URGENT)
    await producer.is_warm()
    producer.begin()
    await pass_time(WARM_UP, "warming up")
    began = await connection.fetchval("select clock_timestamp()")
    await pass_time(seconds, what)
    ended = await connection.fetchval("select clock_timestamp()")
    submitted = (await producer.end()).submitted
    await until_finished(connection, before + submitted, seconds=60, but_for_priority=LEAST_URGENT)
    return began, ended


def show(numbers: Numbers) -> str:
    most = max(numbers["p99_ms"], numbers["behind_backlog_p99_ms"])
    return "\n".join(
        [
            bar(f"{PER_SECOND:,}/s, p50", numbers["p50_ms"], most, "ms"),
            bar(f"{PER_SECOND:,}/s, p99", numbers["p99_ms"], most, "ms"),
            bar("urgent behind backlog, p50", numbers["behind_backlog_p50_ms"], most, "ms"),
            bar("urgent behind backlog, p99", numbers["behind_backlog_p99_ms"], most, "ms"),
            f"  priority 9 gets {numbers['low_priority_share']:.1%} while priority 0 could have everything",
        ]
    )
