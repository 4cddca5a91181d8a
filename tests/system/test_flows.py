"""Flows while workers are killed: everything ends, and nothing begins before what it waits for. With its control."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from mainspring import Flow

    from .machinery import System

LAYERS, WIDTH = 6, 5

# Rows of `wanted` are pairs of parent and child: who began although a parent had not ended.
TOO_EARLY = """
    select count(*) from unnest($1::uuid[], $2::uuid[]) as wanted (parent, child)
    join attempt as before on before.run_id = wanted.parent and before.state = 'succeeded'
    join effect on effect.run_id = wanted.child and effect.what = 'start'
    where effect.at < before.finished_at"""


def layers(flow: Flow, job: Any, first: float = 0.01) -> list[tuple[Any, Any]]:
    """Each node waits for two of the layer before it, of which the first takes `first`. Answers who waits for whom."""
    before = [flow.add(job, first) for _ in range(WIDTH)]
    pairs: list[tuple[Any, Any]] = []
    for _ in range(LAYERS - 1):
        after = [flow.add(job, 0.01) for _ in range(WIDTH)]
        for place, node in enumerate(after):
            parents = (before[place], before[(place + 1) % WIDTH])
            node.after(*parents)
            pairs += [(parent, node) for parent in parents]
        before = after
    return pairs


@pytest.mark.invariant(14)
async def test_a_flow_ends_whole_although_its_workers_are_killed(system: System, jobs: Any) -> None:
    dice = random.Random(20261118)
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    flow = jobs.app.flow("layers")
    pairs = layers(flow, jobs.nap)
    submitted = await flow.submit()
    accepted = [node.run_id for node in (await submitted.find()).nodes]
    for share in (1, 2, 3):
        assert await system.ended(len(accepted) * share // 5)
        async with system.replacing(1):
            victim = dice.choice(system.trees)
            victim.kill()
            system.trees.remove(victim)
            system.start(lease_time=SHORT_LEASE_TIME)

    assert await system.ended(len(accepted))
    report = await system.report(accepted, must_be_drained=True)
    assert report.violations == [], report
    parents = [submitted.run(parent).id for parent, _ in pairs]
    children = [submitted.run(child).id for _, child in pairs]
    assert await system.value(TOO_EARLY, parents, children) == 0
    assert (await system.count("held"), await system.count("dependency")) == (0, 0)


async def test_where_nobody_resolves_dependencies_runs_are_left_behind(system: System, jobs: Any) -> None:
    """The control."""
    system.start(sabotage="resolving")
    assert await system.live_workers(1)
    flow = jobs.app.flow("layers")
    layers(flow, jobs.nap)
    submitted = await flow.submit()

    assert await system.ended(WIDTH)
    later = await jobs.nap.submit(0.0)  # whatever could have been released meanwhile would come before it
    assert await system.ended(WIDTH + 1)

    states = {node.state for node in (await submitted.find()).nodes}
    assert states == {"succeeded", "held"}
    assert (await later.find()).state == "succeeded"
