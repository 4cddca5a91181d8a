"""Dramatiq on Valkey: messages one by one (it has no batches), processes of threads by its own program."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.payload import CALL
from benchmarks.peers.programs.counting import count_one

broker = RedisBroker(url=os.environ["VALKEY_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(customer: int, plan: str, note: str) -> None:
    count_one()


def submit(count: int) -> None:
    for _ in range(count):
        noop.send(**CALL)
