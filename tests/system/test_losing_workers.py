"""Workers die, freeze and wake up; every run ends once, and nothing is lost. Each fault has its control."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from .machinery import System


@pytest.mark.invariant(5)
async def test_runs_survive_workers_that_are_killed_again_and_again(system: System, jobs: Any) -> None:
    """kill -9 of children and of whole trees under load."""
    dice = random.Random(20261115)
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    handles = [await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 5)]  # some are under way whenever it comes
    assert await system.eventually(lambda: system.started(5))
    handles += [await jobs.touch.submit_many([{"number": n} for n in range(100)]) for _ in range(6)]
    handles += [await jobs.nap.submit_many([{"seconds": 0.05}] * 100) for _ in range(4)]
    accepted = [handle.id for batch in handles for handle in batch]
    for _ in range(6):
        async with system.replacing(1):
            victim = dice.choice(system.trees)
            if dice.random() < 0.5:
                victim.signal_children(signal.SIGKILL)
            else:
                victim.kill()
                system.trees.remove(victim)
                system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.eventually(lambda: system.count("attempt", "outcome = 'crashed'"))
    await system.tell_them_to_go_on()

    assert await system.ended(len(accepted))
    report = await system.report(accepted, must_be_drained=True)
    assert report.violations == [], report


async def test_without_rescue_the_runs_of_a_killed_worker_never_end(system: System, jobs: Any) -> None:
    """The control."""
    victim = system.start(sabotage="rescue", lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    victim_id = await system.value("select id from worker")
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 5)
    assert await system.eventually(lambda: system.started(5))
    victim.kill()
    await system.tell_them_to_go_on()
    system.start(sabotage="rescue", lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)  # with the one that is dead, and whom nobody declares lost
    other_id = await system.value("select id from worker where id <> $1", victim_id)
    assert await system.beat_again(12, other_id)  # two lease times

    assert not await system.have_ended(1)
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.count("runs that are not over") == 5


async def test_a_child_that_is_killed_is_replaced_and_its_runs_begin_again_at_once(system: System, jobs: Any) -> None:
    """The supervisor saw it end: nobody waits for the lease time."""
    tree = system.start(lease_time=30.0)
    assert await system.live_workers(1)
    handle = await jobs.die_after_effect.submit()

    assert await handle.result(timeout=PATIENCE) == "alive"
    run = await handle.find()
    assert [attempt.outcome for attempt in run.attempts] == ["crashed", "succeeded"]
    assert [attempt.number for attempt in run.attempts] == [1, 1]  # a crash of a shared worker spends no attempt
    assert sorted(await system.effects()) == [(handle.id, 1), (handle.id, 2)]
    assert len(tree.children()) == 1


@pytest.mark.invariant(4, 5)
@pytest.mark.parametrize("sabotage", ["", "guard"])
async def test_a_worker_frozen_past_its_lease_delivers_nothing_when_it_wakes(
    system: System, jobs: Any, sabotage: str
) -> None:
    """SIGSTOP, the others take over, SIGCONT: its late results are refused and written down."""
    frozen = system.start(sabotage=sabotage, lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 10)
    assert await system.eventually(lambda: system.started(10))
    frozen.signal_children(signal.SIGSTOP)
    system.start(sabotage=sabotage)
    assert await system.eventually(lambda: system.value("select count(*) = 1 from worker where state = 'lost'"))
    await system.tell_them_to_go_on()
    assert await system.ended(10)
    with frozen.silent_supervisor():
        frozen.signal_children(signal.SIGCONT)
        late = "attempt where state = 'succeeded' and fence = 1" if sabotage else "stale"
        assert await system.eventually(lambda: system.value(f"select count(*) = 10 from {late}"))  # noqa: S608

    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    if sabotage:
        assert report.count("runs with more than one end")
    else:
        assert report.violations == [], report
        assert await system.count("stale") == 10
        assert await system.live_workers(2)  # it was told, and began anew under another id


async def test_a_supervisor_that_beats_for_a_frozen_child_keeps_its_runs_from_everyone(
    system: System, jobs: Any
) -> None:
    """The control of the above."""
    frozen = system.start(sabotage="frozen", lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    frozen_id = await system.value("select id from worker")
    await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 3)
    assert await system.eventually(lambda: system.started(3))
    frozen.signal_children(signal.SIGSTOP)
    system.start()
    assert await system.live_workers(2)

    assert await system.beat_again(12, frozen_id)  # two lease times
    assert await system.count("effect", "what = 'start'") == 3


async def test_a_handler_that_holds_the_gil_does_not_stop_the_beat(system: System, jobs: Any) -> None:
    for _ in range(2):
        system.start(lease_time=4.0)
    assert await system.live_workers(2)
    handles = await jobs.hold_the_gil.submit_many([{"seconds": 6.0}] * 2)

    assert await system.ended(2)
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("worker", "state = 'lost'") == 0
    assert await system.count("attempt") == 2


async def test_a_child_whose_supervisor_is_killed_drains_and_ends(system: System, jobs: Any) -> None:
    tree = system.start(lease_time=30.0, grace=60.0)
    assert await system.live_workers(1)
    handles = await jobs.nap.submit_many([{"seconds": 0.5}] * 3)
    assert await system.eventually(lambda: system.started(3))
    tree.process.kill()
    tree.process.wait()

    assert await system.eventually(lambda: system.value("select count(*) = 0 from worker where state = 'live'"))
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("attempt", "outcome = 'succeeded'") == 3
