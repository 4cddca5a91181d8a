"""What an attempt reported outlives its worker, and a worker that woke up late reports nothing. With controls."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from uuid import UUID

    from .machinery import System, Tree

STEPS = 10


async def kill_once_it_waits(system: System, tree: Tree, times: int) -> None:
    """kill -9 of the worker process, each time the run has come a step further."""
    for count in range(1, times + 1):
        assert await system.eventually(lambda: system.value(WAITING, count)), f"never waited for kill {count}"  # noqa: B023
        tree.signal_children(signal.SIGKILL)


WAITING = "select count(*) >= $1 from effect where what = 'waiting to be killed'"


async def steps_taken(system: System) -> Counter[str]:
    rows = await system.connection.fetch("select what from effect where what like 'step %'")
    return Counter(row["what"] for row in rows)


@pytest.mark.long
@pytest.mark.timeout(400)  # eleven worker processes, one after the other
async def test_a_handler_killed_at_each_of_ten_steps_takes_each_step_once(system: System, jobs: Any) -> None:
    tree = system.start(lease_time=30.0)
    assert await system.live_workers(1)
    handle = await jobs.ten_steps.submit()
    await kill_once_it_waits(system, tree, STEPS)
    # A run that was there when ten workers died is a dead letter. It keeps its checkpoint for whoever requeues it.
    assert await system.eventually(lambda: system.count("dead"))
    await jobs.app.runs.requeue(handle.id)

    assert await handle.result(timeout=PATIENCE) == "all steps"
    assert await steps_taken(system) == Counter([f"step {n}" for n in range(STEPS)])
    assert len((await handle.find()).attempts) == STEPS + 1
    assert await system.count("checkpoint") == 0
    report = await system.report([handle.id], must_be_drained=True)
    assert report.violations == [], report


async def test_without_checkpoints_steps_are_taken_again(system: System, jobs: Any) -> None:
    """The control."""
    tree = system.start(lease_time=30.0, sabotage="checkpoint")
    assert await system.live_workers(1)
    await jobs.ten_steps.submit()
    await kill_once_it_waits(system, tree, 2)

    assert await system.eventually(lambda: system.value(WAITING, 3))
    assert await steps_taken(system) == Counter({"step 0": 3})


@pytest.mark.parametrize("sabotage", ["", "reports"])
async def test_what_a_killed_attempt_said_is_there(system: System, jobs: Any, sabotage: str) -> None:
    tree = system.start(lease_time=30.0, sabotage=sabotage)
    assert await system.live_workers(1)
    handle = await jobs.speak_and_wait.submit()
    assert await system.eventually(lambda: system.started(1))
    if sabotage:
        assert await (await jobs.nap.submit(seconds=2.0)).result(PATIENCE) == "rested"  # reports wait for less
        assert (await system.count("log"), await system.count("progress")) == (0, 0)
        return
    assert await system.eventually(lambda: system.count("log")) == 1  # all of it in one row
    assert await system.eventually(lambda: system.count("progress")) == 1
    run = await handle.find()
    assert run.state == "running"
    assert run.progress is not None
    assert (run.progress.fraction, run.progress.message) == (0.25, "a quarter")
    tree.signal_children(signal.SIGKILL)

    assert await handle.result(timeout=PATIENCE) == "done"
    first, second = [[line.text for line in await handle.logs() if line.fence == fence] for fence in (1, 2)]
    assert first == ["fence 1 speaking", "a line of logging"]
    # After the crash it has a process of its own, and what that prints is kept too.
    assert set(second) == {"fence 2 speaking", "a line of logging", "a printed line"}
    assert await system.count("progress") == 0


@pytest.mark.parametrize("sabotage", ["", "checkpoint_fence"])
async def test_the_checkpoint_of_a_frozen_worker_that_wakes_up_is_refused(
    system: System, jobs: Any, sabotage: str
) -> None:
    frozen = system.start(sabotage=sabotage, lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    handle = await jobs.keep_storing.submit()
    assert await system.eventually(lambda: system.started(1))
    frozen.signal_children(signal.SIGSTOP)
    system.start(sabotage=sabotage)
    assert await system.eventually(lambda: system.started(2))
    assert await stored(system, handle.id) == b"2"
    await system.tell_them_to_go_on()

    async def is_overwritten() -> bool:
        return await stored(system, handle.id) == b"1"

    with frozen.silent_supervisor():
        frozen.signal_children(signal.SIGCONT)
        if sabotage:
            assert await system.eventually(is_overwritten), "nothing but the fence keeps the late one out"
        else:
            assert await system.eventually(lambda: system.count("effect", "what = 'refused'"))
            assert not await is_overwritten()


async def stored(system: System, run_id: UUID) -> bytes:
    value: bytes = await system.value("select value from checkpoint where run_id = $1", run_id)
    return value
