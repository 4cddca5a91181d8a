"""Edits of stored calendars: schedules that use them follow, and nothing fires by what was before, or twice."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Calendar, Mainspring
from mainspring.scheduler import recomputing
from mainspring.scheduler.changing import bring_up_to_date
from mainspring.scheduler.recomputing import recompute
from mainspring.store import calendars

from .scheduling import (
    DAY,
    HOUR,
    LANES,
    MINUTE,
    NEW_YEAR,
    NONE_YET,
    Firing,
    holidays,
    made_daily,
    next_at,
    nights,
    outcomes,
    remind,
    run_ids,
)

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


async def test_an_edit_moves_the_next_instant_in_the_background(frozen_app: Mainspring, connection: Connection) -> None:
    await made_daily(frozen_app)
    assert await next_at(frozen_app) == NEW_YEAR + 9 * HOUR
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR
    await frozen_app.calendars.put(NONE_YET)
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == NEW_YEAR + 9 * HOUR


async def test_only_users_of_the_edited_calendar_are_touched(frozen_app: Mainspring, connection: Connection) -> None:
    await made_daily(frozen_app)
    await frozen_app.calendars.put(nights())
    await frozen_app.schedules.create("awake", "remind", "0 * * * * not=nights")
    before = await connection.fetch("select schedule_id, revision from cursor order by 1")
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))
    after = await connection.fetch("select schedule_id, revision from cursor order by 1")
    assert sorted(new["revision"] - old["revision"] for old, new in zip(before, after, strict=True)) == [0, 1]


async def test_a_scheduler_that_sees_it_first_fires_nothing_by_the_old_days(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    """Nothing has been computed again in the background when the instant comes."""
    await made_daily(frozen_app)
    await clock.advance(HOUR)
    await firing.fire()
    await frozen_app.calendars.put(holidays(0))
    await clock.advance(8 * HOUR)
    await firing.fire()
    assert await run_ids(frozen_app) == []
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR


async def test_what_is_staged_is_taken_back(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await made_daily(frozen_app)
    await clock.advance(9 * HOUR - timedelta(seconds=1))
    assert await firing.fire(horizon=2.0) == 1
    assert len(await run_ids(frozen_app)) == 1
    await frozen_app.calendars.put(holidays(0, 1))
    await recompute(connection, range(LANES))
    assert await run_ids(frozen_app) == []
    assert await next_at(frozen_app) == NEW_YEAR + 2 * DAY + 9 * HOUR


@pytest.mark.parametrize("bumps", [True, False], ids=["guarded", "without the revision"])
async def test_a_decision_by_the_old_days_is_passed_over(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection, *, bumps: bool
) -> None:
    """Decided before the edit, carried out after the cursor was computed again."""
    await made_daily(frozen_app, holidays(), "0 * * * * not=holidays")
    await clock.advance(HOUR - timedelta(seconds=1))
    await frozen_app.schedules.find("daily")
    decided = await firing.decided(2.0)
    revision = await connection.fetchval("select revision from cursor")
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))
    if not bumps:
        await connection.execute("update cursor set revision = $1, nominal_at = $2", revision, NEW_YEAR + HOUR)
    await firing.carry_out(decided)
    assert len(await run_ids(frozen_app)) == (0 if bumps else 1)


async def test_what_was_due_before_the_edit_is_decided_as_it_was(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    """Nobody was there to fire for two hours; then the day becomes a holiday."""
    await made_daily(frozen_app)
    await clock.advance(11 * HOUR)
    await frozen_app.calendars.put(holidays(0, 1))
    await clock.advance(HOUR)
    await recompute(connection, range(LANES))
    await firing.fire()
    assert await outcomes(frozen_app, "daily") == [(NEW_YEAR + 9 * HOUR, NEW_YEAR + 9 * HOUR, "fired")]
    assert await next_at(frozen_app) == NEW_YEAR + 2 * DAY + 9 * HOUR


async def test_the_new_days_rule_from_the_edit_on_however_late_that_is_noticed(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    """A holiday is called off while nobody is there; its instant passes; nothing of it is lost."""
    await frozen_app.calendars.put(holidays(0))
    await remind(frozen_app).scheduled("daily", "0 9 * * * not=holidays", catch_up="all").create(1)
    await frozen_app.calendars.put(NONE_YET)
    await clock.advance(10 * HOUR)
    await recompute(connection, range(LANES))
    await firing.fire()
    assert await outcomes(frozen_app, "daily") == [(NEW_YEAR + 9 * HOUR, NEW_YEAR + 9 * HOUR, "fired")]
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR


async def test_nothing_that_was_decided_fires_again(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    """The first look after the edit comes late, and an old decision has fired an instant meanwhile."""
    await made_daily(frozen_app, holidays(), "0 * * * * not=holidays")
    await clock.advance(HOUR)
    decided = await firing.decided()
    await clock.advance(-MINUTE)
    await frozen_app.calendars.put(holidays(5))
    await clock.advance(2 * MINUTE)
    await firing.carry_out(decided)
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == NEW_YEAR + 2 * HOUR
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 1


async def test_a_process_that_dies_in_between_leaves_the_rest_to_the_next(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await frozen_app.calendars.put(NONE_YET)
    job = remind(frozen_app)
    for number in range(20):
        await job.scheduled(f"daily-{number}", "0 9 * * * not=holidays").create(number)
    await frozen_app.calendars.put(holidays(0))
    left = 7

    async def dying(*args: Any, **kwargs: Any) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return await bring_up_to_date(*args, **kwargs)

    monkeypatch.setattr(recomputing, "bring_up_to_date", dying)
    with pytest.raises(KeyboardInterrupt):
        await recompute(connection, range(LANES))
    monkeypatch.undo()
    stale = "select count(*) from cursor where nominal_at = $1"
    assert await connection.fetchval(stale, NEW_YEAR + 9 * HOUR) == 13
    await recompute(connection, range(LANES))
    assert await connection.fetchval(stale, NEW_YEAR + 9 * HOUR) == 0


async def test_what_is_up_to_date_costs_one_look(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made_daily(frozen_app)
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))

    async def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing was edited")

    monkeypatch.setattr(calendars, "edited", never)
    await recompute(connection, range(LANES))


async def test_one_schedule_that_cannot_be_computed_keeps_nobody_waiting(
    frozen_app: Mainspring, connection: Connection
) -> None:
    await frozen_app.calendars.put(NONE_YET)
    job = remind(frozen_app)
    for name in ("broken", "sound"):
        await job.scheduled(name, "0 9 * * * not=holidays").create(1)
    await connection.execute("""update schedule set spec = '{"when": "of another age"}' where name = 'broken'""")
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app, "sound") == NEW_YEAR + DAY + 9 * HOUR


async def test_a_paused_schedule_goes_on_by_the_new_days(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await made_daily(frozen_app, holidays(1))
    await clock.advance(10 * HOUR)
    await firing.fire()
    assert await next_at(frozen_app) == NEW_YEAR + 2 * DAY + 9 * HOUR
    await frozen_app.schedules.pause("daily", until=NEW_YEAR + 12 * HOUR)
    await frozen_app.calendars.put(NONE_YET)
    await clock.advance(3 * HOUR)
    await firing.fire()
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR


async def test_a_schedule_that_an_edit_ends_begins_again_with_another(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await made_daily(frozen_app)
    await frozen_app.calendars.put(Calendar(name="holidays", ranges=((NEW_YEAR.date(), date(9000, 1, 1)),)))
    await recompute(connection, range(LANES))
    assert (await frozen_app.schedules.find("daily")).state == "done"
    await frozen_app.calendars.put(holidays(0))
    await recompute(connection, range(LANES))
    found = await frozen_app.schedules.find("daily")
    assert (found.state, found.next_at) == ("active", NEW_YEAR + DAY + 9 * HOUR)


async def test_a_change_of_a_schedule_whose_calendar_was_edited_begins_with_that(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    """Nobody has computed it again yet; what is overdue by the new days fires before it is paused."""
    await frozen_app.calendars.put(holidays(0))
    await remind(frozen_app).scheduled("daily", "0 9 * * * not=holidays").create(1)
    await frozen_app.calendars.put(NONE_YET)
    await clock.advance(10 * HOUR)
    await frozen_app.schedules.pause("daily")
    assert await outcomes(frozen_app, "daily") == [(NEW_YEAR + 9 * HOUR, NEW_YEAR + 9 * HOUR, "fired")]
