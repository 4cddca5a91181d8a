"""What a database may do to a worker: none of it ends a worker, spends an attempt or counts as a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import PATIENCE

from .proxy import Mode, Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .machinery import System

HOSTILE = {
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "transaction_timeout": "5s",  # we lift it by a statement, which has to be over by then
    "idle_session_timeout": "50ms",
}
MANY = 200
ROLLBACKS = "select xact_rollback from pg_stat_database where datname = current_database()"
# Whether somebody was there who claims, together with all others.
TERMINATE = """
    select bool_or(pg_terminate_backend(pid) and application_name ~ 'claim') from pg_stat_activity
    where datname = current_database() and application_name ~ '^mainspring (worker|keeper|supervisor)'"""


@pytest.fixture
async def hostile_url(url: str) -> AsyncIterator[str]:
    """A role that a careful DBA gave limits to, in this database."""
    admin = await asyncpg.connect(url)
    name = await admin.fetchval("select current_database()")
    role = f"limited_{name}"
    await admin.execute(f"create role {role} login superuser")
    known = {row["name"] for row in await admin.fetch("select name from pg_settings")}
    for setting in HOSTILE.keys() & known:
        await admin.execute(f"alter role {role} in database {name} set {setting} = '{HOSTILE[setting]}'")
    yield url.replace("mainspring@", f"{role}@")
    await admin.execute(f"alter role {role} nologin")
    await admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", role)
    await admin.execute(f"drop owned by {role}")
    await admin.execute(f"drop role {role}")
    await admin.close()


async def _nothing_went_wrong(system: System, handles: list[Any]) -> None:
    assert await system.ended(len(handles))
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("attempt", "outcome <> 'succeeded'") == 0
    assert await system.count("worker") == 1


@pytest.mark.parametrize("sabotage", ["", "settings"])
async def test_limits_that_a_dba_gave_to_the_role_do_not_reach_workers(
    system: System, jobs: Any, hostile_url: str, sabotage: str
) -> None:
    handles = await jobs.quick.submit_many([{"number": n} for n in range(MANY)])
    failed = await system.value(ROLLBACKS)
    system.start(url=hostile_url, sabotage=sabotage)
    if sabotage:  # the control
        assert await system.eventually(lambda: system.value(f"select ({ROLLBACKS}) > $1", failed))
        assert not await system.have_ended(MANY)
        return
    await _nothing_went_wrong(system, handles)


async def test_backends_that_are_terminated_all_the_time_cost_nobody_an_attempt(system: System, jobs: Any) -> None:
    system.start()
    assert await system.live_workers(1)
    handles = []
    for _ in range(10):
        handles += await jobs.quick.submit_many([{"number": n} for n in range(MANY // 10)])
        assert await system.eventually(lambda: system.value(TERMINATE))

    await _nothing_went_wrong(system, handles)


@pytest.mark.parametrize("sabotage", ["", "repair"])
async def test_a_day_without_its_partition_gets_one_and_nothing_is_lost(
    system: System, jobs: Any, sabotage: str
) -> None:
    """The clock of the database steps over days for which nobody made partitions."""
    system.start(sabotage=sabotage)
    assert await system.live_workers(1)
    await (await jobs.quick.submit(number=0)).result(PATIENCE)
    await system.connection.execute(
        "create or replace function clock_now() returns timestamptz language sql stable parallel safe"
        " as 'select now() + interval ''12 days'''"
    )
    handles = await jobs.quick.submit_many([{"number": n} for n in range(20)])
    handles.append(await jobs.nap.options(delay=60).submit(seconds=0))
    if sabotage:  # the control
        unsettled = "select count(*) from worker_heartbeat where unsettled_since is not null"
        assert await system.eventually(lambda: system.value(unsettled))
        assert not await system.have_ended(2)
        return
    assert await system.ended(21)
    await handles[-1].cancel()

    assert await system.ended(22)
    assert await system.count("attempt", "state <> 'succeeded' and state <> 'cancelled'") == 0
    assert await system.count("worker") == 1


@pytest.mark.parametrize("mode", [Mode.SWALLOW, Mode.HOLD])
async def test_a_worker_that_loses_a_commit_while_it_registers_looks_and_goes_on(
    system: System, jobs: Any, mode: Mode
) -> None:
    async with Proxy(system.url) as proxy:
        proxy.first_commit = ("worker start", mode)
        tree = system.start(url=proxy.url, sabotage="hasty")
        assert await system.live_workers(1)
        assert proxy.first_commit is None
        handle = await jobs.quick.submit(number=7)

        assert await handle.result(PATIENCE) == 7
        assert tree.process.poll() is None
        assert await system.count("worker") == 1


async def test_connections_that_are_used_up_keep_a_worker_waiting_and_no_longer(system: System, jobs: Any) -> None:
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url)
        assert await system.live_workers(1)
        proxy.refused = "worker"  # as a server does that has none left: it ends the connection
        proxy.cut("worker")
        handles = await jobs.quick.submit_many([{"number": n} for n in range(20)])
        beat = await system.value("select beat from worker_heartbeat")
        assert await system.eventually(lambda: system.value("select beat > $1 from worker_heartbeat", beat))
        proxy.refused = ""

        await _nothing_went_wrong(system, handles)
