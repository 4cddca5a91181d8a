"""arq on Valkey: many submissions at once, workers that run many jobs at once and keep no results."""

from __future__ import annotations

import os
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings

from benchmarks.payload import CALL
from benchmarks.peers.programs.batching import many_at_once
from benchmarks.peers.programs.counting import count_one

uvloop.install()  # its own program takes whatever loop is installed
run = uvloop.run
SETTINGS = RedisSettings(unix_socket_path=os.environ["VALKEY_URL"].removeprefix("unix://"))
_pool: list[Any] = []


async def noop(context: dict[str, Any], customer: int, plan: str, note: str) -> None:
    count_one()


class WorkerSettings:
    functions = (noop,)
    redis_settings = SETTINGS
    max_jobs = 100
    poll_delay = 0.01
    keep_result = 0
    log_results = False


async def submit(count: int) -> None:
    if not _pool:
        _pool.append(await create_pool(SETTINGS))
    await many_at_once(lambda: _pool[0].enqueue_job("noop", **CALL), count)
