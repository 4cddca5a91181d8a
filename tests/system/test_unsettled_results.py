"""A worker whose results cannot be settled: it stops claiming, says so, and gives up its place if that lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from mainspring.clock import SystemClock
from mainspring.control.doctor import examine
from mainspring.control.findings import Level
from mainspring.store.database import Database

from .proxy import Proxy

if TYPE_CHECKING:
    from .machinery import System

FLUSH = "worker flush"
CANNOT_SETTLE = (
    "select count(*) from worker join worker_heartbeat as said on worker_id = id"
    " where state = 'live' and said.unsettled_since is not null"
)


@pytest.mark.parametrize("sabotage", ["hasty", "hasty,unsettled"])
async def test_a_worker_whose_connection_for_results_falls_silent_claims_nothing_more(
    system: System, jobs: Any, sabotage: str
) -> None:
    """It goes on beating and could go on claiming: nobody would ever settle, and nobody would rescue."""
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage)
        assert await system.live_workers(1)
        await (await jobs.quick.submit(number=0)).result(PATIENCE)  # the connection that settles is there now
        proxy.fall_silent(FLUSH)
        first = await jobs.touch.submit(number=1)
        assert await system.eventually(lambda: system.count("effect"))
        assert await system.eventually(lambda: system.value(CANNOT_SETTLE))
        assert await _is_a_problem(system.url)
        more = await jobs.touch.submit_many([{"number": n} for n in range(20)])
        if "unsettled" in sabotage:  # the control
            assert await system.eventually(lambda: system.value("select count(*) > 1 from effect"))
            return
        beat = await system.value("select beat from worker_heartbeat")
        assert await system.eventually(lambda: system.value("select beat > $1 + 2 from worker_heartbeat", beat))
        assert await system.count("effect") == 1
        assert await system.count("ready") == 20
        proxy.open_up()

        assert await system.ended(22)
        assert await system.eventually(lambda: system.value(f"select ({CANNOT_SETTLE}) = 0"))
        report = await system.report([first.id, *(handle.id for handle in more)], must_be_drained=True)
        assert report.violations == [], report
        assert await system.count("attempt", "outcome <> 'succeeded'") == 0
        assert await system.count("worker") == 1


async def _is_a_problem(url: str) -> bool:
    connection = await Database(url).connect("doctor")
    try:
        findings = await examine(connection, SystemClock())
    finally:
        await connection.close()
    return any(each.check == "workers" and each.level is Level.PROBLEM for each in findings)


@pytest.mark.long
@pytest.mark.parametrize("sabotage", ["hasty", "hasty,giving_up"])
async def test_a_worker_that_cannot_settle_for_long_gives_up_its_place_and_nobody_crashed(
    system: System, jobs: Any, sabotage: str
) -> None:
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage, give_up_after=3.0)
        assert await system.live_workers(1)
        await (await jobs.quick.submit(number=0)).result(PATIENCE)
        proxy.fall_silent(FLUSH)
        handle = await jobs.touch.submit(number=1)
        assert await system.eventually(lambda: system.count("effect"))
        gave_up = "select count(*) from worker where state = 'stopped'"
        if "giving_up" in sabotage:  # the control: it keeps what it cannot settle
            beat = await system.value("select beat from worker_heartbeat")
            assert await system.eventually(lambda: system.value("select beat > $1 + 4 from worker_heartbeat", beat))
            assert await system.value(gave_up) == 0
            return
        assert await system.eventually(lambda: system.value(gave_up))
        system.start()

        assert await system.eventually(lambda: system.value("select count(*) >= 2 from effect"))
        proxy.open_up()
        assert await system.ended(2)
        outcomes = await system.connection.fetch("select outcome::text from attempt where run_id = $1", handle.id)
        assert sorted(row["outcome"] for row in outcomes) == ["interrupted", "succeeded"]
        assert await system.count("worker", "state = 'lost'") == 0


async def test_no_more_is_executed_than_may_be_unsettled(system: System, jobs: Any) -> None:
    """Results wait while nothing is settled; a crash would repeat what was executed, and no more."""
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, max_unsettled=100)
        assert await system.live_workers(1)
        await (await jobs.quick.submit(number=0)).result(PATIENCE)
        proxy.fall_silent(FLUSH)
        await jobs.touch.submit_many([{"number": n} for n in range(5_000)])
        assert await system.eventually(lambda: system.value("select unsettled >= 100 from worker_heartbeat"))
        told = await system.value("select unsettled from worker_heartbeat")
        beat = await system.value("select beat from worker_heartbeat")
        assert await system.eventually(lambda: system.value("select beat > $1 + 1 from worker_heartbeat", beat))

        assert await system.count("effect") == 100
        assert told == 100
        proxy.open_up()
        assert await system.ended(5_001)
