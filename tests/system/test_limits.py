"""Limits while workers are killed: no two runs of one key at once, no slot lost, nobody forgotten. With its control."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING, Any

import pytest

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from .machinery import System

CUSTOMERS = ("ada", "bob", "cleo")
EACH = 12

# A run holds its slot from its first start to its last end, whoever had it in between: nobody else may begin meanwhile.
OVERLAPS = """
    with run as (
        select effect.run_id, convert_from(attempt.payload, 'UTF8')::jsonb ->> 'customer' as customer,
               min(effect.at) filter (where what = 'start') as started,
               max(effect.at) filter (where what = 'end') as ended
        from effect join attempt on attempt.run_id = effect.run_id and attempt.state = 'succeeded' group by 1, 2)
    select count(*) from run as one join run as other
        on one.customer = other.customer and one.run_id <> other.run_id
        and one.started <= other.started and other.started < one.ended"""


@pytest.mark.invariant(13)
async def test_a_lost_worker_s_slots_come_back_with_its_runs_and_nobody_overtakes_them(
    system: System, jobs: Any
) -> None:
    dice = random.Random(20261118)
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    first = [await jobs.nap_in_turn.submit(customer=customer, seconds=UNTIL_TOLD) for customer in CUSTOMERS]
    assert await system.eventually(lambda: system.started(len(CUSTOMERS)))
    calls = [{"customer": customer, "seconds": 0.01} for customer in CUSTOMERS for _ in range(EACH)]
    dice.shuffle(calls)
    accepted = [handle.id for handle in [*first, *await jobs.nap_in_turn.submit_many(calls)]]
    for tree in list(system.trees):  # all who hold a slot are gone
        async with system.replacing(1):
            tree.signal_children(signal.SIGKILL)
    assert await system.eventually(lambda: _begun_again(system, first))
    assert {run_id for run_id, _ in await system.effects()} == {handle.id for handle in first}
    await system.tell_them_to_go_on()
    for _ in range(3):
        async with system.replacing(1):
            victim = dice.choice(system.trees)
            victim.kill()
            system.trees.remove(victim)
            system.start(lease_time=SHORT_LEASE_TIME)

    assert await system.ended(len(accepted))
    report = await system.report(accepted, must_be_drained=True)
    assert report.violations == [], report
    assert await system.value(OVERLAPS) == 0
    assert (await system.count("slot"), await system.count("held")) == (0, 0)


async def _begun_again(system: System, handles: list[Any]) -> bool:
    again = {run_id for run_id, fence in await system.effects() if fence > 1}
    return again == {handle.id for handle in handles}


async def test_who_does_not_count_slots_lets_runs_of_one_key_run_at_once(system: System, jobs: Any) -> None:
    """The control."""
    system.start(sabotage="counting")
    assert await system.live_workers(1)
    handles = await jobs.nap_in_turn.submit_many([{"customer": "ada", "seconds": UNTIL_TOLD}] * 3)
    assert await system.eventually(lambda: system.started(len(handles)))
    report = await system.report([handle.id for handle in handles])
    await system.tell_them_to_go_on()
    assert await system.ended(len(handles))

    assert report.count("runs that hold a slot beyond the limit") == 2
    assert await system.value(OVERLAPS) > 0
