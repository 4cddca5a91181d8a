"""Idle: what a worker with nothing to do asks of the database: supervisor and child, usual settings, several queues.

Statements are counted by the server itself (pg_stat_statements), connections by the names they go by.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.harness import Numbers, bar, durable_server, fresh_database, medians, observer, pass_time, say
from benchmarks.jobs import IDLE_QUEUES
from benchmarks.processes import Producer, Worker
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    import asyncpg

FIELDS = ("statements_per_s", "connections")
ROUNDS = 3
WARM_UP = 5.0
MOST_STATEMENTS, MOST_CONNECTIONS = 5, 4
DATABASE = "idle"

# Everything that clients sent to the worker's database; we ask from another one, so our questions do not count.
CALLS = """
select query, calls from public.pg_stat_statements
where dbid = (select oid from pg_database where datname = $1) and toplevel"""
NAMES = "select application_name from pg_stat_activity where datname = $1 and backend_type = 'client backend'"


async def run(seconds: float) -> Numbers:
    rounds = []
    async with durable_server(shared_preload_libraries="pg_stat_statements") as server, observer(server.dsn) as looker:
        await looker.execute("create extension pg_stat_statements schema public")
        url = await fresh_database(server, DATABASE)
        with Worker(url, queues=("bench", *IDLE_QUEUES), slots=WorkerSettings().slots):
            with Producer(url) as producer:
                await producer.is_warm()  # the worker has worked and has opened whatever it needs
            await pass_time(WARM_UP, "becoming idle")
            for number in range(1, ROUNDS + 1):
                rounds.append(await _idle(looker, seconds / ROUNDS))
                say("round {} of {}: {statements_per_s:.2f} statements/s".format(number, ROUNDS, **rounds[-1]))
    return medians(rounds)


async def _idle(looker: asyncpg.Connection[asyncpg.Record], seconds: float) -> Numbers:
    before, began = await _calls(looker), time.monotonic()
    most = 0
    while time.monotonic() < began + seconds:
        await pass_time(1.0, "idling")
        most = max(most, await _connections(looker))
    after, span = await _calls(looker), time.monotonic() - began
    for query, calls in (after - before).most_common():
        say(f"  {calls / span:5.2f}/s  {' '.join(query.split())[:90]}")
    return {"statements_per_s": (after - before).total() / span, "connections": most}


async def _calls(looker: asyncpg.Connection[asyncpg.Record]) -> Counter[str]:
    return Counter({row["query"]: row["calls"] for row in await looker.fetch(CALLS, DATABASE)})


async def _connections(looker: asyncpg.Connection[asyncpg.Record]) -> int:
    """How many the process with the most has open."""
    names = [row["application_name"] for row in await looker.fetch(NAMES, DATABASE)]
    of_supervisor = sum("supervisor" in name for name in names)
    return max(of_supervisor, len(names) - of_supervisor)


def show(numbers: Numbers) -> str:
    statements, connections = numbers["statements_per_s"], numbers["connections"]
    return "\n".join(
        [
            bar("statements", statements, max(statements, MOST_STATEMENTS), f"per second, of {MOST_STATEMENTS}"),
            bar("connections", connections, max(connections, MOST_CONNECTIONS), f"per process, of {MOST_CONNECTIONS}"),
        ]
    )
