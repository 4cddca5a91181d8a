"""One performance of one peer: submit so many jobs, then let workers drain them.

Submit rate: from the first submission to the last acceptance, with no worker running. Drain rate: workers start with
everything in line; the clock starts when all of their processes are at work (or a fifth is done), and stops when the
last job is executed *and* the peer's own books say that nothing is left. Nobody's starting up is counted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.peers.peer import PeerFailed
from benchmarks.peers.roster import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.stage import Stage
    from benchmarks.processes import Process
    from benchmarks.producer import Report

WARM_UP = 100  # submitted by each process before the clock starts
LOOK_EVERY = 0.005
START_PATIENCE = 30.0
HEAD_START = 0.2  # the share after which the clock starts at the latest


@dataclass(frozen=True)
class Rates:
    """Jobs per second."""

    submit: float
    drain: float
    is_complete: bool = True  # whether it drained everything in the time it had


@dataclass(frozen=True)
class Reading:
    at: float
    executed: int


async def perform(stage: Stage, jobs: int, *, patience: float) -> Rates:
    reports = await _submit(stage, jobs)
    submitted = sum(each.submitted for each in reports)
    first, last, is_complete = await _drain(stage, submitted, patience)
    return Rates(submit=submit_rate(reports), drain=drain_rate(first, last), is_complete=is_complete)


def submit_rate(reports: Sequence[Report]) -> float:
    span = max(each.ended for each in reports) - min(each.began for each in reports)
    return sum(each.timed for each in reports) / span


def drain_rate(first: Reading, last: Reading) -> float:
    return (last.executed - first.executed) / (last.at - first.at)


async def _submit(stage: Stage, jobs: int) -> list[Report]:
    with ExitStack() as stack:
        each = -(-jobs // PROCESSES)
        producers = [stack.enter_context(stage.submitting(each, WARM_UP)) for _ in range(PROCESSES)]
        try:
            for producer in producers:
                await producer.is_warm()
            for producer in producers:
                producer.begin()
            return [await producer.report() for producer in producers]
        except RuntimeError as error:
            raise PeerFailed(f"stopped while submitting:\n{stage.last_words()}") from error


async def _drain(stage: Stage, submitted: int, patience: float) -> tuple[Reading, Reading, bool]:
    """The readings at which the clock starts and stops, and whether everything was drained in between."""
    with ExitStack() as stack:
        workers = [stack.enter_context(stage.process(stage.peer.work)) for _ in range(stage.peer.copies)]
        first = await _until_all_work(stage, workers, submitted)
        while (last := _look(stage, workers)).at - first.at < patience:
            if last.executed >= submitted and await stage.remaining() == 0:
                return first, Reading(time.monotonic(), submitted), True
            await asyncio.sleep(LOOK_EVERY)
        return first, last, False


async def _until_all_work(stage: Stage, workers: Sequence[Process], submitted: int) -> Reading:
    until = time.monotonic() + START_PATIENCE
    while time.monotonic() < until:
        reading = _look(stage, workers)
        at_work = sum(count > 0 for count in stage.executed())
        if at_work >= PROCESSES or reading.executed >= HEAD_START * submitted:
            return reading
        await asyncio.sleep(LOOK_EVERY)
    raise PeerFailed(f"had not started to work after {START_PATIENCE:g} s:\n{stage.last_words()}")


def _look(stage: Stage, workers: Sequence[Process]) -> Reading:
    if any(each.process.poll() is not None for each in workers):
        raise PeerFailed(f"stopped while working:\n{stage.last_words()}")
    return Reading(time.monotonic(), sum(stage.executed()))
