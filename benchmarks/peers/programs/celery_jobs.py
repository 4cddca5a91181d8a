"""Celery on Valkey: JSON messages, no results kept, many prefetched, as its guide says for many short tasks."""

from __future__ import annotations

import os

from celery import Celery

from benchmarks.payload import CALL
from benchmarks.peers.programs.counting import count_one

app = Celery("peers", broker=os.environ["VALKEY_URL"].replace("unix://", "redis+socket://"))
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=128,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
    worker_enable_remote_control=False,
)


@app.task(name="noop")
def noop(customer: int, plan: str, note: str) -> None:
    count_one()


def submit(count: int) -> None:
    """One connection for all, rather than one from the pool for each."""
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            noop.apply_async(kwargs=CALL, producer=producer)
