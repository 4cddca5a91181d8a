"""Isolation: runs that do nothing, each in a process of its own, through one worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.harness import Numbers, bar, durable_server, fresh_database, medians, observer, pass_time, say
from benchmarks.isolated_jobs import app, isolated_noop
from benchmarks.payload import CALL
from benchmarks.processes import Worker
from mainspring import wiring

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("isolated_per_s", "failed")
ROUNDS = 3
WARM_UP = 200
SLOTS = 16  # more processes at once than there are processors only stand in each other's way
MOST_PER_SECOND = 3_000  # so that a round never runs out of work
WANTED = 300


async def run(seconds: float) -> Numbers:
    rounds = []
    async with durable_server() as server:
        for number in range(1, ROUNDS + 1):
            rounds.append(await _round(server, seconds / ROUNDS))
            say("round {} of {}: {isolated_per_s:,.0f} isolated runs/s".format(number, ROUNDS, **rounds[-1]))
    return medians(rounds)


async def _round(server: EmbeddedServer, seconds: float) -> Numbers:
    url = await fresh_database(server, "isolation")
    app.use(wiring.DatabaseLocation(url=url))
    try:
        await isolated_noop.submit_many([CALL] * (WARM_UP + int(seconds * MOST_PER_SECOND)))
    finally:
        await app.close()
    async with observer(url) as looker:
        with Worker(url, app="benchmarks.isolated_jobs:app", queues=["isolated"], slots=SLOTS):
            while await _count(looker) < WARM_UP:
                await pass_time(0.05, "warming up")
            before, began = await _count(looker), time.monotonic()
            await pass_time(seconds, "running isolated no-ops")
            finished, span = await _count(looker) - before, time.monotonic() - began
        failed = await _count(looker, "outcome not in ('succeeded', 'interrupted')")
    return {"isolated_per_s": finished / span, "failed": failed}


async def _count(looker: asyncpg.Connection[asyncpg.Record], where: str = "outcome = 'succeeded'") -> int:
    return int(await looker.fetchval(f"select count(*) from attempt where {where}"))  # noqa: S608  both are written above


def show(numbers: Numbers) -> str:
    rate = numbers["isolated_per_s"]
    return "\n".join(
        [
            bar("isolated no-ops", rate, max(rate, WANTED), "runs/s"),
            bar("wanted", WANTED, max(rate, WANTED), "runs/s"),
            f"  {numbers['failed']:.0f} failed",
        ]
    )
