"""Jobs that follow others while workers and schedulers are killed: each end is followed once, and none is forgotten."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from .machinery import SHORT_LEASE_TIME
from .test_overlap import EVERY_SECOND
from .test_schedulers import scheduler

if TYPE_CHECKING:
    from .machinery import System

RUNS = 60
# How often each end of the job was followed, wherever the runs that follow are by now.
FOLLOWERS = """
    with follower as (
        select distinct run.id, (run.headers ->> 'triggered_by')::uuid as after from (
            select id, headers from ready union all select id, headers from later union all select id, headers from held
            union all select run_id, headers from attempt
            union all select claimed.id, claimed.headers from lease cross join lateral unnest(lease.runs) as claimed
        ) as run where run.headers ? 'triggered_by')
    select over.run_id, (select count(*) from follower where follower.after = over.run_id) as followers
    from attempt as over join job on job.id = over.job_id
    where job.name = 'lead' and over.state = 'succeeded'"""


async def how_often(system: System) -> set[int]:
    return {row["followers"] for row in await system.connection.fetch(FOLLOWERS)}


IS_QUIET = """
    select not (exists (select from mainspring.ready) or exists (select from mainspring.later)
                or exists (select from mainspring.held) or exists (select from mainspring.lease)
                or exists (select from mainspring.chain_news))"""


async def is_quiet(system: System) -> bool:
    """In one snapshot: between two looks, what was to follow might come in line where somebody has just looked."""
    return bool(await system.connection.fetchval(IS_QUIET))


async def test_each_end_is_followed_once_while_workers_and_schedulers_are_killed(system: System, jobs: Any) -> None:
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    await jobs.lead.scheduled("lead", EVERY_SECOND).create()
    with scheduler(system.url):
        handles = await jobs.lead.submit_many([{}] * RUNS)
        for share in (1, 2, 3):
            assert await system.ended(share * RUNS // 4)
            async with system.replacing(1):
                system.trees[share % 2].signal_children(signal.SIGKILL)
    with scheduler(system.url):  # the first one was killed
        assert await system.eventually(lambda: system.count("occurrence"))
        assert await system.ended(2 * RUNS)
        await jobs.app.schedules.pause("lead")

    assert await system.eventually(lambda: is_quiet(system))
    assert await how_often(system) == {1}
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report


async def test_without_the_news_being_told_nobody_would_follow(system: System, jobs: Any) -> None:
    """The control: ends are not noted for whoever submits what follows."""
    await system.connection.execute(
        "create or replace function mainspring.tell_chains(lane smallint, runs uuid[]) returns void"
        " language sql as 'select null::void'"
    )
    system.start()
    assert await system.live_workers(1)
    await jobs.lead.submit_many([{}] * 5)
    assert await system.ended(5)
    assert await system.eventually(lambda: is_quiet(system))

    assert await how_often(system) == {0}
