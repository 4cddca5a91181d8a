"""A process that submits runs of one job as it is ordered, in batches or one by one.

It says when it is warm, begins at the first line on standard input, ends at the second one (or when its orders are
carried out), and prints a report.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
import time
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import uvloop

from benchmarks import limited_jobs
from benchmarks.jobs import app, executed, noop, noop_in_chunks, sleeper, stranger
from benchmarks.payload import CALL, random_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = {
    "noop": noop,
    "noop_in_chunks": noop_in_chunks,
    "sleeper": sleeper,
    "stranger": stranger,
    "keyed": limited_jobs.keyed,
    "serial": limited_jobs.serial,
    "paced": limited_jobs.paced,
}
KEYS = 10_000
RANDOM_CALLS = 20_000  # so many different ones, again and again: as many as wait in line


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    total: int | None = None  # how many to submit at least; without, until told to stop
    warm_up: int = 500  # submitted before it begins
    batch: int = 500
    most_waiting: int | None = 20_000  # how long the line may get
    per_second: float | None = None  # one by one, evenly over time, instead of in batches
    priority: int = 5
    job: Literal["noop", "noop_in_chunks", "sleeper", "stranger", "keyed", "serial", "paced"] = "noop"
    payload: Literal["constant", "random", "keyed"] = "constant"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    submitted: int  # everything, the warm-up included
    timed: int
    began: float  # on the machine's monotonic clock, which all its processes share
    ended: float


class Producing:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._job = JOBS[orders.job].options(priority=orders.priority)
        self._lines = 0
        self._submitted = 0
        self._finished_before = executed[0]
        self._calls = _calls(orders.payload)

    async def run(self) -> Report:
        threading.Thread(target=self._read_lines, daemon=True).start()
        await self._submit(self._orders.warm_up)
        print("warm", flush=True)
        while not self._lines:
            await asyncio.sleep(0.001)
        began = time.monotonic()
        await (self._in_batches() if self._orders.per_second is None else self._one_by_one(self._orders.per_second))
        ended = time.monotonic()
        await app.close()
        await limited_jobs.app.close()
        timed = self._submitted - self._orders.warm_up
        return Report(submitted=self._submitted, timed=timed, began=began, ended=ended)

    def _read_lines(self) -> None:
        for _ in sys.stdin:
            self._lines += 1
        self._lines = 2  # whoever ordered this is gone

    @property
    def _goes_on(self) -> bool:
        return self._lines < 2 and (self._orders.total is None or self._submitted < self._orders.total)

    @property
    def _line_is_long(self) -> bool:
        waiting = self._submitted - (executed[0] - self._finished_before)
        return self._orders.most_waiting is not None and waiting >= self._orders.most_waiting

    async def _in_batches(self) -> None:
        while self._goes_on:
            if self._line_is_long:
                await asyncio.sleep(0.005)
            else:
                await self._submit(self._orders.batch)

    async def _submit(self, count: int) -> None:
        await self._job.submit_many(list(islice(self._calls, count)))
        self._submitted += count

    async def _one_by_one(self, per_second: float) -> None:
        began, count = time.monotonic(), 0
        async with asyncio.TaskGroup() as submissions:
            while self._goes_on:
                await asyncio.sleep(max(0.0, began + count / per_second - time.monotonic()))
                submissions.create_task(self._one(count))
                count += 1

    async def _one(self, number: int) -> None:
        """The moment of the call travels in the payload, so that history can tell how long the whole way took."""
        await self._job.submit(customer=number, plan="pro", note=repr(time.time()))
        self._submitted += 1


def _calls(payload: str) -> Iterator[dict[str, Any]]:
    if payload == "constant":
        return cycle([CALL])
    if payload == "random":
        return cycle(random_calls(RANDOM_CALLS))
    return ({**call, "customer": random.randrange(KEYS)} for call in cycle(random_calls(RANDOM_CALLS)))


def main() -> None:
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    with contextlib.suppress(BrokenPipeError):
        print(msgspec.json.encode(uvloop.run(Producing(orders).run())).decode(), flush=True)


if __name__ == "__main__":
    main()
