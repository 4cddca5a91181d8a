"""Slots of an executor: who waits for one, who may not wait, and a slot that is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import until

from mainspring.clock import SystemClock
from mainspring.model.job import JobDefinition
from mainspring.model.line import Delivery, Line
from mainspring.store.columns import ID
from mainspring.store.database import Database
from mainspring.store.leases import Fate, Lease
from mainspring.worker.executor import Executor
from mainspring.worker.lines import Lines
from mainspring.worker.performer import Performer
from mainspring.worker.registration import WorkerIdentity
from mainspring.worker.registry import handler_of
from mainspring.worker.reporter import Reporter
from mainspring.worker.settings import WorkerSettings

from .hands import claimed_row, served_jobs, settling, tenant_lines

if TYPE_CHECKING:
    from mainspring.store.leases import Settled
    from mainspring.worker.work import Work

PLAIN, ONCE = 1, 2
THE_JOB = 7


class Bench:
    """An executor whose handlers run until they are told to end."""

    def __init__(self, slots: int) -> None:
        self.settled: list[Settled] = []
        self.gate = asyncio.Semaphore(0)
        lines = Lines(queues=["default"], labels=[])
        lines.learn(tenant_lines({Line("default"): PLAIN, Line("default", (), Delivery.AT_MOST_ONCE): ONCE}))
        worker_id, clock = uuid4(), SystemClock()
        reporter = Reporter(worker_id=worker_id, database=Database("postgresql://nowhere"), clock=clock)
        self.executor = Executor(
            worker=WorkerIdentity(id=worker_id, lanes=1, clock=clock),
            settings=WorkerSettings(slots=slots, cancel_grace=60.0),
            jobs=served_jobs({THE_JOB: handler_of(JobDefinition(name="wait"), self._wait)}),
            lines=lines,
            performer=Performer(threads=slots, reporter=reporter),
            settle=settling(self.settled.append),
            has_room=asyncio.Event(),
        )

    async def _wait(self) -> None:
        await self.gate.acquire()

    def has_started(self, work: Work) -> bool:
        return work in self.executor.running_works or work.started_at is not None

    def take(self, line: int, count: int) -> list[Work]:
        rows: list[Any] = [claimed_row(job_id=THE_JOB) for _ in range(count)]
        return self.executor.take(Lease(0, uuid4(), count), line, rows)

    async def finish_one(self) -> None:
        before = len(self.settled)
        self.gate.release()
        while len(self.settled) == before:
            await asyncio.sleep(0)


@pytest.fixture
async def bench() -> Bench:
    return Bench(slots=2)


async def test_what_may_wait_waits_for_a_slot_and_what_may_not_starts_at_once(bench: Bench) -> None:
    bench.take(PLAIN, 1)
    assert bench.executor.capacity.has_spare_slot
    (once,) = bench.take(ONCE, 1)
    assert bench.has_started(once)
    assert not bench.executor.capacity.has_spare_slot
    (waiting,) = bench.take(PLAIN, 1)

    assert not bench.has_started(waiting)
    await bench.finish_one()
    assert bench.has_started(waiting)


async def test_a_slot_for_which_others_wait_is_not_spare(bench: Bench) -> None:
    bench.take(PLAIN, 4)
    await bench.finish_one()

    assert bench.executor.capacity.free_slots() == 0, "whoever waited has it"
    assert not bench.executor.capacity.has_spare_slot


async def test_a_slot_that_is_kept_stays_free_whoever_waits_until_it_is_released(bench: Bench) -> None:
    bench.take(PLAIN, 4)
    bench.executor.capacity.keep_a_slot()
    bench.executor.capacity.has_room.clear()
    await bench.finish_one()

    assert bench.executor.capacity.free_slots() == 1
    assert bench.executor.capacity.has_room.is_set(), "the claimer has to hear of it"
    (once,) = bench.take(ONCE, 1)
    assert bench.has_started(once)
    bench.executor.capacity.release_slot()
    assert bench.executor.capacity.free_slots() == 0


async def test_a_kept_slot_for_which_nobody_came_goes_to_who_waits(bench: Bench) -> None:
    *_, last = bench.take(PLAIN, 3)
    bench.executor.capacity.keep_a_slot()
    await bench.finish_one()
    assert not bench.has_started(last)

    bench.executor.capacity.release_slot()

    assert bench.has_started(last)


async def test_what_may_not_wait_and_comes_too_late_for_its_slot_goes_back_unstarted(bench: Bench) -> None:
    """Its claim was answered late: by then the slot was gone."""
    bench.take(PLAIN, 2)
    (once,) = bench.take(ONCE, 1)

    (settled,) = bench.settled
    assert (settled.run_id, settled.fate.value, settled.is_traced) == (once.row[ID], "give_back", False)
    assert not bench.has_started(once)


async def test_nothing_starts_during_a_drain(bench: Bench) -> None:
    bench.executor.stop_taking()
    bench.take(ONCE, 1)

    assert [(each.fate.value, each.is_traced) for each in bench.settled] == [("give_back", False)]


# ── runs that are stopped before they begin ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_known_to_wait", [False, True])
@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_a_run_that_is_stopped_before_it_begins_keeps_no_slot(
    bench: Bench, how: str, is_known_to_wait: bool
) -> None:
    if is_known_to_wait:
        bench.take(PLAIN, 1)
        bench.gate.release()
        await until(lambda: len(bench.settled) == 1)
    slots, before = bench.executor.capacity.free_slots(), len(bench.settled)
    (work,) = bench.take(PLAIN, 1)

    if how == "cancel":
        bench.executor.cancel(work)
    else:
        bench.executor.interrupt([work], grace=0.0)
    await until(lambda: len(bench.settled) == before + 1)

    assert bench.settled[-1].fate is (Fate.END if how == "cancel" else Fate.GIVE_BACK)
    assert bench.settled[-1].is_traced == (how == "cancel"), "what never began leaves no trace"
    assert bench.executor.capacity.free_slots() == slots
    assert not bench.executor.capacity.needs_replacement


async def test_a_run_that_is_given_up_while_it_waits_for_its_turn_keeps_no_slot(bench: Bench) -> None:
    slots = bench.executor.capacity.free_slots()
    (work,) = bench.take(PLAIN, 1)
    work.is_interrupted = True
    bench.executor._abandon(work)
    await asyncio.sleep(0)

    assert [each.fate for each in bench.settled] == [Fate.GIVE_BACK]
    assert bench.executor.capacity.free_slots() == slots
