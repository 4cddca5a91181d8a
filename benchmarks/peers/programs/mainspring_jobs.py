"""Mainspring: batches by COPY, supervised worker processes, history kept."""

from __future__ import annotations

import uvloop

from benchmarks.payload import CALL
from benchmarks.peers.programs.batching import batches
from benchmarks.peers.programs.counting import count_one
from mainspring import Mainspring

run = uvloop.run
app = Mainspring()


@app.job
async def noop(customer: int, plan: str, note: str) -> None:
    count_one()


async def submit(count: int) -> None:
    for size in batches(count):
        await noop.submit_many([CALL] * size)
