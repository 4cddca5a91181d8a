"""Schedulers die at any statement, or ten of them do the same; clocks jump at night. Each fault has its control."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.lifecycle.stepping import Died, Gate, SteppedConnection
from tests.occurrences import NOTHING_WRONG, Verdict, fired, instants, verdict

from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of_key
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.store import schedule_firing, schedules
from mainspring.wiring.scheduler import lane_firer

from .scheduling import DROP_COMPARISON, HOUR, LANES, MINUTE, NEW_YEAR, Firing, remind, replace_in_function

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

# ── killed at each statement ────────────────────────────────────────────────────────────────────────────────────

LANE = 3
HOURLY, ONCE, PAUSED, BROKEN = [
    next(name for number in count() if lane_of_key(DEFAULT_TENANT, name := f"{kind}-{number}", LANES) == LANE)
    for kind in ("hourly", "once", "paused", "broken")
]
EXPECTED = {name: [NEW_YEAR + HOUR] for name in (HOURLY, ONCE, PAUSED)}


async def set_up(app: Mainspring, clock: FrozenClock, connection: Connection) -> None:
    """One that goes on, one that is over after this, one whose pause ends, and one that cannot be decided: all due."""
    await connection.execute(
        "delete from ready; delete from schedule; delete from cursor; delete from occurrence; delete from skipped"
    )
    await clock.set(NEW_YEAR)
    for name in (HOURLY, PAUSED, BROKEN):
        await app.schedules.create(name, "remind", "0 * * * *", {"customer": 1})
    await app.schedules.create(ONCE, "remind", "2031-01-01T01:00:00Z", {"customer": 1})
    await app.schedules.pause(PAUSED, until=NEW_YEAR + 30 * MINUTE)
    await connection.execute("""update schedule set spec = '{"when": "of another age"}' where name = $1""", BROKEN)
    await clock.set(NEW_YEAR + HOUR)


class FatalGate(Gate):
    """Whoever comes to the boundary dies there."""

    async def boundary(self, before: str) -> None:
        if len(self.passed) == self._stop_at:
            self.die()
        await super().boundary(before)


async def verdicts(app: Mainspring, clock: FrozenClock, connection: Connection, database: Database) -> list[Verdict]:
    """For each boundary: what the checker finds when a scheduler was killed there, and another one has fired.

    Before each statement, and between each and its COMMIT; in the end, after the last one.
    """
    remind(app)
    victim, found, has_survived = await database.connect("victim"), list[Verdict](), False
    while not has_survived:
        await set_up(app, clock, connection)
        stepped = SteppedConnection(victim)
        stepped.gate = FatalGate(stop_at=len(found))
        with suppress(Died):
            await lane_firer(clock).fire(cast("Connection", stepped), LANE, 0.0, packs=True)
            has_survived = True
        await Firing(connection, clock).fire()
        found.append(await verdict(connection, EXPECTED))
    await victim.close()
    return found


@pytest.mark.invariant(2)
async def test_nothing_is_missing_or_extra_wherever_a_scheduler_was_killed(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, database: Database
) -> None:
    found = await verdicts(frozen_app, clock, connection, database)
    assert len(found) > 10
    assert found == [NOTHING_WRONG] * len(found)
    assert await connection.fetchval("select state from schedule where name = $1", BROKEN) == "paused"


async def test_a_scheduler_that_moves_cursors_by_an_act_of_its_own_repeats_itself(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: killed between the two acts, and without the ledger's key."""
    await replace_in_function(
        connection, "set nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata", "set tzdata"
    )
    await connection.execute("alter table occurrence drop constraint occurrence_pkey")
    fire = schedule_firing.fire

    async def fire_and_then_move(
        through: Connection, lane: int, firings: list[Any], *rest: Any, packs: bool
    ) -> list[Any]:
        groups = await fire(through, lane, firings, *rest, packs=packs)
        for each in firings:
            if each.following is not None:
                await schedules.set_cursor(through, lane, each.schedule_id, each.following, each.following_due, "")
        return groups

    monkeypatch.setattr(schedule_firing, "fire", fire_and_then_move)
    assert any(each.extra for each in await verdicts(frozen_app, clock, connection, database))


# ── ten at once ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(8)
@pytest.mark.parametrize("guarded", [True, False], ids=["", "control"])
async def test_ten_schedulers_that_all_look_after_every_lane_fire_everything_once(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, database: Database, *, guarded: bool
) -> None:
    """Nobody owns anything: each reads all cursors before anybody acts, and then all act at once, and again."""
    job, names = remind(frozen_app), [f"hourly-{number}" for number in range(16)]
    for name in names:
        await job.scheduled(name, "0 * * * *", catch_up="all").create(1)
    await clock.advance(4 * HOUR)
    if not guarded:
        await replace_in_function(connection, *DROP_COMPARISON)
        await connection.execute("alter table occurrence drop constraint occurrence_pkey")
    connections = [await database.connect(f"scheduler {number}") for number in range(10)]
    racers = [Firing(each, clock) for each in connections]
    while await connection.fetchval("select exists (select from cursor where due_at <= clock_now())"):
        batches = await asyncio.gather(*(each.decided() for each in racers))
        await asyncio.gather(*(each.carry_out(batch) for each, batch in zip(racers, batches, strict=True)))
    for each in connections:
        await each.close()
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    found = await verdict(connection, dict.fromkeys(names, expected))
    assert found.missing == []
    assert (found.extra == []) == guarded


# ── nights on which clocks jump ─────────────────────────────────────────────────────────────────────────────────

BERLIN = "Europe/Berlin"
SPRING, AUTUMN = datetime(2031, 3, 30, tzinfo=UTC), datetime(2031, 10, 26, tzinfo=UTC)  # the clock jumps at 01:00 UTC
HALF = timedelta(minutes=30)
# When "half past two" fires, in half hours after midnight UTC.
IN_THE_GAP = {GapPolicy.AS_CRON: [2], GapPolicy.RUN_AFTER: [2], GapPolicy.SHIFT: [3], GapPolicy.SKIP: []}
TWICE = {RepeatPolicy.AS_CRON: [1], RepeatPolicy.FIRST: [1], RepeatPolicy.SECOND: [3], RepeatPolicy.BOTH: [1, 3]}


@pytest.mark.parametrize(("night", "setting", "table"), [(SPRING, "gap", IN_THE_GAP), (AUTUMN, "repeat", TWICE)])
async def test_schedules_fire_through_a_night_on_which_clocks_jump(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    night: datetime,
    setting: str,
    table: dict[str, list[int]],
) -> None:
    """By each policy, and for one that follows elapsed time; the control is one that knows nothing of summer."""
    job, firing = remind(frozen_app), Firing(connection, clock)
    await clock.set(night - HALF)
    for policy in table:
        await job.scheduled(policy, Schedule.parse("30 2 * * *", zone=BERLIN, **{setting: policy})).create(1)
    await job.scheduled("elapsed", Schedule.parse("*/30 * * * *", zone=BERLIN)).create(1)
    await job.scheduled("winter", Schedule.parse("30 2 * * *", zone="Etc/GMT-1")).create(1)
    for _ in range(10):
        await clock.advance(HALF)
        await firing.fire(horizon=2.0)
    found = await fired(connection)
    assert {policy: found.get(policy, []) for policy in table} == {
        policy: [night + halves * HALF for halves in each] for policy, each in table.items()
    }
    assert found["elapsed"] == [night + halves * HALF for halves in range(10)]
    assert found["winter"] == [night + 3 * HALF], "the control"
    assert await connection.fetchval("select bool_and(fired_at = due_at) from occurrence"), "on time"
