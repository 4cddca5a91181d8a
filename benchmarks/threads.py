"""Threads: how long an urgent `async` run waits while others compute in its worker, for each way to do that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.cpu_bound_jobs import BURN_SECONDS, app, burn, burn_async, burn_isolated, urgent
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
from benchmarks.processes import Worker
from mainspring import wiring

if TYPE_CHECKING:
    from mainspring.store.embedded import EmbeddedServer

SLOTS = 200
WAYS: dict[str, tuple[Any, dict[str, int]]] = {
    "def": (burn, {}),
    "def_unlimited": (burn, {"threads": SLOTS}),
    "async": (burn_async, {}),
    "isolated": (burn_isolated, {}),
    "processes": (burn, {"processes": 2}),
}
FIELDS = tuple(f"{way}_{what}" for way in WAYS for what in ("p50_ms", "worst_ms", "per_s"))
ROUNDS = 3
PAUSE = 0.25  # between two urgent runs

WAITS = """
select extract(epoch from started_at - submitted_at)::double precision as wait from attempt
where priority = 0 order by submitted_at"""
DONE = "select count(*) / extract(epoch from max(finished_at) - min(started_at)) from attempt where priority <> 0"


async def run(seconds: float) -> Numbers:
    """`seconds` is how much there is to compute, each time."""
    async with durable_server() as server:
        return medians([await _round(server, round(seconds / BURN_SECONDS), number + 1) for number in range(ROUNDS)])


async def _round(server: EmbeddedServer, count: int, number: int) -> Numbers:
    say(f"round {number} of {ROUNDS}")
    numbers: Numbers = {}
    for way, (job, settings) in WAYS.items():
        found = await _compute(server, count, job, settings)
        numbers |= {f"{way}_{what}": value for what, value in found.items()}
        say("  {}: urgent runs wait up to {worst_ms:,.0f} ms; {per_s:.1f} runs/s".format(way, **found))
    return numbers


async def _compute(server: EmbeddedServer, count: int, job: Any, settings: dict[str, int]) -> Numbers:
    url = await fresh_database(server, "threads")
    app.use(wiring.DatabaseLocation(url=url))
    async with observer(url) as connection, app:
        with Worker(url, app="benchmarks.cpu_bound_jobs:app", slots=SLOTS, **settings):
            await urgent.submit()
            await until_finished(connection, 1, seconds=30)
            await job.submit_many([{}] * count)
            urgents = await _submit_urgent_ones(count * BURN_SECONDS)
            await until_finished(connection, 1 + count + urgents, seconds=120)
        waits = [1000 * float(row["wait"]) for row in await connection.fetch(WAITS)][1:]
        per_s = float(await connection.fetchval(DONE))
    return {"p50_ms": percentile(waits, 0.5), "worst_ms": max(waits), "per_s": per_s}


async def _submit_urgent_ones(seconds: float) -> int:
    """One after the other, while the others compute; answers how many."""
    count = max(1, int(0.5 * seconds / PAUSE))
    for _ in range(count):
        await urgent.submit()
        await pass_time(PAUSE, "computing")
    return count


def show(numbers: Numbers) -> str:
    most = max(numbers[f"{way}_worst_ms"] for way in WAYS)
    lines = []
    for way in WAYS:
        lines.append(bar(f"{way}: urgent run, worst", numbers[f"{way}_worst_ms"], most, "ms"))
        lines.append(f"    p50 {numbers[f'{way}_p50_ms']:,.0f} ms · {numbers[f'{way}_per_s']:.1f} runs/s")
    return "\n".join(lines)
