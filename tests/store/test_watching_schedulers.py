"""What doctor and top say about schedulers, about instants that are overdue, and about what cannot be decided."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from mainspring.control.doctor import examine
from mainspring.control.findings import Finding, Level
from mainspring.control.overview import overview
from mainspring.store import schedulers

from .scheduling import LANES, MINUTE, Firing, remind

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


class Ward:
    """A database with a job, and doctor."""

    def __init__(self, app: Mainspring, connection: Connection, clock: FrozenClock) -> None:
        self.app, self.connection, self.clock = app, connection, clock
        self.job = remind(app)

    async def finding(self, check: str) -> Finding:
        return next(each for each in await examine(self.connection, self.clock) if each.check == check)

    async def beat(self) -> None:
        await schedulers.beat(self.connection, uuid4(), host="here", pid=1, version="0")


@pytest.fixture
async def ward(frozen_app: Mainspring, connection: Connection, clock: FrozenClock) -> Ward:
    await frozen_app.services()
    return Ward(frozen_app, connection, clock)


async def test_without_schedules_no_scheduler_is_missed(ward: Ward) -> None:
    assert (await ward.finding("schedulers")).level is Level.OK
    assert (await ward.finding("schedules")).level is Level.OK


async def test_schedules_that_nobody_fires_are_a_problem_and_the_remedy_is_named(ward: Ward) -> None:
    await ward.job.scheduled("minutely", "* * * * *").create(1)
    early = await ward.finding("schedulers")
    await ward.clock.advance(5 * MINUTE)
    late = await ward.finding("schedulers")

    assert (early.level, early.says) == (Level.PROBLEM, "no live scheduler: schedules do not fire")
    assert "mainspring scheduler" in early.remedy
    assert late.says.endswith("; 1 lane overdue, the oldest instant by 240 s")


async def test_live_schedulers_share_the_lanes(ward: Ward) -> None:
    await ward.beat()
    alone = await ward.finding("schedulers")
    await ward.beat()
    both = (await overview(ward.connection, ward.app.actor, LANES)).firing

    assert (alone.level, alone.says) == (Level.OK, f"1 live, with {LANES} lanes")
    assert sum(each.lanes for each in both.schedulers) == LANES
    assert (len(both.schedulers), both.has_schedules, both.overdue_seconds) == (2, False, 0)


async def test_a_scheduler_that_is_silent_is_not_live(ward: Ward) -> None:
    await ward.beat()
    await ward.clock.advance(timedelta(seconds=11))

    assert (await ward.finding("schedulers")).says == "none, and no schedule is to fire"


@pytest.mark.parametrize(("late", "level"), [(4, Level.OK), (6, Level.WARNING), (61, Level.PROBLEM)])
async def test_instants_that_live_schedulers_leave_undecided_are_told(ward: Ward, late: int, level: Level) -> None:
    await ward.job.scheduled("minutely", "* * * * *").create(1)
    await ward.clock.advance(MINUTE + timedelta(seconds=late))
    await ward.beat()
    finding, firing = await ward.finding("schedulers"), (await overview(ward.connection, ward.app.actor, LANES)).firing

    assert finding.level is level
    assert (firing.overdue_seconds, len(firing.overdue_lanes)) == (late, int(level is not Level.OK))
    assert (f"; 1 lane overdue, the oldest instant by {late} s" in finding.says) == (level is not Level.OK)


async def test_schedules_that_the_scheduler_paused_are_named_with_the_reason(ward: Ward) -> None:
    for name in ("strange", "paused-by-somebody"):
        await ward.job.scheduled(name, "* * * * *").create(1)
    await ward.app.schedules.pause("paused-by-somebody")
    await ward.connection.execute("""update schedule set spec = '{"when":"when pigs fly"}' where name = 'strange'""")
    await ward.clock.advance(MINUTE)
    await Firing(ward.connection, ward.clock).fire()
    finding = await ward.finding("schedules")

    assert finding.level is Level.WARNING
    assert finding.says.startswith("1 paused by the scheduler: strange (")
    assert "when pigs fly" in finding.says
    assert finding.remedy.endswith("mainspring schedule resume strange")
