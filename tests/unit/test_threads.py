"""Threads of an executor: handlers that are not async need one besides a slot, and there are fewer of them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import until

from mainspring.clock import SystemClock
from mainspring.model.job import JobDefinition
from mainspring.model.line import Delivery, Line
from mainspring.store.columns import ID
from mainspring.store.database import Database
from mainspring.store.leases import Lease
from mainspring.worker.executor import Executor
from mainspring.worker.lines import Lines
from mainspring.worker.performer import Performer
from mainspring.worker.registration import WorkerIdentity
from mainspring.worker.registry import handler_of
from mainspring.worker.reporter import Reporter
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.waits import MOST_PER_SLOT, without_slot

from .hands import claimed_row, served_jobs, settling, tenant_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.leases import Settled
    from mainspring.worker.work import Work

PATIENCE = 60.0
PLAIN, ONCE = 1, 2
BLOCKING, QUICK, PARENT = 1, 2, 3
SLOTS, THREADS = 10, 2


class Bench:
    """An executor with few threads. Its blocking handlers end one at a time, when told so."""

    def __init__(self) -> None:
        self.settled: list[Settled] = []
        self.gate = threading.Semaphore(0)
        self.lock, self.active, self.most_active = threading.Lock(), 0, 0
        self.child_is_over = threading.Event()
        lines = Lines(queues=["default"], labels=[])
        lines.learn(tenant_lines({Line("default"): PLAIN, Line("default", (), Delivery.AT_MOST_ONCE): ONCE}))
        worker_id, clock = uuid4(), SystemClock()
        reporter = Reporter(worker_id=worker_id, database=Database("postgresql://nowhere"), clock=clock)
        handlers = {BLOCKING: self._block, QUICK: self._quick, PARENT: self._wait_for_child}
        self.executor = Executor(
            worker=WorkerIdentity(id=worker_id, lanes=1, clock=clock),
            settings=WorkerSettings(slots=SLOTS, threads=THREADS, cancel_grace=0.0),
            jobs=served_jobs(
                {number: handler_of(JobDefinition(name=f"job-{number}"), it) for number, it in handlers.items()}
            ),
            lines=lines,
            performer=Performer(threads=SLOTS * (1 + MOST_PER_SLOT), reporter=reporter),
            settle=settling(self.settled.append),
            has_room=asyncio.Event(),
        )

    def _block(self) -> None:
        with self.lock:
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        self.gate.acquire()
        with self.lock:
            self.active -= 1

    async def _quick(self) -> None: ...

    def _wait_for_child(self) -> None:
        asyncio.run(self._without_slot())

    async def _without_slot(self) -> None:
        async with without_slot():
            await asyncio.to_thread(self.child_is_over.wait)

    def take(self, *jobs: int, priority: int = 5, line: int = PLAIN) -> list[Work]:
        rows: list[Any] = [claimed_row(job_id=job, priority=priority) for job in jobs]
        return self.executor.take(Lease(0, uuid4(), len(rows)), line, rows)

    async def finish(self, count: int) -> None:
        wanted = len(self.settled) + count
        self.gate.release(count)
        await until(lambda: len(self.settled) == wanted)

    def started(self, works: list[Work]) -> list[bool]:
        """Which of them have, or had, a slot."""
        return [work in self.executor.running_works or work.started_at is not None for work in works]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.child_is_over.set()
    bench.gate.release(1_000)
    bench.executor.stop_taking()
    await until(lambda: bench.executor.is_idle)


async def test_no_more_handlers_are_in_threads_than_there_are_threads(bench: Bench) -> None:
    works = bench.take(*[BLOCKING] * 6)

    assert bench.started(works) == [True, True, False, False, False, False]
    await until(lambda: bench.active == THREADS)
    await bench.finish(6)
    assert bench.most_active == THREADS


async def test_async_runs_start_while_all_threads_are_taken(bench: Bench) -> None:
    blocked = bench.take(*[BLOCKING] * 6)
    (quick,) = bench.take(QUICK)

    await until(lambda: bench.settled)
    assert [each.run_id for each in bench.settled] == [quick.row[ID]]
    assert bench.started(blocked) == [True, True, False, False, False, False]


async def test_runs_that_wait_for_a_thread_take_no_slot(bench: Bench) -> None:
    bench.take(*[BLOCKING] * 6)

    assert bench.executor.capacity.free_slots() == SLOTS - THREADS
    assert bench.executor.capacity.has_spare_slot
    assert bench.executor.capacity.room() >= SLOTS - THREADS
    assert bench.executor.capacity.thread_room() == THREADS - 6, "no more of them are wanted here"


async def test_the_most_urgent_gets_the_next_thread_and_then_whoever_came_first(bench: Bench) -> None:
    bench.take(BLOCKING, BLOCKING)
    first, second = bench.take(BLOCKING, BLOCKING)
    (urgent,) = bench.take(BLOCKING, priority=0)

    orders = []
    for _ in range(3):
        await bench.finish(1)
        orders.append(bench.started([urgent, first, second]))
    assert orders == [[True, False, False], [True, True, False], [True, True, True]]


async def test_those_that_wait_too_long_for_a_thread_are_given_back(bench: Bench) -> None:
    *_, waiting = bench.take(*[BLOCKING] * 3)
    bench.executor.give_back_waiting()

    assert [(each.run_id, each.fate.value) for each in bench.settled] == [(waiting.row[ID], "give_back")]
    assert bench.executor.capacity.thread_room() == 0


async def test_a_handler_that_waits_for_another_run_leaves_its_thread_to_that_run(bench: Bench) -> None:
    bench.take(*[PARENT] * THREADS)
    await until(lambda: bench.executor.capacity.free_threads() == THREADS)
    works = bench.take(*[BLOCKING] * THREADS)

    assert bench.started(works) == [True] * THREADS
    bench.child_is_over.set()
    bench.take(QUICK)
    await until(lambda: len(bench.settled) == 1)
    assert bench.executor.running == 2 * THREADS, "who comes back waits for a thread as for a slot"
    await bench.finish(2 * THREADS)
    assert bench.executor.capacity.free_threads() == THREADS


async def test_a_handler_that_would_not_stop_leaves_the_others_their_threads(bench: Bench) -> None:
    works = bench.take(*[BLOCKING] * THREADS)
    await until(lambda: bench.active == THREADS)
    for work in works:
        bench.executor.cancel(work)
    await until(lambda: len(bench.settled) == THREADS)

    assert bench.executor.capacity.free_threads() == THREADS
    assert bench.executor.capacity.free_slots() == SLOTS - THREADS, "as before, its slot is not used"
    assert bench.started(bench.take(BLOCKING)) == [True]


# ── runs that may not wait here ─────────────────────────────────────────────────────────────────────────────────


async def test_what_may_not_wait_and_finds_no_thread_goes_back_unstarted(bench: Bench) -> None:
    bench.take(*[BLOCKING] * THREADS)
    once, other = bench.take(BLOCKING, QUICK, line=ONCE)

    assert bench.started([once, other]) == [False, True]
    assert [(each.fate.value, each.is_traced) for each in bench.settled] == [("give_back", False)]


async def test_a_thread_that_is_kept_stays_free_whoever_waits_until_it_is_released(bench: Bench) -> None:
    *_, waiting = bench.take(*[BLOCKING] * (THREADS + 1))
    bench.executor.capacity.keep_a_thread()
    await bench.finish(1)

    assert bench.executor.capacity.free_threads() == 1
    assert not bench.executor.capacity.has_spare_thread
    (once,) = bench.take(BLOCKING, line=ONCE)
    assert bench.started([once, waiting]) == [True, False]
    await bench.finish(1)
    bench.executor.capacity.release_thread()
    assert bench.started([waiting]) == [True]
