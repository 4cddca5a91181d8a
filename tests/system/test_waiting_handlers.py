"""Handlers that wait for runs they submitted, on workers with a single slot: real processes, isolated ones too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from .machinery import System

KINDS = {
    "wait_for_child": 7,
    "wait_for_child_in_thread": 7,
    "wait_for_child_isolated": [3, 4],
    "wait_for_child_isolated_and_blocking": 7,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_parents_with_one_slot_get_the_results_of_their_children(system: System, jobs: Any, kind: str) -> None:
    system.start(slots=1)
    handles = [await getattr(jobs, kind).submit() for _ in range(3)]

    assert [await handle.result(timeout=PATIENCE) for handle in handles] == [KINDS[kind]] * 3


async def test_an_isolated_parent_that_waits_is_cancelled_as_always(system: System, jobs: Any) -> None:
    system.start(slots=1)
    handle = await jobs.wait_for_too_long.submit()
    assert await system.eventually(lambda: system.count("effect", "what = 'waiting'"))
    assert await (await jobs.quick.submit(1)).result(timeout=PATIENCE) == 1, "the slot is free meanwhile"

    await handle.cancel()

    async def is_cancelled() -> bool:
        return bool((await handle.find()).state == "cancelled")

    assert await system.eventually(is_cancelled)


async def test_a_drain_gives_back_what_waits(system: System, jobs: Any) -> None:
    tree = system.start(slots=1, grace=0.0)
    handle = await jobs.wait_for_too_long.submit()
    assert await system.eventually(lambda: system.count("effect", "what = 'waiting'"))

    assert await asyncio.to_thread(tree.stop) == 0

    run = await handle.find()
    assert (run.state, [attempt.outcome.value for attempt in run.attempts]) == ("ready", ["interrupted"])
