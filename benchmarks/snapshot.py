"""Snapshot: what becomes of throughput while somebody holds a transaction open and nothing can be vacuumed."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks.harness import Numbers, bar, durable_server, fresh_database, observer, pass_time, say
from benchmarks.processes import Producer, Worker

if TYPE_CHECKING:
    from datetime import datetime

    import asyncpg

FIELDS = ("ratio",)

WARM_UP = 5.0
SHARE_OF_TIME = 6  # beginning and end are a sixth of the time each

# One row per whole second of the measurement: counted afterwards, so that looking costs nothing meanwhile.
PER_SECOND = """
select count(*) as jobs from attempt
where recorded_at >= $1 and recorded_at < $1 + trunc(extract(epoch from $2 - $1)) * interval '1 second'
group by floor(extract(epoch from recorded_at - $1)) order by floor(extract(epoch from recorded_at - $1))"""


async def run(seconds: float) -> Numbers:
    """One round: it takes a minute, and both ends are medians over seconds."""
    async with durable_server() as server:
        url = await fresh_database(server, "snapshot")
        async with observer(url) as connection, observer(url) as dawdler:
            with Worker(url), Producer(url) as producer:
                await producer.is_warm()
                producer.begin()
                await pass_time(WARM_UP, "warming up")
                began, ended = await _held_open(dawdler, seconds)
                await producer.end()
            rates = [float(row["jobs"]) for row in await connection.fetch(PER_SECOND, began, ended)]
    say("jobs in each second: " + " ".join(f"{rate:,.0f}" for rate in rates))
    window = max(1, round(len(rates) / SHARE_OF_TIME))
    first, last = statistics.median(rates[:window]), statistics.median(rates[-window:])
    return {"ratio": last / first, "first_per_s": first, "last_per_s": last}


async def _held_open(dawdler: asyncpg.Connection[asyncpg.Record], seconds: float) -> tuple[datetime, datetime]:
    """Hold a transaction with a snapshot open; answers with when it began and ended."""
    async with dawdler.transaction(isolation="repeatable_read"):
        await dawdler.fetchval("select exists (select from ready)")
        began = await dawdler.fetchval("select clock_timestamp()")
        await pass_time(seconds, "a transaction is open")
        return began, await dawdler.fetchval("select clock_timestamp()")


def show(numbers: Numbers) -> str:
    first, last = numbers["first_per_s"], numbers["last_per_s"]
    return "\n".join(
        [
            bar("when it was opened", first, max(first, last), "jobs/s"),
            bar("after all that time", last, max(first, last), "jobs/s"),
            f"  ratio {numbers['ratio']:.2f}",
        ]
    )
