"""Each mode of delivery when workers die between effect and acknowledgement, freeze, drain or are cut off.

At least once may mean twice, and then both are on record. At most once means one start. Transactional means that the
effects in the database are one with the run. Each has its control.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME
from .proxy import Proxy

if TYPE_CHECKING:
    from uuid import UUID

    from tests.checker import Report

    from .machinery import System

MODES = ("pay_at_least_once", "pay_at_most_once", "pay_transactionally")


async def judged(system: System, handles: list[Any], **expectations: Any) -> Report:
    """The checker's report, with what transactional handlers committed."""
    lines = "select id from line where labels @> '{delivery=transactional}'"
    transactional = await system.connection.fetch(f"select run_id from attempt where line_id in ({lines})")  # noqa: S608
    runs = {row["run_id"] for row in transactional}
    effects = [run_id for run_id, _ in await system.effects("paid") if run_id in runs]
    return await system.report([handle.id for handle in handles], effects=effects, **expectations)


async def starts_of(system: System, handle: Any) -> int:
    return [run_id for run_id, _ in await system.effects("start")].count(handle.id)


def payments(effects: list[tuple[UUID, int]], handle: Any) -> int:
    return [run_id for run_id, _ in effects].count(handle.id)


# ── killed between effect and acknowledgement ───────────────────────────────────────────────────────────────────


async def test_at_least_once_a_killed_run_starts_again_and_both_starts_are_on_record(system: System, jobs: Any) -> None:
    system.start(slots=1, lease_time=30.0)
    assert await system.live_workers(1)
    handles = [await jobs.pay_at_least_once.submit(dies=dies) for dies in ("yes", "", "yes")]

    assert await system.ended(3)
    report = await judged(system, handles, must_be_drained=True)
    assert report.violations == [], report
    starts = [await starts_of(system, handle) for handle in handles]
    assert starts[0] >= 2 <= starts[2]
    assert report.count("executions beyond the first of a run") == sum(starts) - 3
    assert await system.count("attempt", "outcome = 'crashed'") >= 2


@pytest.mark.parametrize("sabotage", ["", "mode"])
async def test_at_most_once_a_killed_run_is_lost_and_never_starts_again(
    system: System, jobs: Any, sabotage: str
) -> None:
    system.start(slots=2, lease_time=30.0, sabotage=sabotage)
    assert await system.live_workers(1)
    handles = [await jobs.pay_at_most_once.submit(dies=dies) for dies in ("yes", "", "yes")]

    assert await system.ended(3)
    report = await judged(system, handles, must_be_drained=True)
    if sabotage:
        assert report.count("at-most-once runs that started again")
        return
    assert report.violations == [], report
    assert max([await starts_of(system, handle) for handle in handles]) == 1
    lost = await handles[0].find()
    assert [(attempt.outcome, attempt.state) for attempt in lost.attempts] == [("crashed", "lost")]


@pytest.mark.parametrize("sabotage", ["", "fence"])
async def test_transactional_effects_happen_once_wherever_the_process_dies(
    system: System, jobs: Any, sabotage: str
) -> None:
    """Before COMMIT there is no effect and the run starts again; after it there is one and the run is over."""
    system.start(slots=1, lease_time=30.0, sabotage=sabotage)
    assert await system.live_workers(1)
    moments = ["after"] if sabotage else ["before", "after", "while", "", "while"]
    handles = [await jobs.pay_transactionally.submit(dies=dies) for dies in moments]

    assert await system.ended(len(moments))
    report = await judged(system, handles, must_be_drained=True)
    if sabotage:
        assert report.count("transactional runs whose effects are not one with them")
        return
    assert report.violations == [], report
    assert [payments(await system.effects("paid"), handle) for handle in handles] == [1] * len(moments)
    assert [await handle.result(PATIENCE) for handle in handles] == ["paid"] * len(moments)
    assert await starts_of(system, handles[0]) >= 2  # more if it was there when another one took the process along


async def test_an_isolated_run_is_finished_from_its_own_process(system: System, jobs: Any) -> None:
    """There the process that dies is known, and counts as an attempt: unless it had committed."""
    system.start(lease_time=30.0)
    assert await system.live_workers(1)
    handles = [await jobs.pay_from_a_process_of_its_own.submit(dies=dies) for dies in ("", "before", "after")]

    assert await system.ended(3)
    report = await judged(system, handles, must_be_drained=True)
    assert report.violations == [], report
    attempts = [[attempt.outcome for attempt in (await handle.find()).attempts] for handle in handles]
    assert attempts == [["succeeded"], ["crashed", "succeeded"], ["succeeded"]]


async def test_every_mode_keeps_its_word_while_workers_are_killed_again_and_again(system: System, jobs: Any) -> None:
    for _ in range(2):
        system.start(slots=8)
    assert await system.live_workers(2)
    handles = [await getattr(jobs, mode).submit(dies="", seconds=UNTIL_TOLD) for mode in MODES]
    assert await system.eventually(lambda: system.started(3))  # so that something of each is under way when it comes
    for mode in MODES:
        handles += await getattr(jobs, mode).submit_many([{"dies": "", "seconds": 0.05}] * 60)
    for _ in range(4):
        async with system.replacing(2):
            for tree in system.trees:
                tree.signal_children(signal.SIGKILL)
    await system.tell_them_to_go_on()

    assert await system.ended(len(handles))
    report = await judged(system, handles, must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("attempt", "state = 'lost'") > 0
    assert await system.count("attempt", "outcome = 'crashed' and state = 'ready'") > 0


# ── frozen beyond the lease ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sabotage", ["", "fence"])
async def test_a_worker_frozen_past_its_lease_does_nothing_more_when_it_wakes(
    system: System, jobs: Any, sabotage: str
) -> None:
    """SIGSTOP while handlers are at work, the others take over, SIGCONT: what is late is refused and rolled back."""
    frozen = system.start(sabotage=sabotage, lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    handles = [await getattr(jobs, mode).submit(dies="", seconds=UNTIL_TOLD) for mode in MODES]
    assert await system.eventually(lambda: system.started(3))
    assert await system.eventually(lambda: system.value("select count(*) = 2 from effect where what = 'paid'"))
    frozen.signal_children(signal.SIGSTOP)
    system.start(sabotage=sabotage)
    assert await system.eventually(lambda: system.value("select count(*) = 1 from worker where state = 'lost'"))
    await system.tell_them_to_go_on()
    assert await system.ended(3)
    least, most, transactional = handles
    with frozen.silent_supervisor():
        frozen.signal_children(signal.SIGCONT)
        late = f"effect where what = 'paid' and run_id = '{transactional.id}'" if sabotage else "stale"
        assert await system.eventually(lambda: system.value(f"select count(*) >= 2 from {late}"))  # noqa: S608
    if sabotage:
        return
    assert await system.live_workers(2)
    assert await system.beat_again()

    paid = await system.effects("paid")
    report = await judged(system, handles, must_be_drained=True)
    assert report.violations == [], report
    assert [await starts_of(system, handle) for handle in handles] == [2, 1, 2]
    assert [payments(paid, handle) for handle in handles] == [2, 1, 1]
    assert [(await handle.find()).state for handle in handles] == ["succeeded", "lost", "succeeded"]
    assert (await most.find()).attempts[-1].outcome == "crashed"
    assert {run_id for run_id, _ in await system.effects("paid")} == {least.id, most.id, transactional.id}


# ── drained and cut off ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_drain_without_grace_ends_what_may_not_start_again_as_lost(system: System, jobs: Any) -> None:
    tree = system.start(grace=0.0, lease_time=30.0, slots=3)
    assert await system.live_workers(1)
    handles = [await getattr(jobs, mode).submit(dies="", seconds=UNTIL_TOLD) for mode in MODES]
    assert await system.eventually(lambda: system.started(3))
    waiting = await jobs.pay_at_most_once.submit(dies="")
    assert tree.stop() == 0

    states = [(await handle.find()).state for handle in (*handles, waiting)]
    assert states == ["ready", "lost", "ready", "ready"], "what has not started waits on"
    lost = await handles[1].find()
    assert [(attempt.outcome, attempt.state) for attempt in lost.attempts] == [("interrupted", "lost")]
    report = await judged(system, [*handles, waiting])
    assert report.violations == [], report


@pytest.mark.parametrize("sabotage", ["", "disconnect"])
async def test_cut_off_a_run_that_may_not_start_again_is_stopped_in_time_and_lost(
    system: System, jobs: Any, sabotage: str
) -> None:
    """Its worker stops it before its lease can be taken over; whoever is first writes down that it is lost."""
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage, lease_time=SHORT_LEASE_TIME)
        assert await system.live_workers(1)
        handle = await jobs.nap_at_most_once.submit(seconds=UNTIL_TOLD)
        assert await system.eventually(lambda: system.started(1))
        proxy.close_down()
        system.start()
        assert await system.ended(1)
        if not sabotage:
            assert await system.eventually(lambda: system.count("effect", "what = 'stopped'"))
        await system.tell_them_to_go_on()

        if sabotage:
            assert await system.eventually(lambda: system.count("effect", "what = 'end'"))
        else:  # it was stopped, and is over
            assert await system.count("effect", "what = 'end'") == 0
        assert (await handle.find()).state == "lost"
        assert await starts_of(system, handle) == 1
