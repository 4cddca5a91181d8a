"""All of PostgreSQL is stopped for longer than a lease time, with limits, shares, rates, marks and a graph in play.

Nobody is told: connections stay, new ones are accepted by the kernel, and answers come when it goes on. By then whoever
asked may have given up, and what it had asked for happens all the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from .faulty_app import UNTIL_TOLD
from .machinery import lasting
from .proxy import Proxy
from .replicas import Server, lone_server
from .test_admission_faults import NOTHING, QUEUES, Work, all_are_begun, judged, submit_all, wait_at_marks
from .test_losing_the_database import OUTAGE_LEASE_TIME, both_look

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from .machinery import System

PAUSE = 1.25 * OUTAGE_LEASE_TIME
RATED = 100  # runs that are submitted while it is paused
SHORT_PAUSE = 2.0  # longer than anybody waits for an answer who is `hasty`
WHO_GIVES_UP_CONNECTS_AGAIN = {"max_connections": "300"}


@pytest.fixture
async def server(stopped_server: Path, shared_directory: Path) -> AsyncIterator[Server]:
    async with lone_server(stopped_server, shared_directory, **WHO_GIVES_UP_CONNECTS_AGAIN) as server:
        yield server


@pytest.fixture
async def url(server: Server) -> str:
    """Where the fixtures of these tests are at home."""
    return server.url


@pytest.mark.invariant(6)
@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
@pytest.mark.timeout(250)
@pytest.mark.parametrize("patience", ["", "hasty"])
async def test_limits_rates_and_graphs_hold_while_postgresql_is_paused(
    server: Server, system: System, jobs: Any, patience: str
) -> None:
    async with Proxy(server.url) as proxy:
        work = await begun(system, jobs, proxy, patience)
        rated = asyncio.ensure_future(jobs.pause_at_a_rate.submit_many([{"seconds": 0.0}] * RATED))
        await pause(server, system, proxy)  # before anything of that is said
        work = work._replace(accepted=[*work.accepted, *(handle.id for handle in await rated)], app=None)
        await jobs.app.queues.resume("marked")
        await system.tell_them_to_go_on()
        assert await system.ended(len(work.accepted) // 2)
        with server.frozen():  # in the middle of anything
            await lasting(SHORT_PAUSE)

        assert await judged(system, work) == NOTHING
        report = await system.report(work.accepted, must_be_drained=True)
        assert report.violations == [], report
        assert await system.count("worker", "state = 'lost'") == 0


async def begun(system: System, jobs: Any, proxy: Proxy, sabotage: str) -> Work:
    """Slots are taken, others wait behind them, and roots of a graph are under way; they go on when they are told."""
    for _ in range(2):
        system.start(url=proxy.url, sabotage=f"looks,{sabotage}", lease_time=OUTAGE_LEASE_TIME, queues=QUEUES)
    assert await system.live_workers(2)
    work = await submit_all(jobs, UNTIL_TOLD)
    assert await system.eventually(lambda: all_are_begun(system))
    assert await system.eventually(lambda: wait_at_marks(system))
    return work


async def pause(server: Server, system: System, proxy: Proxy, *, or_one_is_lost: bool = False) -> None:
    """Heartbeats come back last: the moment in which a hasty rescuer would judge."""
    with server.frozen():
        proxy.refused = "supervisor"
        proxy.cut("supervisor")
        await lasting(PAUSE)
    await both_look(system, or_one_is_lost=or_one_is_lost)
    proxy.refused = ""


async def test_an_impatient_rescuer_would_lose_workers_after_a_pause(server: Server, system: System, jobs: Any) -> None:
    """The control: it judges by what it saw before the pause. Let that be the last heartbeat."""
    async with Proxy(server.url) as proxy:
        work = await begun(system, jobs, proxy, "impatient")
        proxy.refused = "supervisor"
        proxy.cut("supervisor")
        for _ in range(2):
            await both_look(system, or_one_is_lost=True)
        await pause(server, system, proxy, or_one_is_lost=True)
        await system.tell_them_to_go_on()

        assert await judged(system, work) == NOTHING  # limits do not rest on that
        assert await system.count("worker", "state = 'lost'") > 0
