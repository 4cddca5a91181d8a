"""Handlers that submit children while workers are killed: each once, and no run ends before its own. With controls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from .machinery import System

RUNS, CHILDREN = 6, 5
MADE = "select count(distinct run_id) from attempt where headers ? '@child_of'"


async def waiting(system: System) -> int:
    return await system.count("held", "reason = 'children'")


async def all_wait(system: System, count: int) -> bool:
    """Whether so many runs wait for their children, waiting for it."""

    async def do() -> bool:
        return await waiting(system) == count

    return bool(await system.eventually(do))


@pytest.mark.invariant(14)
async def test_children_are_made_once_and_waited_for_although_workers_are_killed(system: System, jobs: Any) -> None:
    dice = random.Random(20261118)
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    handles = [await jobs.fan_out.submit(CHILDREN, 0.01) for _ in range(RUNS)]
    for share in (1, 2, 3):
        assert await system.ended(RUNS * CHILDREN * share // 5)
        async with system.replacing(1):
            victim = dice.choice(system.trees)
            victim.kill()
            system.trees.remove(victim)
            system.start(lease_time=SHORT_LEASE_TIME)

    assert [await handle.result(timeout=PATIENCE) for handle in handles] == [CHILDREN] * RUNS
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.value(MADE) == RUNS * CHILDREN
    assert (await system.count("held"), await system.count("dependency")) == (0, 0)


async def test_no_run_ends_before_its_children_though_their_workers_are_killed(system: System, jobs: Any) -> None:
    trees = [system.start(lease_time=SHORT_LEASE_TIME) for _ in range(2)]
    assert await system.live_workers(2)
    handles = [await jobs.fan_out.submit(2, UNTIL_TOLD) for _ in range(RUNS)]
    assert await all_wait(system, RUNS)
    async with system.replacing(1):
        trees[0].kill()
        system.trees.remove(trees[0])
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await waiting(system) == RUNS
    await system.tell_them_to_go_on()

    assert [await handle.result(timeout=PATIENCE) for handle in handles] == [2] * RUNS


async def test_a_handler_that_does_not_wait_for_its_children_ends_before_them(system: System, jobs: Any) -> None:
    """The control."""
    system.start(sabotage="children")
    handle = await jobs.fan_out.submit(2, UNTIL_TOLD)

    assert await handle.result(timeout=PATIENCE) == 2
    assert await system.value(MADE) == 0
    await system.tell_them_to_go_on()


@pytest.mark.parametrize(("sabotage", "made"), [("", 3), ("names_of_children", 6)])
async def test_a_handler_that_dies_after_it_has_submitted_finds_its_children(
    system: System, jobs: Any, sabotage: str, made: int
) -> None:
    """With its control: without names, they are submitted twice."""
    system.start(lease_time=SHORT_LEASE_TIME, sabotage=sabotage)
    handle = await jobs.fan_out.submit(3, 0.0, dies=True)

    assert await handle.result(timeout=PATIENCE) == 3
    assert await system.value(MADE) == made


@pytest.mark.parametrize("kind", ["fan_out_isolated", "fan_out_isolated_and_blocking"])
async def test_handlers_in_processes_of_their_own_have_children_too(system: System, jobs: Any, kind: str) -> None:
    system.start(slots=1)
    handle = await getattr(jobs, kind).submit(2, UNTIL_TOLD)
    assert await all_wait(system, 1)
    await system.tell_them_to_go_on()

    assert await handle.result(timeout=PATIENCE) == 2
    assert len((await handle.find()).children) == 2


async def test_a_run_whose_worker_was_killed_when_its_handler_had_returned_is_found_by_the_keeper(
    system: System, jobs: Any
) -> None:
    """Nobody is left who could give a hint: the keeper of another worker looks."""
    tree = system.start(lease_time=SHORT_LEASE_TIME, sabotage="resolving")
    handle = await jobs.fan_out.submit(2, 0.0)
    assert await all_wait(system, 1)
    assert await system.ended(2)
    tree.kill()
    system.trees.remove(tree)
    assert await waiting(system) == 1
    system.start(lease_time=SHORT_LEASE_TIME)

    assert await handle.result(timeout=PATIENCE) == 2
