"""Schedules are made, replaced, paused, resumed, triggered and deleted, whatever is staged or overdue meanwhile."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.occurrences import NOTHING_WRONG, SCHEDULE_OF, Instant, fired, instants, verdict
from tests.waiting import until

from mainspring import State
from mainspring.control.schedule_requests import ScheduleRequest
from mainspring.errors import (
    InvalidArguments,
    InvalidInput,
    InvalidSchedule,
    JobNotFound,
    ScheduleExists,
    ScheduleNotFound,
    ScheduleVersionConflict,
)
from mainspring.model.ids import lane_of_key
from mainspring.schedule.calendar import Calendar
from mainspring.scheduler import firing as scheduler_firing
from mainspring.scheduler.changing import LockedSchedule
from mainspring.store.connection import transaction
from mainspring.testing import run_until_idle

from .scheduling import DAY, HOUR, LANES, MINUTE, NEW_YEAR, Firing, outcomes, remind, run_ids

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mainspring import Mainspring
    from mainspring.schedule.schedule import Occurrence
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

SOON = timedelta(seconds=2)


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


@pytest.fixture
async def staged(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> Mainspring:
    """An application whose hourly schedule has a run in line that is due in two seconds."""
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR - SOON)
    await firing.fire(horizon=2.0)
    assert len(await run_ids(frozen_app)) == 1
    return frozen_app


# ── making and replacing ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_name_is_given_once(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("acme", "every hour").create(1)
    with pytest.raises(ScheduleExists):
        await frozen_app.schedules.create("acme", "remind", "every day at 09:00")


async def test_put_twice_is_put_once(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    for _ in range(2):
        made = await job.scheduled("acme", "every hour").put(1)
        assert made.version == 1
    assert (await job.scheduled("acme", "every hour").put(2)).version == 2
    versions = await frozen_app.schedules.versions("acme")
    assert [(each.version, each.payload) for each in versions] == [(2, {"customer": 2}), (1, {"customer": 1})]


async def test_who_expects_another_version_changes_nothing(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("acme", "every hour").create(1)
    with pytest.raises(ScheduleVersionConflict):
        await frozen_app.schedules.put("acme", "remind", "every day at 09:00", expected_version=2)
    changed = await frozen_app.schedules.put("acme", "remind", "every day at 09:00", expected_version=1)
    assert (changed.version, changed.next_at) == (2, NEW_YEAR + 9 * HOUR)


@pytest.mark.parametrize(
    ("call", "error", "code"),
    [
        (lambda app: app.schedules.create("a b", "remind", "every hour"), InvalidInput, "invalid-name"),
        (lambda app: app.schedules.create("a", "nobody", "every hour"), JobNotFound, "job-not-found"),
        (lambda app: app.schedules.create("a", "remind", "every blue moon"), InvalidSchedule, "invalid-english"),
        (lambda app: app.schedules.create("a", "remind", "2030-01-01T00:00:00Z"), InvalidSchedule, "schedule-over"),
        (lambda app: app.schedules.create("a", "remind", "0 0 31 2 *"), InvalidSchedule, "never-fires"),
        (lambda app: app.schedules.create("a", "remind", "every hour", zone="Mars"), InvalidSchedule, "unknown-zone"),
        (
            lambda app: app.schedules.create("a", "remind", "every hour", catch_up="x"),
            InvalidSchedule,
            "invalid-catch-up",
        ),
        (
            lambda app: app.schedules.create("a", "remind", "every hour", overlap="never"),
            InvalidSchedule,
            "invalid-overlap",
        ),
        (
            lambda app: app.schedules.create("a", "remind", "every hour", {"customer": "x"}),
            InvalidArguments,
            "invalid-arguments",
        ),
        (lambda app: app.schedules.list(states=["sleeping"]), InvalidInput, "invalid-state"),
        (lambda app: app.schedules.pause("nobody"), ScheduleNotFound, "schedule-not-found"),
        (lambda app: app.schedules.trigger("nobody"), ScheduleNotFound, "schedule-not-found"),
    ],
)
async def test_bad_input_is_refused_and_nothing_is_made(
    frozen_app: Mainspring, call: Callable[[Mainspring], object], error: type[Exception], code: str
) -> None:
    remind(frozen_app)
    with pytest.raises(error) as caught:
        await call(frozen_app)  # type: ignore[misc]
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert await frozen_app.schedules.list() == []


@pytest.mark.parametrize("is_fired", [True, False], ids=["", "without schedulers"])
async def test_a_schedule_made_again_does_not_fire_what_was_before(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, *, is_fired: bool
) -> None:
    """Deleted and made again at five past midnight: the one that is gone has fired at midnight, the new one has not."""
    job = remind(frozen_app)
    old = await job.scheduled("midnight", "every day at 00:00").create(1)
    await clock.advance(24 * HOUR)
    if is_fired:
        await firing.fire()
    await clock.advance(5 * MINUTE)
    await frozen_app.schedules.delete("midnight")
    made = await job.scheduled("midnight", "every day at 00:00").create(1)
    assert made.next_at == NEW_YEAR + 48 * HOUR
    assert await firing.fire() == 0
    assert [row["schedule_id"] for row in await connection.fetch("select schedule_id from occurrence")] == [old.id]
    assert await verdict(connection, {"midnight": [NEW_YEAR + 24 * HOUR]}) == NOTHING_WRONG


async def test_a_schedule_that_began_with_its_last_instant_would_fire_it_again(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    firing: Firing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control."""
    first_after = ScheduleRequest.first_after

    def first_since_yesterday(self: ScheduleRequest, now: datetime, *rest: Any) -> Occurrence:
        return first_after(self, now - 24 * HOUR, *rest)

    job, midnight = remind(frozen_app), NEW_YEAR + 24 * HOUR
    await job.scheduled("midnight", "every day at 00:00").create(1)
    await clock.set(midnight)
    await firing.fire()
    await clock.advance(5 * MINUTE)
    await frozen_app.schedules.delete("midnight")
    monkeypatch.setattr(ScheduleRequest, "first_after", first_since_yesterday)
    await job.scheduled("midnight", "every day at 00:00").create(1)
    await firing.fire()
    assert (await verdict(connection, {"midnight": [midnight]})).extra == [Instant("midnight", midnight)]


async def test_what_became_of_a_deleted_schedule_can_be_asked(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR)
    await firing.fire()
    await frozen_app.schedules.delete("hourly")
    assert [each for _, _, each in await outcomes(frozen_app, "hourly")] == ["fired", "deleted"]
    assert [each.is_deleted for each in await frozen_app.schedules.versions("hourly")] == [True]
    with pytest.raises(ScheduleNotFound):
        await frozen_app.schedules.history("daily")


async def test_calendars_are_given_by_the_names_in_the_text(frozen_app: Mainspring) -> None:
    holidays = Calendar(name="holidays", dates=frozenset({NEW_YEAR.date()}))

    @frozen_app.job(schedule="0 9 * * * not=holidays", calendars={"holidays": holidays})
    async def report() -> None: ...

    await frozen_app.schedules.apply()
    assert (await frozen_app.schedules.find("report")).next_at == NEW_YEAR + 33 * HOUR


async def test_schedules_are_listed_by_name_job_tag_and_state(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    for name in ("acme-1", "acme-2", "zeta-1"):
        await job.options(tags=[name[:4]]).scheduled(name, "every hour").create(1)
    await frozen_app.schedules.pause("acme-2")

    async def names(**filters: object) -> list[str]:
        return [each.name for each in await frozen_app.schedules.list(**filters)]  # type: ignore[arg-type]

    assert await names() == ["acme-1", "acme-2", "zeta-1"]
    assert await names(prefix="acme") == ["acme-1", "acme-2"]
    assert await names(after="acme-1", limit=1) == ["acme-2"]
    assert await names(tags=["zeta"]) == ["zeta-1"]
    assert await names(states=["paused"]) == ["acme-2"]
    assert await names(job="remind", states=["active"]) == ["acme-1", "zeta-1"]


# ── what is staged is taken back ────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_takes_back_what_is_staged(staged: Mainspring, clock: FrozenClock, firing: Firing) -> None:
    await staged.schedules.pause("hourly", reason="holidays")
    assert await run_ids(staged) == []
    await clock.advance(5 * HOUR)
    assert await firing.fire() == 0
    await run_until_idle(staged)
    found = await staged.schedules.find("hourly")
    assert (found.state, found.pause_reason, found.paused_by) == ("paused", "holidays", "tester")

    resumed = await staged.schedules.resume("hourly")
    assert resumed.next_at == NEW_YEAR + 6 * HOUR
    assert await outcomes(staged, "hourly") == [(NEW_YEAR + HOUR, NEW_YEAR + 5 * HOUR, "paused")]
    assert await run_ids(staged) == []


async def test_a_pause_that_is_undone_at_once_loses_nothing(
    staged: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await staged.schedules.pause("hourly")
    await staged.schedules.resume("hourly")
    await clock.advance(SOON)
    await firing.fire()
    assert await outcomes(staged, "hourly") == [(NEW_YEAR + HOUR, NEW_YEAR + HOUR, "fired")]
    assert len(await run_ids(staged)) == 1


async def test_a_pause_ends_by_itself(staged: Mainspring, clock: FrozenClock, firing: Firing) -> None:
    await staged.schedules.pause("hourly", until=NEW_YEAR + 3 * HOUR + MINUTE)
    await clock.set(NEW_YEAR + 3 * HOUR)
    assert await firing.fire() == 0
    await clock.set(NEW_YEAR + 4 * HOUR)
    await firing.fire()
    assert await outcomes(staged, "hourly") == [
        (NEW_YEAR + HOUR, NEW_YEAR + 3 * HOUR, "paused"),
        (NEW_YEAR + 4 * HOUR, NEW_YEAR + 4 * HOUR, "fired"),
    ]
    assert (await staged.schedules.find("hourly")).state == "active"


async def test_an_edit_takes_back_what_is_staged_and_fires_by_the_new_version(
    staged: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    changed = await staged.schedules.put("hourly", "remind", "30 * * * *", {"customer": 2})
    assert changed.next_at == NEW_YEAR + HOUR + 30 * MINUTE
    assert await run_ids(staged) == []
    await clock.advance(HOUR)
    await firing.fire()
    (run_id,) = await run_ids(staged)
    assert (await staged.runs.find(run_id)).payload == {"customer": 2}


async def test_an_edit_of_the_arguments_keeps_the_instant_that_was_staged(
    staged: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    changed = await staged.schedules.put("hourly", "remind", "0 * * * *", {"customer": 2})
    assert changed.next_at == NEW_YEAR + HOUR
    await clock.advance(SOON)
    await firing.fire()
    (run_id,) = await run_ids(staged)
    assert (await staged.runs.find(run_id)).payload == {"customer": 2}


async def test_a_deleted_schedule_leaves_nothing_in_line(
    staged: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await staged.schedules.delete("hourly")
    assert await run_ids(staged) == []
    await clock.advance(HOUR)
    assert await firing.fire() == 0
    with pytest.raises(ScheduleNotFound):
        await staged.schedules.find("hourly")


async def test_what_has_been_claimed_has_fired(staged: Mainspring, clock: FrozenClock) -> None:
    await clock.advance(SOON)
    await staged.schedules.pause("hourly")
    (run_id,) = await run_ids(staged)
    assert (await staged.runs.find(run_id)).state is State.READY
    assert await outcomes(staged, "hourly") == [(NEW_YEAR + HOUR, NEW_YEAR + HOUR, "fired")]


async def test_the_last_instant_can_be_taken_back(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> None:
    await remind(frozen_app).scheduled("once", "2031-01-01T01:00:00Z").create(1)
    await clock.advance(HOUR - SOON)
    await firing.fire(horizon=2.0)
    assert (await frozen_app.schedules.find("once")).state == "done"
    await frozen_app.schedules.pause("once")
    assert await run_ids(frozen_app) == []
    await frozen_app.schedules.resume("once")
    await clock.advance(SOON)
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 1


async def test_a_spread_that_is_still_to_come_survives_an_edit(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    spread = timedelta(minutes=50)
    made = await remind(frozen_app).scheduled("spread", "0 * * * *", spread=spread).create(1)
    assert made.next_due_at is not None
    assert made.next_due_at > NEW_YEAR + HOUR + SOON
    await clock.set(made.next_due_at - SOON)
    await firing.fire(horizon=2.0)
    await frozen_app.schedules.put("spread", "remind", "0 * * * *", {"customer": 2}, spread=spread)
    assert (await frozen_app.schedules.find("spread")).next_at == NEW_YEAR + HOUR
    await clock.advance(SOON)
    await firing.fire()
    assert await outcomes(frozen_app, "spread") == [(NEW_YEAR + HOUR, NEW_YEAR + HOUR, "fired")]


async def test_a_run_that_is_staged_for_a_day_without_a_partition_is_taken_back(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    """No keeper has been there for days; the ledger keeps such an instant elsewhere."""
    await remind(frozen_app).scheduled("midnight", "0 0 * * *").create(1)
    await clock.advance(24 * HOUR - SOON)
    await connection.execute("drop table occurrence_20310102")
    await firing.fire(horizon=2.0)
    assert await connection.fetchval("select count(*) from occurrence_past") == 1
    await frozen_app.schedules.pause("midnight")
    assert await run_ids(frozen_app) == []
    await frozen_app.schedules.resume("midnight")
    await clock.advance(SOON)
    await firing.fire()
    assert await verdict(connection, {"midnight": [NEW_YEAR + 24 * HOUR]}) == NOTHING_WRONG
    assert len(await run_ids(frozen_app)) == 1


@pytest.mark.parametrize("act", ["put", "delete"])
async def test_a_schedule_that_cannot_be_decided_can_be_mended_or_deleted(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, act: str
) -> None:
    await remind(frozen_app).scheduled("broken", "0 * * * *").create(1)
    await connection.execute("""update schedule set spec = '{"when": "of another age"}'""")
    await clock.advance(HOUR)
    await firing.fire()
    (found,) = await frozen_app.schedules.list()
    assert (found.when, found.state) == ('{"when": "of another age"}', "paused")
    with pytest.raises(InvalidSchedule):
        await frozen_app.schedules.resume("broken")
    match act:
        case "put":
            await frozen_app.schedules.put("broken", "remind", "0 * * * *", {"customer": 1})
            await frozen_app.schedules.resume("broken")
            await clock.advance(HOUR)
            await firing.fire()
            assert await fired(connection) == {"broken": [NEW_YEAR + 2 * HOUR]}
        case _:
            await frozen_app.schedules.delete("broken")
            assert await frozen_app.schedules.list() == []
    assert (await verdict(connection, {"broken": [NEW_YEAR + HOUR]})).missing == []


# ── what is overdue is decided first ────────────────────────────────────────────────────────────────────────────


async def change_after_two_hours(app: Mainspring, clock: FrozenClock, act: str) -> list[datetime]:
    """Nobody was there to fire, and then somebody changes the schedule; answers with what was overdue."""
    await remind(app).scheduled("hourly", "0 * * * *", catch_up="all").create(1)
    await clock.advance(2 * HOUR + MINUTE)
    match act:
        case "put":
            await app.schedules.put("hourly", "remind", "every day at 09:00", {"customer": 2})
        case "update":
            await app.schedules.update("hourly", when="every day at 09:00", arguments={"customer": 2})
        case _:
            await getattr(app.schedules, act)("hourly")
    return instants("0 * * * *", after=NEW_YEAR, until=clock.at)


@pytest.mark.parametrize("act", ["pause", "put", "update", "delete"])
async def test_nothing_that_was_overdue_vanishes(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, act: str
) -> None:
    """After two hours without a scheduler, somebody changes the schedule: what was due fires by its old rules."""
    overdue = await change_after_two_hours(frozen_app, clock, act)
    assert await fired(connection) == {"hourly": overdue}
    assert await verdict(connection, {"hourly": overdue}) == NOTHING_WRONG
    payloads = [(await frozen_app.runs.find(run_id)).payload for run_id in await run_ids(frozen_app)]
    assert payloads == [{"customer": 1}] * 2


@pytest.mark.parametrize("act", ["put", "update", "delete"])
async def test_a_change_that_does_not_decide_first_would_let_vanish_what_was_overdue(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """The control."""

    async def only_take_back(self: LockedSchedule, *_: object) -> None:
        await self.take_back()

    monkeypatch.setattr(LockedSchedule, "settle", only_take_back)
    overdue = await change_after_two_hours(frozen_app, clock, act)
    assert Instant("hourly", overdue[-1]) in (await verdict(connection, {"hourly": overdue})).missing


@pytest.mark.parametrize("act", ["resume", "pause", "put", "delete"])
async def test_a_pause_is_over_when_it_was_said_to_be_whoever_comes_first(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, act: str
) -> None:
    """Without a scheduler that would have ended it, somebody changes the schedule: what was due since then fires."""
    await remind(frozen_app).scheduled("hourly", "0 * * * *", catch_up="all").create(1)
    await frozen_app.schedules.pause("hourly", until=NEW_YEAR + 2 * HOUR)
    await clock.advance(3 * HOUR + MINUTE)
    match act:
        case "put":
            await frozen_app.schedules.put("hourly", "remind", "0 * * * *", {"customer": 2})
        case _:
            await getattr(frozen_app.schedules, act)("hourly")
    assert await fired(connection) == {"hourly": [NEW_YEAR + 2 * HOUR, NEW_YEAR + 3 * HOUR]}
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    assert await verdict(connection, {"hourly": expected}) == NOTHING_WRONG
    if act != "delete":
        found = await frozen_app.schedules.find("hourly")
        assert (found.state, found.paused_until) == ("paused" if act == "pause" else "active", None)


@pytest.mark.parametrize("act", ["put", "delete"])
async def test_what_a_pause_kept_from_firing_says_so_when_the_schedule_is_changed(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, act: str
) -> None:
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await frozen_app.schedules.pause("hourly")
    await clock.advance(3 * HOUR)
    if act == "put":
        await frozen_app.schedules.put("hourly", "remind", "30 * * * *", {"customer": 1})
    else:
        await frozen_app.schedules.delete("hourly")
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    assert await verdict(connection, {"hourly": expected}) == NOTHING_WRONG


@pytest.mark.parametrize("act", ["resume", "put"])
async def test_a_pause_that_is_undone_before_a_spread_is_over_loses_nothing(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, act: str
) -> None:
    """Paused and resumed between an instant and the time at which it is due."""
    spread = timedelta(minutes=50)
    made = await remind(frozen_app).scheduled("spread", "0 * * * *", spread=spread).create(1)
    assert made.next_due_at is not None
    await clock.set(made.next_due_at - SOON)
    await frozen_app.schedules.pause("spread")
    if act == "put":
        await frozen_app.schedules.put("spread", "remind", "0 * * * *", {"customer": 2}, spread=spread)
    await frozen_app.schedules.resume("spread")
    await clock.advance(SOON)
    await firing.fire()
    assert await fired(connection) == {"spread": [NEW_YEAR + HOUR]}


# ── triggered ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_trigger_makes_a_run_besides_the_occurrences(frozen_app: Mainspring) -> None:
    await remind(frozen_app).options(tags=["vip"], priority=1).scheduled("hourly", "0 * * * *").create(7)
    run = await frozen_app.runs.find(await frozen_app.schedules.trigger("hourly"))
    assert (run.state, run.payload, run.priority, run.tags) == (State.READY, {"customer": 7}, 1, ["vip"])
    assert run.headers == {"schedule": "hourly"}
    assert await frozen_app.schedules.history("hourly") == []


# ── racing ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_fires_while_somebody_changes_a_schedule(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    """A scheduler passes over a schedule that is locked, and serves the others."""
    job = remind(frozen_app)
    for name in ("held", "free"):
        await job.scheduled(name, "0 * * * *").create(1)
    await clock.advance(HOUR)
    store = (await frozen_app.services()).store
    other = await store.database.connect("test")
    async with transaction(other):
        await other.execute(
            "select from cursor join schedule on schedule.id = schedule_id where name = 'held' for update"
        )
        for lane in {lane_of_key(1, name, LANES) for name in ("held", "free")}:
            await firing.fire_lane(lane)
        assert [each.name for each in await frozen_app.schedules.list() if each.next_at == NEW_YEAR + HOUR] == ["held"]
    await other.close()
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 2


async def test_schedules_fire_that_come_after_a_batch_that_somebody_holds(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_firing, "BATCH", 2)
    monkeypatch.setattr(scheduler_firing, "FRONT_SECONDS", 3_600.0)
    names = [name for name in map("remind-{}".format, range(100)) if lane_of_key(1, name, LANES) == 0][:7]
    job, firing = remind(frozen_app), Firing(connection, clock)
    for minute, name in enumerate(names):
        await job.scheduled(name, f"{minute} 1 * * *").create(1)
    await clock.advance(HOUR + 10 * MINUTE)
    store = (await frozen_app.services()).store
    other = await store.database.connect("test")
    async with transaction(other):
        held = [*names[:3], names[4]]  # a batch, and half of two others
        await other.execute(
            "select from cursor join schedule on schedule.id = schedule_id where name = any ($1) for update", held
        )
        for _ in range(5):
            await firing.fire_lane(0)
        waiting = await frozen_app.schedules.list(due_before=NEW_YEAR + DAY)
        assert [each.name for each in waiting] == held
    await other.close()
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 7


async def test_the_first_in_line_are_tried_again_however_many_follow_them(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody held them for a moment, and the others of the lane make one full batch after the other."""
    monkeypatch.setattr(scheduler_firing, "BATCH", 2)
    names = [name for name in map("remind-{}".format, range(100)) if lane_of_key(1, name, LANES) == 0][:4]
    job, firing = remind(frozen_app), Firing(connection, clock)
    for name in names:
        await job.scheduled(name, "* * * * *", catch_up="all").create(1)
    await clock.advance(HOUR)
    store = (await frozen_app.services()).store
    other = await store.database.connect("test")
    async with transaction(other):
        await other.execute(
            "select from cursor join schedule on schedule.id = schedule_id where name = any ($1) for update", names[:2]
        )
        await firing.fire_lane(0)
    await other.close()

    await clock.advance(scheduler_firing.FRONT_SECONDS)
    await firing.fire_lane(0)

    rows = await connection.fetch(f"select distinct {SCHEDULE_OF} as name from ready")  # noqa: S608
    assert set(names[:2]) <= {row["name"] for row in rows}


async def test_the_end_of_a_pause_waits_for_nobody(
    staged: Mainspring, clock: FrozenClock, database: Database, firing: Firing
) -> None:
    """Somebody has locked the schedule: the scheduler passes it over, and ends the pause when it looks again."""
    await staged.schedules.pause("hourly", until=NEW_YEAR + 2 * HOUR)
    await clock.set(NEW_YEAR + 2 * HOUR)
    other = await database.connect("test")
    async with transaction(other):
        await other.execute("select from schedule where name = 'hourly' for update")
        await firing.fire_lane(lane_of_key(1, "hourly", LANES))
        assert (await staged.schedules.find("hourly")).state == "paused"
    await other.close()
    await firing.fire()
    assert (await staged.schedules.find("hourly")).state == "active"


async def test_a_pause_waits_for_a_firing_under_way_and_sees_it(
    frozen_app: Mainspring, clock: FrozenClock, database: Database, firing: Firing
) -> None:
    """A firing that has not committed holds the cursor: the pause comes after it, and its run is taken back."""
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR - SOON)
    connection = await database.connect("slow scheduler")
    slow = Firing(connection, clock)
    async with transaction(connection):
        await slow.fire(horizon=2.0)
        pausing = asyncio.create_task(frozen_app.schedules.pause("hourly"))
        await until(lambda: _is_waiting(database))
        assert not pausing.done()
    await pausing
    await connection.close()
    assert await run_ids(frozen_app) == []
    assert await frozen_app.schedules.history("hourly") == []


async def _is_waiting(database: Database) -> bool:
    async with database.acquire() as connection:
        return bool(
            await connection.fetchval(
                "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'withdraw')"
            )
        )
