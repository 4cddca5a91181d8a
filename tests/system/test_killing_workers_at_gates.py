"""Workers are killed with their keepers until all is done: limits, order, shares, rates, marks and a graph at once.

What happened is read from history, as in `test_admission_faults.py`, where the controls of that are. Here are those of
kills.
"""

from __future__ import annotations

import random
import signal
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME
from .test_admission_faults import (
    CUSTOMERS,
    MARKED,
    NOTHING,
    QUEUES,
    SHARED_SLOTS,
    Work,
    busiest,
    judged,
    submit_all,
    submit_at_marks,
    wait_at_marks,
    who_has_slots,
)
from .test_flows import WIDTH

if TYPE_CHECKING:
    from uuid import UUID

    from .machinery import System, Tree

RATED_LATER = 100
PARTS = 6  # of the work, each of which a kill follows; a run that was there at ten would be a dead letter


async def start_two(system: System, sabotage: str = "") -> None:
    for _ in range(2):
        system.start(sabotage=sabotage, lease_time=SHORT_LEASE_TIME, queues=QUEUES)
    assert await system.live_workers(2)


async def have_in_hand(system: System, count: int) -> bool:
    """Whether living workers have so many runs in hand."""
    query = """
        select coalesce(sum(cardinality(ids) - bit_count(done)), 0) = $1
        from lease join worker on worker.id = lease.worker_id and worker.state = 'live'"""
    return bool(await system.value(query, count))


async def kill_one(system: System, tree: Tree, *, whole: bool) -> None:
    """The worker process, whose supervisor starts another; or the whole tree, whose lease time goes by."""
    async with system.replacing(1):
        if whole:
            tree.kill()
            system.trees.remove(tree)
            system.start(lease_time=SHORT_LEASE_TIME, queues=QUEUES)
        else:
            tree.signal_children(signal.SIGKILL)


async def kill_until_all_is_over(system: System, count: int) -> None:
    """Each time that some more runs have ended."""
    dice = random.Random(20261118)
    over = "select count(distinct run_id) from attempt where state = 'succeeded'"
    for whole in cycle((True, False)):
        if (ended := await system.value(over)) == count:
            return
        await kill_one(system, dice.choice(system.trees), whole=whole)
        assert await system.ended(min(count, ended + count // PARTS))


@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
@pytest.mark.timeout(250)
async def test_limits_shares_rates_marks_and_graphs_hold_while_workers_are_killed_until_all_is_done(
    system: System, jobs: Any
) -> None:
    await start_two(system)
    work = await submit_all(jobs, UNTIL_TOLD)
    holding = 2 * len(CUSTOMERS) + WIDTH  # one at each gate, and all roots of the graph
    assert await system.eventually(lambda: have_in_hand(system, holding))
    assert await system.eventually(lambda: wait_at_marks(system))
    for tree in list(system.trees):  # whoever holds a slot is gone, and whoever brought runs to the marks
        await kill_one(system, tree, whole=False)
    assert await system.eventually(lambda: have_in_hand(system, holding))
    rated = await jobs.pause_at_a_rate.submit_many([{"seconds": 0.0}] * RATED_LATER)
    work = work._replace(accepted=[*work.accepted, *(handle.id for handle in rated)], app=None)
    await jobs.app.queues.resume("marked")
    await system.tell_them_to_go_on()
    await kill_until_all_is_over(system, len(work.accepted))

    assert await judged(system, work) == NOTHING
    report = await system.report(work.accepted, must_be_drained=True)
    assert report.violations == [], report


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_whose_killed_worker_took_their_shares_along_would_be_too_many(system: System, jobs: Any) -> None:
    await start_two(system, "slots_for_rescued")
    handles = await jobs.pause_in_shares.submit_many([{"shop": "ada", "seconds": UNTIL_TOLD}] * 3 * SHARED_SLOTS)
    assert await system.eventually(lambda: have_in_hand(system, SHARED_SLOTS))
    first = await system.value("select array_agg(run_id) from slot")
    busiest(system, await who_has_slots(system)).kill()
    others = "select exists (select from lease cross join lateral unnest(ids) as run (id) where run.id <> all ($1))"
    assert await system.eventually(lambda: system.value(others, first))
    await system.tell_them_to_go_on()

    assert (await judged(system, Work([handle.id for handle in handles], [], []))).are_too_many


async def test_where_nobody_rescues_slots_of_a_killed_worker_stay_taken(system: System, jobs: Any) -> None:
    await start_two(system, "rescue")
    runs = await jobs.pause_in_turn.submit_many([{"customer": "ada", "seconds": UNTIL_TOLD}] * 3)
    assert await system.eventually(lambda: have_in_hand(system, 1))
    busiest(system, await who_has_slots(system)).kill()
    await system.tell_them_to_go_on()
    assert await system.beat_again(7, await the_living(system))  # a lease time
    await (await jobs.pause_in_turn.submit(customer="bob", seconds=0.0)).result()

    assert (await system.count("slot"), await system.count("held")) == (1, 2)
    assert (await system.report([handle.id for handle in runs])).count("runs that are not over") == 3


async def the_living(system: System) -> UUID:
    """The worker that holds no slot: of the other one nobody says that it is dead."""
    found = await system.value("select id from worker where id not in (select worker_id from lease)")
    assert found is not None
    return found  # type: ignore[no-any-return]


async def test_where_nobody_looks_at_marks_runs_are_forgotten_there(system: System, jobs: Any) -> None:
    await start_two(system, "marks")
    handles = await submit_at_marks(jobs)
    assert await system.eventually(lambda: system.value(ALL_ARE_DUE, len(handles)))
    waiting = await system.count("held", "reason = 'backpressure'")
    await jobs.app.queues.resume("marked")
    assert await system.ended(len(handles) - waiting)
    for tree in list(system.trees):  # nor do those who come after them
        await kill_one(system, tree, whole=False)
    await (await jobs.pause.submit(0.0)).result()

    assert await system.count("held", "reason = 'backpressure'") == waiting > MARKED


ALL_ARE_DUE = """
    select (select count(*) from held where reason = 'backpressure')
         + (select count(*) from ready where rank <= date_part('epoch', clock_now()) * 1000000) = $1"""
