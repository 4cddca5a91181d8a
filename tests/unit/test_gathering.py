"""Runs that wait for others to share a call of their handler: when they are called, with whom, what they take up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import until

from mainspring.clock import SystemClock
from mainspring.model.job import JobDefinition
from mainspring.model.line import Line
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

from .hands import claimed_row, served_jobs, tenant_lines

if TYPE_CHECKING:
    from mainspring.worker.work import Work

HERE, ELSEWHERE = 1, 2  # lines
STORE, PLAIN = 7, 8  # jobs
SIZE = 4
NEVER = timedelta(seconds=60)  # as long as a run may wait: longer than any of these tests


@dataclass
class Item:
    number: int


class Bench:
    """An executor with a chunk handler whose calls last until they are told to end."""

    def __init__(self, slots: int = 10, wait: timedelta = NEVER) -> None:
        self.settled: list[Any] = []
        self.calls: list[list[int]] = []
        self.gate = asyncio.Semaphore(0)
        lines = Lines(queues=["default", "other"], labels=[])
        lines.learn(tenant_lines({Line("default"): HERE, Line("other"): ELSEWHERE}))
        worker_id, self.clock = uuid4(), SystemClock()
        database = Database("postgresql://nowhere")
        reporter = Reporter(worker_id=worker_id, database=database, clock=self.clock)
        self.executor = Executor(
            worker=WorkerIdentity(id=worker_id, lanes=1, clock=self.clock),
            settings=WorkerSettings(slots=slots, threads=slots, cancel_grace=0.01),
            jobs=served_jobs(
                {
                    STORE: handler_of(JobDefinition(name="store", chunk=SIZE, chunk_wait=wait), self._store),
                    PLAIN: handler_of(JobDefinition(name="plain"), self._plain),
                }
            ),
            lines=lines,
            performer=Performer(threads=slots, reporter=reporter),
            settle=self.settled.append,
            has_room=asyncio.Event(),
        )
        self.capacity = self.executor.capacity

    async def _store(self, items: list[Item]) -> None:
        self.calls.append([item.number for item in items])
        await self.gate.acquire()

    async def _plain(self) -> None:
        await self.gate.acquire()

    def take(self, *numbers: int, line: int = HERE, **values: Any) -> list[Work]:
        rows = [
            claimed_row(**{"job_id": STORE, "job_version": 1, "payload": b'{"number":%d}' % number} | values)
            for number in numbers
        ]
        return self.executor.take(Lease(0, uuid4(), len(rows)), line, rows)

    def take_plain(self, count: int) -> list[Work]:
        return self.executor.take(
            Lease(0, uuid4(), count), HERE, [claimed_row(job_id=PLAIN, job_version=1) for _ in range(count)]
        )

    def fates(self) -> list[tuple[str, bool]]:
        return [(each.fate.value, each.is_traced) for each in self.settled]


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# ── when a chunk is called ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_chunk_is_called_when_it_is_full(bench: Bench) -> None:
    waiting = bench.take(1, 2, 3)
    assert [work.started_at for work in waiting] == [None, None, None]
    bench.take(4, 5)

    await until(lambda: bench.calls)
    assert bench.calls == [[1, 2, 3, 4]]
    assert (bench.executor.running, bench.capacity.gatherer.waiting) == (1, 1)


async def test_a_chunk_is_called_when_its_first_run_has_waited_long_enough() -> None:
    bench = Bench(wait=timedelta(milliseconds=1))
    bench.take(1, 2)

    await until(lambda: bench.calls)
    assert bench.calls == [[1, 2]]
    assert len(bench.capacity.gatherer) == 0


async def test_who_waits_for_others_is_not_given_back_as_if_the_worker_were_busy(bench: Bench) -> None:
    bench.take(1, 2)
    bench.executor.give_back_waiting()
    bench.take(3, 4)

    await until(lambda: bench.calls)
    assert (bench.calls, bench.settled) == ([[1, 2, 3, 4]], [])


async def test_a_chunk_that_waits_for_a_slot_is_given_back_like_any_run() -> None:
    bench = Bench(slots=1)
    bench.take(*range(8))
    await until(lambda: bench.calls)
    bench.executor.give_back_waiting()

    assert bench.fates() == [("give_back", False)] * SIZE
    assert bench.capacity.in_hand == SIZE


async def test_a_run_that_would_expire_while_it_waits_does_not_wait(bench: Bench) -> None:
    soon = (bench.executor.now()[0] + 30_000_000,)
    bench.take(1)
    bench.take(2, 3, expires_at=soon)

    await until(lambda: bench.calls)
    assert bench.calls == [[1, 2, 3]]


async def test_a_run_that_expires_later_waits(bench: Bench) -> None:
    bench.take(1, expires_at=(bench.executor.now()[0] + 3_600_000_000,))
    await asyncio.sleep(0)

    assert (bench.calls, bench.capacity.gatherer.waiting) == ([], 1)


# ── with whom ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_of_other_lines_and_versions_do_not_share_a_call(bench: Bench) -> None:
    bench.take(1, 2, 3)
    bench.take(4, line=ELSEWHERE)
    bench.take(5, job_version=2)
    bench.take(6)

    await until(lambda: bench.calls)
    assert bench.calls == [[1, 2, 3, 6]]
    assert (len(bench.capacity.gatherer), bench.capacity.gatherer.waiting) == (2, 2)


async def test_a_run_that_was_there_when_a_worker_crashed_is_called_alone(bench: Bench) -> None:
    bench.take(1, 2, 3)
    bench.take(4, special='{"crashes":1}')

    await until(lambda: bench.calls)
    assert bench.calls == [[4]]
    assert bench.capacity.gatherer.waiting == 3


async def test_a_run_whose_own_policies_cannot_be_read_is_settled_alone(bench: Bench) -> None:
    bench.take(1, 2, 3)
    bench.take(4, special='{"crashes":"many"}')

    assert bench.fates() == [("bury", True)]
    assert bench.capacity.gatherer.waiting == 3


async def test_a_chunk_waits_for_a_slot_as_its_most_urgent_run_does() -> None:
    bench = Bench(slots=1)
    bench.take_plain(1)
    bench.take_plain(1)
    bench.take(1, 2, 3, priority=7)
    bench.take(4, priority=0)
    bench.gate.release()

    await until(lambda: bench.calls)
    assert bench.calls == [[1, 2, 3, 4]]


# ── what they take up ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_takes_one_slot_and_its_runs_are_all_in_hand(bench: Bench) -> None:
    bench.take(*range(2 * SIZE + 1))
    await until(lambda: len(bench.calls) == 2)

    assert (bench.capacity.free_slots(), bench.capacity.in_hand) == (8, 2 * SIZE + 1)
    for _ in bench.calls:
        bench.gate.release()
    await until(lambda: len(bench.settled) == 2 * SIZE)
    assert (bench.capacity.free_slots(), bench.capacity.in_hand) == (10, 1)


async def test_room_is_left_for_a_chunk_that_gathers_and_for_what_completes_it() -> None:
    bench = Bench(slots=1)
    assert (bench.capacity.room(), bench.capacity.room(HERE)) == (1, 1)
    bench.take(1)

    assert (bench.capacity.room(), bench.capacity.room(ELSEWHERE), bench.capacity.room(HERE)) == (0, 0, SIZE - 1)
    assert not bench.capacity.has_spare_slot
    bench.take(2, 3, 4)
    assert bench.capacity.room(HERE) == 0, "it has the slot"


async def test_a_run_that_is_cancelled_while_it_waits_ends_at_once_and_leaves_nothing_behind(bench: Bench) -> None:
    first, second = bench.take(1, 2)
    bench.executor.cancel(first)

    (settled,) = bench.settled
    assert (settled.run_id, settled.fate.value) == (first.row[ID], "end")
    bench.executor.cancel(second)
    assert (len(bench.capacity.gatherer), bench.capacity.in_hand, bench.executor.is_idle) == (0, 0, True)


async def test_a_drain_gives_back_who_waits_for_others(bench: Bench) -> None:
    bench.take(1, 2)
    bench.executor.stop_taking()
    bench.take(3)

    assert bench.fates() == [("give_back", False)] * 3
    assert bench.executor.is_idle
    assert bench.calls == []


async def test_a_chunk_none_of_whose_runs_may_begin_takes_no_slot() -> None:
    bench = Bench(slots=1)
    bench.take_plain(1)
    works = bench.take(1, 2, 3, 4)
    for work in works:
        bench.executor.cancel(work)
    bench.gate.release()
    await until(lambda: len(bench.settled) == 5)

    assert (bench.calls, bench.capacity.free_slots(), bench.capacity.in_hand) == ([], 1, 0)
