"""Huey on Valkey: no results kept, blocking reads, worker processes by its own program."""

from __future__ import annotations

import os

from huey import RedisHuey

from benchmarks.payload import CALL
from benchmarks.peers.programs.counting import count_one

huey = RedisHuey("peers", url=os.environ["VALKEY_URL"], results=False)


@huey.task(name="noop")
def noop(customer: int, plan: str, note: str) -> None:
    count_one()


def submit(count: int) -> None:
    for _ in range(count):
        noop(**CALL)
