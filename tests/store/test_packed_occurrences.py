"""Runs of schedules say which occurrence they are for in a short form, unless a worker lives that cannot read it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.occurrences import NOTHING_WRONG, instants, verdict

from mainspring.model.run import PRIORITIES
from mainspring.scheduler.scheduler import LaneAssignment, SchedulerIdentity
from mainspring.store import workers
from mainspring.wiring.scheduler import lane_firer

from .scheduling import HOUR, LANES, NEW_YEAR, remind

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


async def fire(connection: Connection, clock: FrozenClock, horizon: float = 0.0, *, packs: bool = True) -> None:
    firer = lane_firer(clock)
    for lane in range(LANES):
        while (await firer.fire(connection, lane, horizon, packs=packs)).decisions:
            pass


async def register(connection: Connection, **overrides: Any) -> None:
    """A live worker of this program, or one that an older program would have written."""
    id_ = uuid4()
    await workers.register(
        connection, worker_id=id_, host="h", pid=1, queues=[], handlers=[], slots=1, lease_seconds=60, version="v"
    )
    for column, value in overrides.items():
        await connection.execute(f"update worker set {column} = $2 where id = $1", id_, value)  # noqa: S608


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("name", ["hourly", "de:berlin/a.b-c_d"])
async def test_both_forms_say_the_same(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, packs: bool, name: str
) -> None:
    job = remind(frozen_app).options(headers={"region": "eu"})
    await job.scheduled(name, "every hour").create(1)
    await clock.advance(HOUR)
    await fire(connection, clock, packs=packs)

    (run_id,) = [row["id"] for row in await connection.fetch("select id from ready")]
    assert (await frozen_app.runs.find(run_id)).headers == {
        "region": "eu",
        "schedule": name,
        "schedule_version": "1",
        "occurrence": "2031-01-01T01:00:00.000000Z",
        "previous_occurrence": "2031-01-01T00:00:00.000000Z",
    }
    assert await connection.fetchval("select headers ? '@occurrence' from ready") is packs
    hours = instants("every hour", after=NEW_YEAR, until=NEW_YEAR + HOUR, name=name)
    assert await verdict(connection, {name: hours}) == NOTHING_WRONG


@pytest.mark.parametrize(
    ("older", "stages", "packs"),
    [
        ({}, True, True),
        ({"knows": 0}, True, False),
        ({"knows": 0, "waits_for_rank": False}, False, False),
    ],
)
async def test_a_scheduler_writes_what_every_live_worker_can_read(
    clock: FrozenClock, connection: Connection, older: dict[str, Any], stages: bool, packs: bool
) -> None:
    assignment = LaneAssignment(SchedulerIdentity(id=uuid4(), lanes=LANES, clock=clock, version="v"))
    await register(connection)
    await register(connection, **older)
    await assignment.observe(connection)

    assert (assignment.horizon > 0) is stages
    assert assignment.packs is packs


@pytest.mark.parametrize(("hours", "packs"), [(23, False), (25, True)])
async def test_an_older_worker_that_has_ended_may_be_started_again_for_a_day(
    clock: FrozenClock, connection: Connection, hours: int, packs: bool
) -> None:
    assignment = LaneAssignment(SchedulerIdentity(id=uuid4(), lanes=LANES, clock=clock, version="v"))
    await register(connection, knows=0, waits_for_rank=False)
    await connection.execute("update worker set state = 'stopped', ended_at = clock_now() - $1::interval", hours * HOUR)
    await assignment.observe(connection)

    assert assignment.horizon > 0
    assert assignment.packs is packs


async def test_runs_that_were_staged_together_stay_together_in_line(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    """A claim takes them by rank: interleaved with those of other batches, they would be on as many pages."""
    job = remind(frozen_app)
    for ahead in (40, 20):
        await clock.set(NEW_YEAR + HOUR - timedelta(seconds=ahead))
        await job.options(tags=[f"{ahead}"]).scheduled(f"ahead-{ahead}", "every hour").create(1)
        await job.options(tags=[f"{ahead}"]).scheduled(f"also-{ahead}", "every hour").create(1)
        await fire(connection, clock, horizon=ahead)

    rows = await connection.fetch("select tags[1] as ahead, rank from ready where priority = any ($1)", PRIORITIES)
    earlier, later = ({row["rank"] for row in rows if row["ahead"] == each} for each in ("40", "20"))
    assert max(later) < min(earlier)
    due = int((NEW_YEAR + HOUR).timestamp() * 1_000_000)
    assert min(later) >= due, "never before its instant"
    assert max(earlier) < due + 50_000, "nor much after it"
