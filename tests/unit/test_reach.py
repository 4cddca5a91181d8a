"""Which lanes are left out while a node of a cluster is down, and for how long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring.store.failures import node_unreachable
from mainspring.store.reach import AGAIN_SECONDS, COST_SHARE, LONGEST_SECONDS, QUIET_SECONDS, Reach

NODE, THERE = "10.0.0.2:5432", [1, 3]


class Metadata:
    """A connection to a cluster of which one node has some of the lanes."""

    async def fetch(self, query: str, node: str) -> list[dict[str, int]]:
        return [{"lane": lane} for lane in THERE if node == NODE]


class Times:
    """The time of the event loop, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def time(self) -> float:
        return self.now


async def leave_out(reach: Reach, times: Times, *, asked_at: float | None = None, node: str = NODE) -> bool:
    error = node_unreachable(node, "08006", "Connection refused")
    error.asked_at = times.now if asked_at is None else asked_at
    error.failed_at = times.now
    connection: Any = Metadata()
    return await reach.leave_out(connection, error)


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


async def test_the_lanes_of_a_node_that_is_down_are_left_out_for_a_while(times: Times) -> None:
    reach = Reach()
    assert (reach.has_all, reach.lanes(range(4))) == (True, [0, 1, 2, 3])

    assert await leave_out(reach, times)
    assert (reach.has_all, reach.lanes(range(4)), reach.first([3, 2, 1])) == (False, [0, 2], 2)
    times.now += AGAIN_SECONDS
    assert reach.lanes(range(4)) == [0, 1, 2, 3]
    times.now += QUIET_SECONDS
    assert reach.has_all


async def test_whoever_had_asked_before_is_to_ask_again_and_whoever_needs_that_node_is_not(times: Times) -> None:
    reach = Reach()
    before = times.now - 0.5
    await leave_out(reach, times)
    times.now += 0.1

    assert await leave_out(reach, times, asked_at=before)
    assert not await leave_out(reach, times)
    times.now += AGAIN_SECONDS
    assert await leave_out(reach, times), "it was asked whether it is back"


@pytest.mark.parametrize(("cost", "pause"), [(0.01, AGAIN_SECONDS), (1.0, COST_SHARE), (30.0, LONGEST_SECONDS)])
async def test_a_node_that_does_not_even_refuse_is_asked_less_often(times: Times, cost: float, pause: float) -> None:
    reach = Reach()
    await leave_out(reach, times, asked_at=times.now - cost)

    times.now += pause - 0.01
    assert not reach.has(THERE[0])
    times.now += 0.02
    assert reach.has(THERE[0])


async def test_a_node_without_lanes_leaves_nothing_out(times: Times) -> None:
    reach = Reach()

    assert not await leave_out(reach, times, node="10.0.0.9:5432")
    assert reach.has_all


async def test_if_all_lanes_are_left_out_the_first_is_asked_all_the_same(times: Times) -> None:
    reach = Reach()
    await leave_out(reach, times)

    assert reach.first(THERE) == THERE[0]
