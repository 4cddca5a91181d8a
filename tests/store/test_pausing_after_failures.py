"""A schedule whose runs fail again and again is paused, says why, and goes on when somebody says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.lifecycle import verbs
from tests.lifecycle.verbs import Party, Subject

from mainspring.errors import InvalidSchedule
from mainspring.model.scheduling import ScheduleState
from mainspring.scheduler.cursors import ACTOR
from mainspring.scheduler.scheduler import LaneAssignment, PausingLoop, SchedulerIdentity
from mainspring.store import schedule_firing

from .scheduling import HOUR, LANES, MINUTE, Firing, outcomes, remind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

FAILS, SUCCEEDS, IS_CANCELLED = ("claim", "bury"), ("claim", "complete"), ("cancel",)


@pytest.fixture
async def party(database: Database) -> AsyncIterator[Party]:
    party = await Party.arrives(database)
    yield party
    await party.leaves()


class Troubled:
    """An hourly schedule whose runs end as they are told to."""

    def __init__(self, app: Mainspring, clock: FrozenClock, connection: Connection, party: Party) -> None:
        self.app = app
        self.connection = connection
        self._clock = clock
        self._firing = Firing(connection, clock)
        self._party = party

    async def make(self, failures: int | None, **settings: Any) -> None:
        await remind(self.app).scheduled("hourly", "0 * * * *", pause_after_failures=failures, **settings).create(1)

    async def fire(self) -> None:
        await self._clock.advance(HOUR)
        await self._firing.fire()

    async def go(self, *ways: tuple[str, ...]) -> None:
        """Let an hour go by for each of these, and the run of that hour go that way."""
        for way in ways:
            await self.fire()
            await self.end(way)

    async def end(self, way: tuple[str, ...]) -> Subject:
        row = await self.connection.fetchrow("select id, job_id, line_id from ready")
        assert row is not None
        subject = Subject(row["id"], row["job_id"], row["line_id"], uuid4(), uuid4())
        await self.act(subject, way)
        return subject

    async def act(self, subject: Subject, way: tuple[str, ...]) -> None:
        for verb in way:
            await verbs.VERBS[verb](self._party, subject, None)

    async def look(self) -> int:
        """As a scheduler does every second; answers how many schedules there were to look at."""
        rows = await schedule_firing.failing(self.connection, range(LANES))
        for row in rows:
            await schedule_firing.pause_failing(self.connection, row["lane"], row["schedule_id"], actor=ACTOR)
        return len(rows)

    async def state(self) -> ScheduleState:
        return (await self.app.schedules.find("hourly")).state


@pytest.fixture
def troubled(frozen_app: Mainspring, clock: FrozenClock, connection: Connection, party: Party) -> Troubled:
    return Troubled(frozen_app, clock, connection, party)


async def test_it_is_paused_after_so_many_failures_in_a_row_and_not_before(troubled: Troubled) -> None:
    await troubled.make(3)
    await troubled.go(FAILS, FAILS)
    assert await troubled.look() == 0
    await troubled.go(FAILS)
    assert await troubled.state() is ScheduleState.ACTIVE, "nobody has looked yet"
    assert await troubled.look() == 1

    assert await troubled.state() is ScheduleState.PAUSED
    assert await troubled.look() == 0, "once is enough"
    await troubled.fire()
    assert [said for _, _, said in await outcomes(troubled.app, "hourly")] == ["fired"] * 3


async def test_it_says_by_whom_and_names_the_last_failure(troubled: Troubled) -> None:
    await troubled.make(2)
    await troubled.go(FAILS)
    await troubled.fire()
    last = await troubled.end(FAILS)
    await troubled.look()

    found = await troubled.app.schedules.find("hourly")
    why = f"2 runs in a row ended without success; the last, {last.run_id}, is a dead letter: never"
    assert (found.paused_by, found.pause_reason, found.paused_until) == ("scheduler", why, None)
    (audited,) = await troubled.connection.fetch("select actor, detail from audit where action = 'schedule.pause'")
    assert audited["actor"] == "scheduler"
    assert str(last.run_id) in audited["detail"]


async def test_nothing_fires_after_the_last_failure_also_if_nobody_has_looked(troubled: Troubled) -> None:
    """Whoever fires counts: two that failed at once may not have seen each other."""
    await troubled.make(2)
    await troubled.go(FAILS, FAILS)
    await troubled.connection.execute("update schedule_failure set has_reached = false")
    await troubled.fire()

    assert await troubled.state() is ScheduleState.PAUSED
    assert await troubled.connection.fetchval("select count(*) from ready") == 0


async def test_a_success_sets_the_count_back(troubled: Troubled) -> None:
    await troubled.make(2)
    await troubled.go(FAILS, SUCCEEDS, FAILS, SUCCEEDS, FAILS)
    assert await troubled.look() == 0
    await troubled.go(FAILS)
    assert await troubled.look() == 1


@pytest.mark.parametrize(
    ("way", "counts"),
    [
        (("claim", "bury"), True),
        (("expire",), True),
        (("claim", "lose"), True),
        (("cancel",), False),
        (("claim", "retry"), False),
        (("claim", "rescue"), False),
        (("claim", "bury", "purge"), True),
        (("claim", "bury", "requeue", "claim", "complete"), False),
        (("claim", "bury", "requeue", "claim", "bury"), True),
    ],
)
async def test_what_counts_as_a_failure(
    troubled: Troubled, way: tuple[str, ...], counts: bool, connection: Connection
) -> None:
    await troubled.make(1)
    await troubled.fire()
    if way == ("expire",):
        await connection.execute("update ready set expires_at = mainspring.clock_now()")
    await troubled.end(way)

    assert await connection.fetchval("select count(*) from schedule_failure") == counts
    await troubled.look()
    assert await troubled.state() is (ScheduleState.PAUSED if counts else ScheduleState.ACTIVE)


async def test_a_cancelled_run_neither_counts_nor_sets_the_count_back(troubled: Troubled) -> None:
    await troubled.make(2)
    await troubled.go(FAILS, IS_CANCELLED, FAILS)

    assert await troubled.look() == 1


async def test_a_run_that_dies_twice_counts_once(troubled: Troubled) -> None:
    await troubled.make(2)
    await troubled.go(("claim", "bury", "requeue", "claim", "bury"))

    assert await troubled.look() == 0


async def test_one_that_crashed_too_often_counts(troubled: Troubled, connection: Connection) -> None:
    await troubled.make(1)
    await troubled.fire()
    await connection.execute("update ready set crashes = 9")
    await troubled.end(("claim", "rescue"))
    await troubled.look()

    reason = (await troubled.app.schedules.find("hourly")).pause_reason
    assert reason is not None
    assert reason.startswith("a run ended without success")
    assert reason.endswith("is a dead letter: Its worker was lost 10 times while it ran.")


async def test_resumed_by_hand_it_counts_anew(troubled: Troubled) -> None:
    await troubled.make(2)
    await troubled.go(FAILS, FAILS)
    await troubled.look()
    await troubled.app.schedules.resume("hourly")
    assert await troubled.state() is ScheduleState.ACTIVE

    await troubled.go(FAILS)
    assert await troubled.look() == 0
    await troubled.go(FAILS)
    assert await troubled.look() == 1
    assert [said for _, _, said in await outcomes(troubled.app, "hourly")] == ["fired"] * 4


async def test_what_would_have_fired_meanwhile_is_skipped_as_in_every_pause(
    troubled: Troubled, clock: FrozenClock
) -> None:
    await troubled.make(1)
    await troubled.go(FAILS)
    await troubled.look()
    await clock.advance(HOUR + MINUTE)
    await troubled.app.schedules.resume("hourly")

    assert [said for _, _, said in await outcomes(troubled.app, "hourly")] == ["fired", "paused"]


async def test_a_deleted_schedule_leaves_nothing_to_look_at(troubled: Troubled, connection: Connection) -> None:
    await troubled.make(1)
    await troubled.fire()
    await troubled.app.schedules.delete("hourly")
    await troubled.end(FAILS)
    assert await troubled.look() == 1

    assert await troubled.look() == 0
    assert await connection.fetchval("select count(*) from schedule_failure") == 0


async def test_somebody_who_changes_the_schedule_comes_first(
    troubled: Troubled, database: Database, connection: Connection
) -> None:
    await troubled.make(1)
    await troubled.go(FAILS)
    other = await database.connect("other")
    async with other.transaction():
        await other.execute("select from schedule for update")
        assert await troubled.look() == 1
        assert await troubled.state() is ScheduleState.ACTIVE
    await other.close()

    assert await troubled.look() == 1, "it is looked at again"
    assert await troubled.state() is ScheduleState.PAUSED


async def test_runs_of_other_schedules_are_not_watched(troubled: Troubled, connection: Connection) -> None:
    await troubled.make(None)
    await troubled.go(FAILS, FAILS)

    assert await connection.fetchval("select count(*) from schedule_failure") == 0
    assert await connection.fetchval("select count(*) from schedule_run") == 0


async def test_schedulers_look_by_themselves(troubled: Troubled, connection: Connection, clock: FrozenClock) -> None:
    await troubled.make(1)
    await troubled.go(FAILS)
    assignment = LaneAssignment(SchedulerIdentity(id=uuid4(), lanes=LANES, clock=clock, version="test"))
    assignment.lanes = list(range(LANES))
    await PausingLoop(assignment=assignment, link=None).step(connection)  # type: ignore[arg-type]  # no link is needed

    assert await troubled.state() is ScheduleState.PAUSED


@pytest.mark.parametrize("given", [0, -1, 1_001, "3", True, 2.5])
async def test_other_numbers_are_refused(frozen_app: Mainspring, given: Any) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        remind(frozen_app).scheduled("hourly", "0 * * * *", pause_after_failures=given).request(1)

    assert refused.value.code == "invalid-pause-after-failures"
    assert "must be a whole number from 1 to 1,000" in refused.value.message
