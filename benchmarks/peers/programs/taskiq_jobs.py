"""Taskiq on Valkey: its stream broker, which acknowledges and reads in batches; many submissions at once."""

from __future__ import annotations

import os

import uvloop
from taskiq_redis import RedisStreamBroker

from benchmarks.payload import CALL
from benchmarks.peers.programs.batching import many_at_once
from benchmarks.peers.programs.counting import count_one

run = uvloop.run
broker = RedisStreamBroker(os.environ["VALKEY_URL"], xread_count=500)
_started: list[bool] = []


@broker.task(task_name="noop")
async def noop(customer: int, plan: str, note: str) -> None:
    count_one()


async def submit(count: int) -> None:
    if not _started:
        await broker.startup()  # which makes the group of consumers, so that nothing is missed before they start
        _started.append(True)
    await many_at_once(lambda: noop.kiq(**CALL), count)
