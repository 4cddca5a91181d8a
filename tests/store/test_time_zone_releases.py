"""Another release of the time zone database: cursors follow, nothing is lost, and no wall comes twice."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler import recomputing
from mainspring.scheduler.recomputing import recompute
from mainspring.store import schedule_firing

from .scheduling import DAY, HOUR, LANES, MINUTE, NEW_YEAR, Firing, next_at, outcomes, remind, run_ids

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

OLD = "2000a"
EIGHT = NEW_YEAR + 8 * HOUR  # nine o'clock in Berlin
NOTHING = timedelta(0)


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


async def made(app: Mainspring, name: str = "daily", when: str = "0 9 * * *") -> None:
    await remind(app).scheduled(name, when, zone="Europe/Berlin").create(1)


async def computed_by_old_release(connection: Connection, shift: timedelta) -> None:
    """As if a release had computed everything by which clocks in Berlin are so far behind."""
    await connection.execute(
        "update cursor set nominal_at = nominal_at + $1, due_at = due_at + $1, tzdata = $2", shift, OLD
    )
    await connection.execute("update lane set tzdata = $1", OLD)


async def releases(connection: Connection) -> set[str]:
    return {row["tzdata"] for row in await schedule_firing.computed_by(connection, range(LANES))}


async def moves(connection: Connection) -> list[dict[str, Any]]:
    rows = await connection.fetch(
        "select detail from audit where action = 'schedule.recompute' and actor = 'scheduler'"
    )
    return [json.loads(row["detail"]) for row in rows]


@pytest.mark.parametrize("shift", [HOUR, -HOUR], ids=["later", "earlier"])
async def test_a_cursor_follows_and_that_is_reported(
    frozen_app: Mainspring, connection: Connection, shift: timedelta
) -> None:
    await made(frozen_app)
    await computed_by_old_release(connection, shift)
    with structlog.testing.capture_logs() as logs:
        await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == EIGHT
    assert await releases(connection) == {TZDATA_VERSION}
    (move,) = await moves(connection)
    assert (move["name"], move["tzdata"]) == ("daily", TZDATA_VERSION)
    assert (move["from"], move["to"]) == ((EIGHT + shift).isoformat().replace("+00:00", "Z"), "2031-01-01T08:00:00Z")
    (told,) = logs
    assert (told["was"], told["now"], told["schedules"], told["moved"]) == (OLD, TZDATA_VERSION, 1, 1)


async def test_what_stands_where_it_stood_is_not_written(frozen_app: Mainspring, connection: Connection) -> None:
    await made(frozen_app)
    await computed_by_old_release(connection, NOTHING)
    before = await connection.fetchrow("select xmin, * from cursor")
    await recompute(connection, range(LANES))
    assert await connection.fetchrow("select xmin, * from cursor") == before
    assert await moves(connection) == []
    assert await releases(connection) == {TZDATA_VERSION}


async def test_the_same_release_costs_one_look(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(frozen_app)
    await recompute(connection, range(LANES))

    async def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is the same release")

    monkeypatch.setattr(schedule_firing, "of_older_tzdata", never)
    await recompute(connection, range(LANES))


async def test_an_older_program_undoes_nothing(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(frozen_app)
    await computed_by_old_release(connection, HOUR)
    await connection.execute("update lane set tzdata = '9999z'")
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == EIGHT + HOUR
    await schedule_firing.note_tzdata(connection, 0, TZDATA_VERSION)
    assert await releases(connection) == {"9999z"}


async def test_a_wall_that_was_decided_does_not_come_again(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    """By the old release nine o'clock was at seven; by the new one it comes again an hour later."""
    await made(frozen_app)
    await computed_by_old_release(connection, -HOUR)
    await clock.advance(7 * HOUR)
    decided = await firing.decided()
    await firing.carry_out(decided)
    tomorrow = EIGHT + DAY - HOUR
    await connection.execute("update cursor set nominal_at = $1, due_at = $1, tzdata = $2", tomorrow, OLD)
    await clock.advance(30 * MINUTE)
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == EIGHT + DAY
    await clock.advance(HOUR)
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 1


async def test_a_wall_that_is_past_by_the_new_release_fires_at_once(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await made(frozen_app)
    await computed_by_old_release(connection, HOUR)
    await clock.advance(8 * HOUR + 30 * MINUTE)
    await recompute(connection, range(LANES))
    await firing.fire()
    assert await outcomes(frozen_app, "daily") == [(EIGHT, EIGHT, "fired")]
    assert await next_at(frozen_app) == EIGHT + DAY


async def test_nothing_comes_that_is_older_than_the_schedule(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    await clock.advance(8 * HOUR + 30 * MINUTE)
    await made(frozen_app)
    await computed_by_old_release(connection, HOUR - DAY)  # half an hour from now
    await recompute(connection, range(LANES))
    assert await next_at(frozen_app) == EIGHT + DAY


@pytest.mark.parametrize("late", [NOTHING, 2 * HOUR], ids=["on time", "overdue"])
async def test_a_scheduler_that_sees_it_first_fires_at_the_new_instant(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection, late: timedelta
) -> None:
    """Nothing has been computed again in the background: the old instant comes, and is none."""
    await made(frozen_app)
    await computed_by_old_release(connection, -HOUR)
    await clock.advance(7 * HOUR + late)
    await firing.fire()
    await clock.advance(HOUR)
    await firing.fire()
    assert await outcomes(frozen_app, "daily") == [(EIGHT, EIGHT, "fired")]


async def test_a_change_of_a_schedule_begins_with_that(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    await made(frozen_app)
    await computed_by_old_release(connection, -HOUR)
    await clock.advance(7 * HOUR + 30 * MINUTE)
    await frozen_app.schedules.pause("daily", until=NEW_YEAR + DAY)
    assert await outcomes(frozen_app, "daily") == []
    assert len(await moves(connection)) == 1


async def test_a_process_that_dies_in_between_leaves_the_rest_to_the_next(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = remind(frozen_app)
    for number in range(20):
        await job.scheduled(f"daily-{number}", "0 9 * * *", zone="Europe/Berlin").create(number)
    await computed_by_old_release(connection, HOUR)
    left = 7
    follow = recomputing._follow

    async def dying(*args: Any) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return await follow(*args)

    monkeypatch.setattr(recomputing, "_follow", dying)
    monkeypatch.setattr(recomputing, "BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        await recompute(connection, range(LANES))
    monkeypatch.undo()
    assert len(await moves(connection)) == 7
    await recompute(connection, range(LANES))
    assert len(await moves(connection)) == 20
    assert await connection.fetchval("select count(*) from cursor where nominal_at = $1", EIGHT) == 20
