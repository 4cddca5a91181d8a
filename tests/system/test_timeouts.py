"""Handlers of each kind take too long: what force there is ends them, and their neighbours finish. With controls."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from mainspring.errors import RunFailed

from .faulty_app import UNTIL_TOLD

if TYPE_CHECKING:
    from mainspring import Handle

    from .machinery import System

# A process that is late to say so is taken to be stuck after a sixth of its lease time.
QUICK: dict[str, Any] = {"cancel_grace": 0.2, "lease_time": 30.0}


async def outcomes(*handles: Handle[Any]) -> list[list[str]]:
    return [[attempt.outcome.value for attempt in (await handle.find()).attempts] for handle in handles]


async def is_dead(system: System, *handles: Handle[Any]) -> bool:
    query = "select count(*) = $2 from dead where id = any ($1::uuid[])"
    ids = [handle.id for handle in handles]
    return bool(await system.eventually(lambda: system.value(query, ids, len(ids))))


@pytest.mark.parametrize(
    "kind", ["oversleep", "oversleep_deaf", "oversleep_and_look", "oversleep_blindly", "oversleep_isolated"]
)
async def test_an_attempt_that_takes_too_long_is_ended_and_its_neighbours_finish(
    system: System, jobs: Any, kind: str
) -> None:
    """Cancelled if it yields, told if it looks, killed if it is isolated; otherwise abandoned."""
    tree = system.start(**QUICK)
    assert await system.live_workers(1)
    neighbours = await jobs.nap.submit_many([{"seconds": 1.0}] * 3)
    slow = await getattr(jobs, kind).submit()

    assert await is_dead(system, slow)
    assert await outcomes(slow) == [["timed_out"]]
    with pytest.raises(RunFailed, match=r"took longer than 0\.5 s"):
        await slow.result(timeout=PATIENCE)
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 3
    assert await system.count("worker") == 1  # one that would not stop is no reason for a fresh process yet
    assert len(tree.children()) == 1
    report = await system.report([slow.id, *(each.id for each in neighbours)], must_be_drained=True)
    assert report.violations == [], report


@pytest.mark.parametrize("kind", ["oversleep", "oversleep_blindly"])
async def test_without_anyone_watching_it_goes_on_for_ever(system: System, jobs: Any, kind: str) -> None:
    """The control."""
    system.start(sabotage="timeouts", **QUICK)
    assert await system.live_workers(1)
    slow = await getattr(jobs, kind).submit()

    assert await (await jobs.nap.submit(seconds=2.0)).result(PATIENCE) == "rested"  # four times as long as it may take
    assert (await slow.find()).state == "running"


async def test_an_isolated_handler_steers_its_run_as_any_other(system: System, jobs: Any) -> None:
    system.start(**QUICK)
    assert await system.live_workers(1)
    handle = await jobs.decide_isolated.submit()

    assert await is_dead(system, handle)
    run = await handle.find()
    assert [attempt.error["code"] for attempt in run.attempts] == ["retry-asked", "failed-by-handler"]


@pytest.mark.parametrize("sabotage", ["", "recycling"])
async def test_a_process_full_of_handlers_that_would_not_stop_is_replaced(
    system: System, jobs: Any, sabotage: str
) -> None:
    """Their slots are not reused; a few of them, and a fresh process takes over. That is no crash."""
    system.start(sabotage=sabotage, slots=4, grace=60.0, **QUICK)
    assert await system.live_workers(1)
    neighbour = await jobs.nap.submit(seconds=2.0)
    assert await system.eventually(lambda: system.started(1))
    slow = await jobs.oversleep_blindly.submit_many([{}] * 3)
    assert await is_dead(system, *slow)

    after = await jobs.nap.submit_many([{"seconds": 0.1}] * 20)
    assert await neighbour.result(timeout=PATIENCE) == "rested"
    assert await outcomes(*slow, neighbour) == [["timed_out"]] * 3 + [["succeeded"]]
    if sabotage:  # the control: one slot is left of four, and the process stays
        assert await after[0].result(timeout=PATIENCE) == "rested"
        assert await system.beat_again()
        assert await system.count("worker") == 1
        return
    assert [await each.result(timeout=PATIENCE) for each in after] == ["rested"] * 20
    assert await system.eventually(lambda: system.value("select count(*) = 1 from worker where state = 'live'"))
    assert await system.count("worker", "state = 'lost'") == 0
    assert await system.count("attempt", "outcome = 'crashed'") == 0


@pytest.mark.parametrize("sabotage", ["", "stuck"])
@pytest.mark.parametrize("kind", ["block_the_loop", "hold_the_gil_in_c"])
async def test_a_process_stuck_in_a_handler_past_its_hard_limit_is_killed(
    system: System, jobs: Any, kind: str, sabotage: str
) -> None:
    """Nobody inside it can act any more. Its supervisor knows by when it should have been heard of."""
    system.start(sabotage=sabotage, cancel_grace=0.2)
    assert await system.live_workers(1)
    neighbours = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 3)
    assert await system.eventually(lambda: system.started(3))
    stuck = await getattr(jobs, kind).submit()

    if sabotage:  # the control: it is beaten for, and keeps its runs from everyone
        assert await system.beat_again(4)  # most of a lease time
        assert not await system.have_ended(1)
        return
    assert await system.eventually(lambda: system.count("attempt", "outcome = 'crashed'"))
    await system.tell_them_to_go_on()
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 3
    assert await stuck.result(timeout=PATIENCE) == "went through"
    assert await outcomes(stuck) == [["crashed", "succeeded"]]
    report = await system.report([stuck.id, *(each.id for each in neighbours)], must_be_drained=True)
    assert report.violations == [], report


async def test_the_time_of_a_run_is_counted_over_attempts_and_workers(system: System, jobs: Any) -> None:
    for _ in range(2):
        system.start(**QUICK)
    assert await system.live_workers(2)
    handle = await jobs.fail_for_ever.submit()

    assert await is_dead(system, handle)
    run = await handle.find()
    assert run.attempts[0].started_at is not None
    ages = [each.started_at - run.attempts[0].started_at for each in run.attempts if each.started_at is not None]
    assert 1 < len(ages) < 1_000
    assert max(ages) < timedelta(seconds=5.0)
    assert run.state == "dead"
