"""Latency: how long after somebody calls `submit` its handler starts, in a quiet house and behind a long line.

Three measurements: single submissions at an even pace; the same with priority 0 while a million runs of priority 9
keep the worker busy; and what share priority 9 still gets when priority 0 alone could keep it busy.
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
from mainspring.model.run import DEFAULT_PRIORITY, LEAST_URGENT, MOST_URGENT

if TYPE_CHECKING:
    from datetime import datetime

    import asyncpg

    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("p50_ms", "p99_ms", "behind_backlog_p50_ms", "behind_backlog_p99_ms", "low_priority_share")
ROUNDS = 3
WARM_UP = 2.0
PER_SECOND = 1_000
BACKLOG = 1_000_000
FASTEST = 60_000  # runs per second, more than any worker here executes

# The caller notes the moment of its call in the payload. Caller, worker and database share this machine's clock.
WAITS = """
select extract(epoch from started_at) - (convert_from(payload, 'utf8')::jsonb ->> 'note')::double precision as wait
from attempt where priority = $1 and submitted_at >= $2 and submitted_at < $3"""
SHARE = """
select avg((priority = $1)::int)::double precision from attempt where recorded_at >= $2 and recorded_at < $3"""


async def run(seconds: float) -> Numbers:
    async with durable_server() as server:
        quiet = [await _quiet(server, seconds, number) for number in range(1, ROUNDS + 1)]
        url = await fresh_database(server, "behind")
        async with observer(url) as connection:
            behind = [await _behind_backlog(url, connection, seconds, number) for number in range(1, ROUNDS + 1)]
            share = await _share_of_least_urgent(url, connection, seconds)
    return medians(quiet) | medians(behind) | share


async def _quiet(server: EmbeddedServer, seconds: float, number: int) -> Numbers:
    url = await fresh_database(server, "quiet")
    async with observer(url) as connection:
        with Worker(url):
            p50, p99 = await _paced(url, connection, seconds, priority=DEFAULT_PRIORITY)
    say(f"round {number} of {ROUNDS}, {PER_SECOND:,}/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    return {"p50_ms": p50, "p99_ms": p99}


async def _behind_backlog(
    url: str, connection: asyncpg.Connection[asyncpg.Record], seconds: float, number: int
) -> Numbers:
    await _fill_up(url, connection, BACKLOG + _most_executed(seconds))
    with Worker(url):
        p50, p99 = await _paced(url, connection, seconds, priority=MOST_URGENT)
    say(f"round {number} of {ROUNDS}, priority 0 behind {BACKLOG:,}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    return {"behind_backlog_p50_ms": p50, "behind_backlog_p99_ms": p99}


async def _share_of_least_urgent(url: str, connection: asyncpg.Connection[asyncpg.Record], seconds: float) -> Numbers:
    """What priority 9 gets while priority 0 has more waiting than the worker can do. A mean, so one round will do."""
    await _fill_up(url, connection, BACKLOG)
    urgent = _most_executed(seconds)
    say(f"adding {urgent:,} runs of priority 0")
    await fill(url, urgent, priority=MOST_URGENT)
    with Worker(url):
        await pass_time(WARM_UP, "warming up")
        began = await _now(connection)
        await pass_time(seconds, "both priorities wait")
        ended = await _now(connection)
    if not await connection.fetchval("select exists (select from ready where priority = $1)", MOST_URGENT):
        raise RuntimeError("Priority 0 ran out of runs, so the share of priority 9 means nothing.")
    return {"low_priority_share": await connection.fetchval(SHARE, LEAST_URGENT, began, ended)}


async def _fill_up(url: str, connection: asyncpg.Connection[asyncpg.Record], wanted: int) -> None:
    """Make sure that about so many runs wait, those that are missing with priority 9."""
    missing = wanted - await connection.fetchval("select count(*) from ready")
    if missing > 0:
        say(f"filling the line with {missing:,} runs of priority 9")
        await fill(url, missing, priority=LEAST_URGENT)


def _most_executed(seconds: float) -> int:
    return int(FASTEST * (WARM_UP + seconds))


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


async def _produced(
    producer: Producer, connection: asyncpg.Connection[asyncpg.Record], seconds: float, what: str
) -> tuple[datetime, datetime]:
    """Let a producer work, and all it submitted end; answers between which instants everything was in full swing."""
    before = await connection.fetchval("select count(*) from attempt where priority <> $1", LEAST_URGENT)
    await producer.is_warm()
    producer.begin()
    await pass_time(WARM_UP, "warming up")
    began = await _now(connection)
    await pass_time(seconds, what)
    ended = await _now(connection)
    submitted = (await producer.end()).submitted
    await until_finished(connection, before + submitted, seconds=60, but_for_priority=LEAST_URGENT)
    return began, ended


async def _now(connection: asyncpg.Connection[asyncpg.Record]) -> datetime:
    now: datetime = await connection.fetchval("select clock_timestamp()")
    return now


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
