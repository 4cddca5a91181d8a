"""Backlog: what claiming a batch costs when little waits and when very much waits.

The two sizes take turns, claim by claim, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from benchmarks import filling
from benchmarks.harness import Numbers, bar, durable_server, fresh_database, medians, pass_time, say
from benchmarks.jobs import noop
from mainspring.store import leases, workers
from mainspring.store.database import Database
from mainspring.store.migrate import check_schema
from mainspring.worker.claim_front import ClaimFront
from mainspring.worker.claimer import MAX_BATCH

if TYPE_CHECKING:
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer

FIELDS = ("ratio", "claim_ms_small", "claim_ms_large")
ROUNDS = 3
SMALL, LARGE = 10_000, 2_000_000
SETTLE = 2.0  # for the writes of filling to calm down


class Line:
    """A database with so many ready runs, and a claimer's memory of where they begin."""

    def __init__(self, connection: Connection, run: NewRun, lanes: int, worker_id: UUID) -> None:
        self._connection = connection
        self._run = run
        self._fronts = [ClaimFront() for _ in range(lanes)]
        self._claims = 0
        self._worker_id = worker_id

    async def claim(self) -> float:
        """Claim one batch as a worker does; answers how many seconds it took. Then put as many back."""
        lane = self._claims % len(self._fronts)
        self._claims += 1
        front = self._fronts[lane]
        lease_id, began = uuid4(), time.monotonic()
        from_the_front, order = front.is_look_due(began), front.order()
        rows = await leases.claim(
            self._connection,
            lane=lane,
            line=self._run.line_id,
            priorities=order,
            fronts=[0 if from_the_front else front.ranks[priority] for priority in order],
            count=MAX_BATCH,
            lease_id=lease_id,
            worker_id=self._worker_id,
        )
        ended = time.monotonic()
        front.learn(rows, from_the_front=from_the_front, began=began, now=ended)
        if len(rows) < MAX_BATCH:
            raise RuntimeError(f"A claim found {len(rows)} runs where at least {MAX_BATCH} waited.")
        await self._connection.execute("delete from lease where lane = $1 and id = $2", lane, lease_id)
        await filling.add(self._connection, lane, MAX_BATCH, self._run)
        return ended - began


async def run(seconds: float, *, small: int = SMALL, large: int = LARGE) -> Numbers:
    rounds = []
    async with durable_server() as server, AsyncExitStack() as stack:
        lines = [await _line(server, stack, name, size) for name, size in (("small", small), ("large", large))]
        await pass_time(SETTLE, "settling")
        await _take_turns(lines, 1.0)  # warm-up
        for number in range(1, ROUNDS + 1):
            little, much = await _take_turns(lines, seconds)
            rounds.append({"ratio": much / little, "claim_ms_small": little, "claim_ms_large": much})
            say(f"round {number} of {ROUNDS}: {little:.2f} ms with {small:,}, {much:.2f} ms with {large:,} in line")
    return medians(rounds)


async def _line(server: EmbeddedServer, stack: AsyncExitStack, name: str, size: int) -> Line:
    say(f"filling a line with {size:,} runs")
    url = await fresh_database(server, name)
    new_run = await filling.fill(url, size)
    connection = await Database(url).connect("claim", raw_time=True)
    stack.push_async_callback(connection.close)
    return Line(connection, new_run, await check_schema(connection), await _worker(connection))


async def _worker(connection: Connection) -> UUID:
    """Only a worker that lives may claim."""
    worker_id = uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="benchmark",
        pid=os.getpid(),
        queues=[noop.definition.queue],
        handlers=[noop.name],
        slots=MAX_BATCH,
        lease_seconds=3_600,
        version="benchmark",
    )
    return worker_id


async def _take_turns(lines: list[Line], seconds: float) -> list[float]:
    """The median milliseconds of a claim, for each line."""
    spans: list[list[float]] = [[] for _ in lines]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for line, its in zip(lines, spans, strict=True):
            its.append(1000 * await line.claim())
    return [statistics.median(its) for its in spans]


def show(numbers: Numbers) -> str:
    small, large = numbers["claim_ms_small"], numbers["claim_ms_large"]
    return "\n".join(
        [
            bar(f"{SMALL:,} in line", small, max(small, large), f"ms per claim of {MAX_BATCH}"),
            bar(f"{LARGE:,} in line", large, max(small, large), f"ms per claim of {MAX_BATCH}"),
            f"  ratio {numbers['ratio']:.2f}",
        ]
    )
