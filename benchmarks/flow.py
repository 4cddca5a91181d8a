"""Flows: how fast a graph is accepted, how long a hop from one run to the next takes, and a callback after a group.

What was released when is read from history.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks import flow_jobs
from benchmarks.harness import Numbers, bar, durable_server, fresh_database, medians, observer, say, until_finished
from benchmarks.processes import Worker
from mainspring import Mainspring

if TYPE_CHECKING:
    import asyncpg

    from mainspring import Flow
    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("submit_s", "graph_s", "hop_ms", "callback_ms", "released_twice", "left_behind")
ROUNDS = 3
GRAPH, LAYERS, CHAIN, GROUP = 10_000, 100, 1_000, 10_000
APP = "benchmarks.flow_jobs:app"

_HOP = """
    select percentile_cont(0.5) within group (order by hop) from (
        select extract(epoch from started_at - lag(finished_at) over (order by started_at)) * 1000 as hop
        from attempt where state = 'succeeded') as hops"""
_CALLBACK = """
    select extract(epoch from callback.started_at - (
        select max(finished_at) from attempt where run_id <> callback.run_id)) * 1000
    from attempt as callback where run_id = $1"""
_TWICE = "select count(*) - count(distinct run_id) from attempt"
_LEFT = "select (select count(*) from held) + (select count(*) from dependency)"


async def run(seconds: float, *, rounds: int = ROUNDS) -> Numbers:
    async with durable_server() as server:
        found = [await _round(server, seconds, number, rounds) for number in range(1, rounds + 1)]
    return medians(found) | {name: sum(each[name] for each in found) for name in ("released_twice", "left_behind")}


async def _round(server: EmbeddedServer, seconds: float, number: int, rounds: int) -> Numbers:
    say(f"round {number} of {rounds}: {GRAPH:,} runs in {LAYERS} layers, a chain of {CHAIN:,}, a group of {GROUP:,}")
    graph = await _graph(server, seconds)
    chain = await _chain(server, seconds)
    group = await _group(server, seconds)
    checks = ("released_twice", "left_behind")
    return {**graph, **chain, **group} | {name: graph[name] + chain[name] + group[name] for name in checks}


async def _graph(server: EmbeddedServer, seconds: float) -> Numbers:
    """Layers, each node of which waits for two of the layer before."""
    url = await fresh_database(server, "graph")
    app = Mainspring(url, registry=flow_jobs.app.registry)
    flow = app.flow("graph")
    width = GRAPH // LAYERS
    before = [flow.add(flow_jobs.step, place) for place in range(width)]
    for _ in range(LAYERS - 1):
        before = [
            flow.add(flow_jobs.step, before[place].output).after(before[(place + 1) % width]) for place in range(width)
        ]
    submit_s = await _submitted(app, flow)
    async with observer(url) as connection:
        began = time.monotonic()
        with Worker(url, app=APP):
            await until_finished(connection, GRAPH, seconds=seconds)
            graph_s = time.monotonic() - began
        return {"submit_s": submit_s, "graph_s": graph_s, **await _checks(connection)}


async def _chain(server: EmbeddedServer, seconds: float) -> Numbers:
    url = await fresh_database(server, "chain")
    app = Mainspring(url, registry=flow_jobs.app.registry)
    flow = app.flow("chain")
    node = flow.add(flow_jobs.step, 0)
    for _ in range(CHAIN - 1):
        node = flow.add(flow_jobs.step, node.output)
    await _submitted(app, flow)
    async with observer(url) as connection:
        with Worker(url, app=APP):
            await until_finished(connection, CHAIN, seconds=seconds)
        return {"hop_ms": float(await connection.fetchval(_HOP)), **await _checks(connection)}


async def _group(server: EmbeddedServer, seconds: float) -> Numbers:
    url = await fresh_database(server, "grouped")
    app = Mainspring(url, registry=flow_jobs.app.registry)
    flow = app.flow("group")
    members = [flow.add(flow_jobs.step, place) for place in range(GROUP)]
    callback = flow.add(flow_jobs.gather, [each.output for each in members])
    async with app:
        submitted = await flow.submit()
        run_id = submitted.run(callback).id
    async with observer(url) as connection:
        with Worker(url, app=APP):
            await until_finished(connection, GROUP + 1, seconds=seconds)
        return {"callback_ms": float(await connection.fetchval(_CALLBACK, run_id)), **await _checks(connection)}


async def _submitted(app: Mainspring, flow: Flow) -> float:
    """How long it took to accept it, the application being open: seconds."""
    async with app:
        await app.services()
        began = time.monotonic()
        await flow.submit()
        return time.monotonic() - began


async def _checks(connection: asyncpg.Connection[asyncpg.Record]) -> Numbers:
    return {
        "released_twice": await connection.fetchval(_TWICE),
        "left_behind": await connection.fetchval(_LEFT),
    }


def show(numbers: Numbers) -> str:
    most = max(numbers["hop_ms"], numbers["callback_ms"])
    return "\n".join(
        [
            f"  {GRAPH:,} runs in {LAYERS} layers: submitted in {numbers['submit_s']:.2f} s,"
            f" over in {numbers['graph_s']:.1f} s",
            bar(f"a hop, of {CHAIN:,} in a chain", numbers["hop_ms"], most, "ms"),
            bar(f"the callback after {GROUP:,}", numbers["callback_ms"], most, "ms"),
            f"  released twice {numbers['released_twice']:.0f}, left behind {numbers['left_behind']:.0f}",
        ]
    )
