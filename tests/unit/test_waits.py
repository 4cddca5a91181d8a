"""Handlers that wait for other runs: who has a slot meanwhile, and who goes on first."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import until

from mainspring.clock import SystemClock
from mainspring.errors import Conflict
from mainspring.model.job import JobDefinition
from mainspring.model.line import Line
from mainspring.store.columns import AttemptRecord
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
    from collections.abc import Callable

    from mainspring.store.leases import Settled
    from mainspring.worker.work import Work

GRACE = 600.0


class Bench:
    """An executor whose handlers do what the test says; each job has a number."""

    def __init__(self, slots: int, *handlers: Callable[[], Any]) -> None:
        self.settled: list[Settled] = []
        lines = Lines(queues=["default"], labels=[])
        lines.learn(tenant_lines({Line("default"): 1}))
        worker_id, clock = uuid4(), SystemClock()
        reporter = Reporter(worker_id=worker_id, database=Database("postgresql://nowhere"), clock=clock)
        self.executor = Executor(
            worker=WorkerIdentity(id=worker_id, lanes=1, clock=clock),
            settings=WorkerSettings(slots=slots, cancel_grace=GRACE),
            jobs=served_jobs(
                {number: handler_of(JobDefinition(name=f"job-{number}"), each) for number, each in enumerate(handlers)}
            ),
            lines=lines,
            performer=Performer(threads=slots * (1 + MOST_PER_SLOT), reporter=reporter),
            settle=settling(self.settled.append),
            has_room=asyncio.Event(),
        )

    def take(self, *jobs: int) -> list[Work]:
        rows: list[Any] = [claimed_row(job_id=job) for job in jobs]
        return self.executor.take(Lease(0, uuid4(), len(rows)), 1, rows)

    @property
    def queueing(self) -> int:
        """How many came back and have no slot yet."""
        return len(self.executor._waits._returning)

    @property
    def outcomes(self) -> list[str]:
        return [str(AttemptRecord(*each.record).outcome) for each in self.settled]


class Child:
    """A run that handlers wait for."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.said: list[str] = []

    async def wait(self) -> None:
        self.said.append("waits")
        async with without_slot():
            await self.is_over.wait()
        self.said.append("goes on")

    async def quick(self) -> None:
        self.said.append("quick")


async def test_a_handler_that_waits_leaves_its_slot_and_takes_one_again() -> None:
    child, gate = Child(), asyncio.Event()
    bench = Bench(1, child.wait, gate.wait)
    bench.take(0, 1)
    await until(lambda: bench.executor.running == 2)
    assert bench.executor.capacity.free_slots() == 0

    child.is_over.set()
    await until(lambda: bench.queueing)
    assert child.said == ["waits"], "somebody else has the slot"
    gate.set()
    await until(lambda: len(bench.settled) == 2)
    assert child.said == ["waits", "goes on"]
    assert bench.executor.capacity.free_slots() == 1


async def test_whoever_comes_back_goes_before_new_runs() -> None:
    child, gate = Child(), asyncio.Event()
    bench = Bench(1, child.wait, gate.wait, child.quick)
    bench.take(0, 1, 2, 2)
    await until(lambda: bench.executor.running == 2)
    child.is_over.set()
    await until(lambda: bench.queueing)

    gate.set()

    await until(lambda: len(bench.settled) == 4)
    assert child.said == ["waits", "goes on", "quick", "quick"]


async def test_never_more_handlers_than_slots_are_active() -> None:
    active, most = 0, 0
    is_over = asyncio.Event()

    async def work() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0)  # the others' turn
        active -= 1

    async def wait() -> None:
        await work()
        async with without_slot():
            await is_over.wait()
        await work()

    bench = Bench(3, wait, work)
    bench.take(*[0] * 20, *[1] * 20)
    await until(lambda: len(bench.settled) == 20)
    is_over.set()
    await until(lambda: len(bench.settled) == 40)

    assert most == 3
    assert bench.executor.capacity.free_slots() == 3


async def test_one_that_waits_for_several_runs_is_without_a_slot_until_the_last_has_ended() -> None:
    """Else the first that ended would give it the slot that the second needs."""
    first, second, gate = Child(), Child(), asyncio.Event()

    async def wait_for_both() -> None:
        await asyncio.gather(first.wait(), second.wait())

    bench = Bench(1, wait_for_both, gate.wait)
    bench.take(0)
    await until(lambda: bench.executor.capacity.free_slots() == 1)
    first.is_over.set()
    await until(lambda: "goes on" in first.said)
    assert bench.executor.capacity.free_slots() == 1

    bench.take(1)
    second.is_over.set()
    gate.set()
    await until(lambda: len(bench.settled) == 2)


async def test_one_that_waits_again_while_another_of_its_tasks_queues_lets_that_one_go_on() -> None:
    first, second, gate = Child(), Child(), asyncio.Event()

    async def wait_for_one_after_the_other() -> None:
        early = asyncio.create_task(first.wait())
        await until(lambda: bench.queueing)  # for the slot, which somebody else has
        await second.wait()
        await early

    bench = Bench(1, wait_for_one_after_the_other, gate.wait)
    bench.take(0, 1)
    await until(lambda: bench.executor.running == 2)
    first.is_over.set()
    await until(lambda: first.said == ["waits", "goes on"])
    assert second.said == ["waits"]
    second.is_over.set()
    gate.set()
    await until(lambda: len(bench.settled) == 2)
    assert bench.outcomes == ["succeeded", "succeeded"]


async def test_a_handler_in_a_thread_does_the_same() -> None:
    """Its waits are made in another event loop, in another thread."""
    child, gate = Child(), asyncio.Event()
    is_over, threads = threading.Event(), []

    async def wait() -> None:
        async with without_slot():
            await asyncio.to_thread(is_over.wait)

    def handler() -> None:
        threads.append(threading.current_thread())
        asyncio.run(wait())

    bench = Bench(1, handler, gate.wait, child.quick)
    bench.take(0, 1)
    await until(lambda: bench.executor.running == 2)
    is_over.set()
    await until(lambda: bench.queueing)
    assert not bench.settled
    bench.take(2)
    gate.set()
    await until(lambda: len(bench.settled) == 3)
    assert bench.outcomes == ["succeeded"] * 3
    assert threads[0] is not threading.current_thread()


async def test_threads_that_wait_do_not_keep_others_from_a_thread() -> None:
    is_over = threading.Event()

    async def wait() -> None:
        async with without_slot():
            await asyncio.to_thread(is_over.wait)

    def parent() -> None:
        asyncio.run(wait())

    bench = Bench(1, parent, is_over.set)
    bench.take(0, 0, 0, 1)

    await until(lambda: len(bench.settled) == 4)
    assert bench.outcomes == ["succeeded"] * 4


async def test_too_many_that_wait_are_refused() -> None:
    child = Child()
    refused: list[Conflict] = []

    async def wait() -> None:
        try:
            await child.wait()
        except Conflict as error:
            refused.append(error)

    bench = Bench(1, wait)
    bench.take(*[0] * (MOST_PER_SLOT + 2))
    await until(lambda: len(bench.settled) == 2)
    child.is_over.set()
    await until(lambda: len(bench.settled) == MOST_PER_SLOT + 2)

    assert [error.code for error in refused] == ["too-many-waiting"] * 2
    assert "more slots" in str(refused[0])
    assert bench.executor.capacity.free_slots() == 1


@pytest.mark.parametrize("is_queueing", [False, True])
async def test_one_that_is_cancelled_goes_on_at_once_to_end(is_queueing: bool) -> None:
    child, gate = Child(), asyncio.Event()
    bench = Bench(1, child.wait, gate.wait)
    parent, _ = bench.take(0, 1)
    await until(lambda: bench.executor.running == 2)
    if is_queueing:
        child.is_over.set()
        await until(lambda: bench.queueing)

    bench.executor.cancel(parent)

    await until(lambda: bench.outcomes == ["cancelled"])
    assert child.said == ["waits"]
    gate.set()
    await until(lambda: len(bench.settled) == 2)
    assert bench.executor.capacity.free_slots() == 1


async def test_one_that_loses_patience_itself_takes_a_slot_before_it_goes_on() -> None:
    gate, said = asyncio.Event(), []

    async def wait_a_little() -> None:
        try:
            async with asyncio.timeout(0.01), without_slot():
                await asyncio.Event().wait()
        except TimeoutError:
            said.append("goes on")

    bench = Bench(1, wait_a_little, gate.wait)
    bench.take(0, 1)
    await until(lambda: bench.queueing)
    assert not said
    gate.set()
    await until(lambda: len(bench.settled) == 2)
    assert said == ["goes on"]


async def test_what_waits_at_the_end_of_a_drain_goes_back_in_line() -> None:
    child = Child()
    bench = Bench(1, child.wait)
    bench.take(0)
    await until(lambda: bench.executor.capacity.free_slots() == 1)

    bench.executor.stop_taking()
    bench.executor.stop_running()

    await until(lambda: bench.outcomes == ["interrupted"])


async def test_a_drain_lets_what_comes_back_go_on() -> None:
    child = Child()
    bench = Bench(1, child.wait)
    bench.take(0)
    await until(lambda: bench.executor.capacity.free_slots() == 1)
    bench.executor.stop_taking()

    child.is_over.set()

    await until(lambda: bench.outcomes == ["succeeded"])


async def test_one_that_is_abandoned_while_it_waits_keeps_its_slot_from_others_until_it_ends() -> None:
    is_over = threading.Event()

    async def wait() -> None:
        async with without_slot():
            await asyncio.to_thread(is_over.wait)

    bench = Bench(2, lambda: asyncio.run(wait()))
    (work,) = bench.take(0)
    await until(lambda: bench.executor.capacity.free_slots() == 2)
    bench.executor.interrupt([work], grace=0.0)
    await until(lambda: bench.outcomes == ["interrupted"])
    assert bench.executor.capacity.free_slots() == 1

    is_over.set()
    await until(lambda: bench.executor.capacity.free_slots() == 2)


async def test_what_gets_the_slot_does_not_begin_in_the_context_of_who_left_it() -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody's")
    child, seen = Child(), []

    async def wait() -> None:
        whose.set("the parent's")
        await child.wait()

    async def look() -> None:
        seen.append(whose.get())
        child.is_over.set()

    bench = Bench(1, wait, look)
    bench.take(0, 1)
    await until(lambda: len(bench.settled) == 2)

    assert seen == ["nobody's"]


async def test_outside_of_handlers_nothing_is_given_up() -> None:
    async with without_slot():
        pass
