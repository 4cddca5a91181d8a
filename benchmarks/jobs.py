"""The application that benchmarks run: as little work as possible, so that what is measured is Mainspring."""

from __future__ import annotations

import asyncio
import mmap
import os
from dataclasses import dataclass

from mainspring import Mainspring

COUNTER_VARIABLE = "MAINSPRING_BENCH_COUNTER"
IDLE_QUEUES = ("mail", "images", "reports", "billing", "search")

app = Mainspring()


def _shared_counter() -> memoryview:
    """Eight bytes that all processes of a benchmark see: how many runs have been executed.

    So a producer can keep a line short without asking the database, which would be part of what is measured.
    """
    path = os.environ.get(COUNTER_VARIABLE)
    if path is None:
        return memoryview(bytearray(8)).cast("Q")
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")


executed = _shared_counter()


@app.job(queue="bench")
async def noop(customer: int, plan: str, note: str) -> None:
    """Does nothing with one small payload."""
    executed[0] += 1


@app.job(queue="bench")
async def sleeper(customer: int, plan: str, note: str) -> None:
    """Waits for 0 to 50 ms, as if for somebody else's answer."""
    await asyncio.sleep(customer % 51 / 1000)
    executed[0] += 1


@dataclass
class Call:
    """What `noop` takes, as an item."""

    customer: int
    plan: str
    note: str


@app.job(queue="bench", chunk=100)
async def noop_in_chunks(calls: list[Call]) -> None:
    """As little as `noop`, for many runs at once."""
    executed[0] += len(calls)


@app.job(queue="stranger")
async def stranger(customer: int, plan: str, note: str) -> None:
    """As little, for somebody else, in a queue of its own."""


def _nothing() -> None:
    """Waits for a run that never comes."""


for _queue in IDLE_QUEUES:
    app.job(name=f"nothing_{_queue}", queue=_queue)(_nothing)
