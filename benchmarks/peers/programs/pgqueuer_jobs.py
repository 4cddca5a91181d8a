"""PgQueuer: batches by its own `enqueue` of lists, workers by `pgq run`."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.payload import CALL
from benchmarks.peers.programs.batching import batches
from benchmarks.peers.programs.counting import count_one

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

run = uvloop.run
PAYLOAD = json.dumps(CALL).encode()
_queries: list[Any] = []


@asynccontextmanager
async def worker() -> AsyncIterator[Any]:
    """What `pgq run` starts: connected by the PG… variables of the environment."""
    pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect()))

    @pgq.entrypoint("noop")
    async def noop(job: Any) -> None:
        json.loads(job.payload)
        count_one()

    yield pgq


async def submit(count: int) -> None:
    if not _queries:
        _queries.append(Queries(AsyncpgDriver(await asyncpg.connect())))
    for size in batches(count):
        await _queries[0].enqueue(["noop"] * size, [PAYLOAD] * size, [0] * size)
