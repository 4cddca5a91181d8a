"""Schedules that keep their runs apart while workers and schedulers are killed: no two at once, nobody stranded."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME
from .test_schedulers import scheduler

if TYPE_CHECKING:
    from .machinery import System

EVERY_SECOND = "* * * * * *"
# From its first start to its last end, whoever had it in between.
OVERLAPS = """
    with run as (
        select run_id, min(at) filter (where what = 'start') as started, max(at) filter (where what = 'end') as ended
        from effect where run_id is not null group by 1)
    select count(*) from run as one join run as other
        on one.run_id <> other.run_id and one.started <= other.started and other.started < one.ended"""


async def decided(system: System) -> int:
    """How many instants fired or were skipped."""
    return await system.count("occurrence") + await system.count("skipped")


async def until_more_are_decided(system: System, more: int = 2) -> None:
    before = await decided(system)

    async def are_decided() -> bool:
        return await decided(system) >= before + more

    assert await system.eventually(are_decided)


@pytest.mark.parametrize("rule", ["skip", "buffer_one"])
async def test_nobody_begins_beside_a_run_whose_worker_was_killed(system: System, jobs: Any, rule: str) -> None:
    system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    await jobs.nap.scheduled("nap", EVERY_SECOND, overlap=rule).create(UNTIL_TOLD)
    with scheduler(system.url):
        assert await system.eventually(lambda: system.started(1))
        async with system.replacing(1):
            system.trees[0].signal_children(signal.SIGKILL)
        assert await system.eventually(lambda: system.started(2))  # the same one, again
    with scheduler(system.url):  # the first one was killed
        await until_more_are_decided(system)
        assert len({run_id for run_id, _ in await system.effects()}) == 1
        await system.tell_them_to_go_on()
        assert await system.ended(3)
        await jobs.app.schedules.pause("nap")

    async def are_over() -> bool:
        return await system.count("schedule_run") == 0

    assert await system.eventually(are_over)
    assert await system.value(OVERLAPS) == 0
    assert await system.count("skipped", "reason = 'overlap'") > 0
