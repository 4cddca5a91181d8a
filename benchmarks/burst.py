"""A burst: a quarter of a million runs arrive as fast as producers can send them, while a worker is at work."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from benchmarks.harness import (
    Numbers,
    bar,
    durable_server,
    faults,
    fresh_database,
    medians,
    observer,
    say,
    until_finished,
)
from benchmarks.processes import Producer, Worker

if TYPE_CHECKING:
    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("accepted_per_s", "drain_s", "lost")
ROUNDS = 3
RUNS, PRODUCERS, BATCH, WARM_UP = 250_000, 4, 2_500, 500
WANTED = 50_000


async def run(seconds: float) -> Numbers:
    """`seconds` is the patience with which a burst may drain."""
    rounds = []
    async with durable_server() as server:
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}: {RUNS:,} runs from {PRODUCERS} producers")
            rounds.append(await _burst(server, seconds))
            say("  {accepted_per_s:,.0f}/s accepted; drained in {drain_s:.1f} s; lost {lost:.0f}".format(**rounds[-1]))
    return medians(rounds)


async def _burst(server: EmbeddedServer, patience: float) -> Numbers:
    url = await fresh_database(server, "burst")
    orders = {"total": RUNS // PRODUCERS + WARM_UP, "warm_up": WARM_UP, "batch": BATCH, "most_waiting": None}
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(observer(url))
        stack.enter_context(Worker(url))
        producers = [stack.enter_context(Producer(url, **orders)) for _ in range(PRODUCERS)]
        for producer in producers:
            await producer.is_warm()
        await until_finished(connection, PRODUCERS * WARM_UP, seconds=30)  # so the worker is warm too
        for producer in producers:
            producer.begin()
        reports = [await producer.report() for producer in producers]
        began, ended = min(each.began for each in reports), max(each.ended for each in reports)
        accepted = sum(each.submitted for each in reports)
        await until_finished(connection, accepted, seconds=patience)
        drained = time.monotonic()
        lost = (await faults(connection, accepted))["lost"]
    return {
        "accepted_per_s": sum(each.timed for each in reports) / (ended - began),
        "drain_s": drained - ended,
        "lost": lost,
    }


def show(numbers: Numbers) -> str:
    accepted, drain = numbers["accepted_per_s"], numbers["drain_s"]
    return "\n".join(
        [
            bar("accepted", accepted, max(accepted, WANTED), "runs/s"),
            bar("wanted", WANTED, max(accepted, WANTED), "runs/s"),
            f"  {RUNS:,} runs drained {drain:.1f} s after the last was accepted; lost {numbers['lost']:.0f}",
        ]
    )
