"""A schedule of one instant fires once, and is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.model.scheduling import ScheduleState

from .scheduling import DAY, HOUR, NEW_YEAR, Firing, outcomes, remind, run_ids

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.mark.parametrize(
    ("when", "zone"),
    [("2031-01-02T09:00Z", "UTC"), ("2031-01-02T10:00", "Europe/Berlin"), ("at(2031-01-02T09:00:00)", "UTC")],
)
async def test_a_schedule_of_one_instant_is_done_after_it(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, when: str, zone: str
) -> None:
    at, firing = NEW_YEAR + DAY + 9 * HOUR, Firing(connection, clock)
    made = await remind(frozen_app).scheduled("once", when, zone=zone).create(1)
    assert (made.state, made.next_at) == (ScheduleState.ACTIVE, at)
    await clock.advance(at - NEW_YEAR)
    await firing.fire()
    done = await frozen_app.schedules.find("once")
    assert (done.state, done.next_at, done.version) == (ScheduleState.DONE, None, 1)
    await clock.advance(365 * DAY)
    assert await firing.fire() == 0
    assert await outcomes(frozen_app, "once") == [(at, at, "fired")]
    assert len(await run_ids(frozen_app)) == 1


async def test_one_that_is_done_is_given_another_instant(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    await remind(frozen_app).scheduled("once", "2031-01-01T01:00Z").create(1)
    await clock.advance(HOUR)
    await Firing(connection, clock).fire()
    again = await frozen_app.schedules.update("once", when="2031-01-01T03:00Z")
    assert (again.state, again.next_at, again.version) == (ScheduleState.ACTIVE, NEW_YEAR + 3 * HOUR, 2)
