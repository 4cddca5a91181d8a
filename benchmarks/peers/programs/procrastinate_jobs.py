"""Procrastinate: `batch_defer_async`, and workers that run many async jobs at once and delete what succeeded."""

from __future__ import annotations

import os

import uvloop
from procrastinate import App, PsycopgConnector

from benchmarks.payload import CALL
from benchmarks.peers.programs.batching import batches
from benchmarks.peers.programs.counting import count_one

CONCURRENCY = 20

run = uvloop.run
app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"], max_size=CONCURRENCY))


@app.task(name="noop")
async def noop(customer: int, plan: str, note: str) -> None:
    count_one()


async def submit(count: int) -> None:
    async with app.open_async():
        for size in batches(count):
            await noop.batch_defer_async(*[CALL] * size)


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="successful")


if __name__ == "__main__":
    uvloop.run(work())
