"""What a run costs on a Citus cluster: processor time of coordinator and nodes, to accept it and to execute it.

`MAINSPRING_CITUS_URL` names the coordinator of a cluster whose servers all run on this machine, as a superuser. The
schema `mainspring` in that database is dropped and made anew. A database without the extension is measured as the plain
server that it is.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from benchmarks.filling import fill
from benchmarks.harness import Numbers, bar, medians, observer, say, wait_until
from benchmarks.jobs import COUNTER_VARIABLE, noop
from benchmarks.processes import Worker, cpu_seconds
from mainspring import Mainspring
from mainspring.store.database import Database
from mainspring.store.distribute import has_citus
from mainspring.store.migrate import migrate

if TYPE_CHECKING:
    from benchmarks.harness import Looker

FIELDS = (
    "nodes",
    "accept_us_coordinator",
    "accept_us_nodes",
    "execute_us_coordinator",
    "execute_us_nodes",
    "worker_us",
    "jobs_per_s",
)
URL_VARIABLE = "MAINSPRING_CITUS_URL"
COUNT, ROUNDS, WARM_UP = 60_000, 3, 2_000
QUEUE = noop.definition.queue
POSTMASTER = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)"
OTHERS = f"""
select result::int from run_command_on_all_nodes($${POSTMASTER}$$) join pg_dist_node using (nodeid)
where groupid <> 0"""  # noqa: S608  nothing comes from outside


async def run(seconds: float, *, rounds: int = ROUNDS) -> Numbers:
    """`seconds` is the patience with which the runs may be executed."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        raise SystemExit(f"{URL_VARIABLE} names no coordinator of a Citus cluster on this machine.")
    await _make_anew(url)
    with tempfile.NamedTemporaryFile() as counter:
        Path(counter.name).write_bytes(bytes(8))
        os.environ[COUNTER_VARIABLE] = counter.name
        async with observer(url) as looker, Mainspring(url) as client:
            servers = await _servers(looker)
            with Worker(url, queues=[QUEUE]) as worker:
                await fill(url, WARM_UP)
                await _executed(looker, WARM_UP, seconds)
                bench = Bench(url, looker, client, worker, servers, seconds)
                return medians([await bench.round(number) for number in range(1, rounds + 1)])


async def _make_anew(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("drop schema if exists mainspring cascade")
    await connection.close()
    database = Database(url)
    mine = await database.connect()
    await migrate(mine)
    await mine.close()
    await database.close()


async def _servers(looker: Looker) -> list[int]:
    """The processes of the servers: the one that is asked first, then those of the other nodes."""
    own = int(await looker.fetchval(POSTMASTER))
    return [own, *(row["result"] for row in (await looker.fetch(OTHERS) if await has_citus(looker) else []))]  # type: ignore[arg-type]


async def _executed(looker: Looker, count: int, seconds: float) -> None:
    async def have_ended() -> bool:
        return bool(await looker.fetchval("select count(*) >= $1 from attempt", count))

    if not await wait_until(have_ended, seconds=seconds, every=1.0):  # each look asks all shards of all days
        raise RuntimeError(f"Not all of {count:,} runs have ended within {seconds:.0f} s.")


class Bench:
    """A database with one worker, and the servers that it is made of."""

    def __init__(
        self, url: str, looker: Looker, client: Mainspring, worker: Worker, servers: list[int], patience: float
    ) -> None:
        self._url = url
        self._looker = looker
        self._client = client
        self._worker = worker
        self._servers = servers
        self._patience = patience

    async def round(self, number: int) -> Numbers:
        """Runs are put in line while their queue is paused, then executed."""
        await self._client.queues.pause(QUEUE, reason="benchmark")
        before = self._costs()
        await fill(self._url, COUNT)
        filled, began = self._costs(), time.perf_counter()
        await self._client.queues.resume(QUEUE)
        await _executed(self._looker, WARM_UP + number * COUNT, self._patience)
        span, after = time.perf_counter() - began, self._costs()
        accept = [1e6 * (now - then) / COUNT for then, now in zip(before, filled, strict=True)]
        execute = [1e6 * (now - then) / COUNT for then, now in zip(filled, after, strict=True)]
        say(f"round {number}: {sum(accept[1:] + execute[1:]):.1f} µs of all servers per run")
        return {
            "nodes": len(self._servers) - 1,
            "accept_us_coordinator": accept[1],
            "accept_us_nodes": sum(accept[2:]),
            "execute_us_coordinator": execute[1],
            "execute_us_nodes": sum(execute[2:]),
            "worker_us": execute[0],
            "jobs_per_s": COUNT / span,
        }

    def _costs(self) -> list[float]:
        """Processor time so far: of the worker, then of each server."""
        return [self._worker.cpu_seconds(), *map(cpu_seconds, self._servers)]


def show(numbers: Numbers) -> str:
    coordinator = numbers["accept_us_coordinator"] + numbers["execute_us_coordinator"]
    nodes = numbers["accept_us_nodes"] + numbers["execute_us_nodes"]
    most = max(coordinator, nodes)
    return "\n".join(
        [
            bar("the server that is asked", coordinator, most, "µs per run"),
            bar(f"{numbers['nodes']:.0f} other nodes", nodes, most, "µs per run"),
            f"  to accept: {numbers['accept_us_coordinator']:.1f} + {numbers['accept_us_nodes']:.1f} µs · to execute:"
            f" {numbers['execute_us_coordinator']:.1f} + {numbers['execute_us_nodes']:.1f} µs"
            f" · {numbers['worker_us']:.1f} µs of the worker · {numbers['jobs_per_s']:,.0f} runs/s here",
        ]
    )
