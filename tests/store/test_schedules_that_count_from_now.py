"""Texts that count from now: by which clock they are read, and what happens when they are said again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.errors import InvalidSchedule

from .scheduling import HOUR, MINUTE, NEW_YEAR, remind

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.testing import FrozenClock

STEPS = "every 45 minutes"


async def test_they_count_from_when_they_are_said(frozen_app: Mainspring, clock: FrozenClock) -> None:
    await clock.set(NEW_YEAR + 10 * MINUTE)
    job = remind(frozen_app)

    made = await job.scheduled("a", STEPS).create(1)
    put = await job.scheduled("b", "every hour, 10 times").put(1)
    named = await frozen_app.schedules.create("c", "remind", "tomorrow at 9am", {"customer": 1})
    updated = await frozen_app.schedules.update("c", when="every other tuesday at noon")
    await frozen_app.schedules.create_many([job.scheduled("d", STEPS).request(1)])

    assert made.when == "PT45M/2031-01-01T00:10:00Z"
    assert put.when == "0 * * * * starts=2031-01-01T00:10:00Z runs=10"
    assert named.when == "2031-01-02T09:00:00Z"
    assert updated.when == "DTSTART:20310107T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"
    assert (await frozen_app.schedules.find("d")).when == made.when


async def test_their_load_is_foretold(frozen_app: Mainspring) -> None:
    load = await frozen_app.schedules.added_load("a", STEPS)

    assert load is not None
    assert load.added == 1


async def test_what_is_over_already_is_refused_with_what_to_say(frozen_app: Mainspring, clock: FrozenClock) -> None:
    await clock.set(NEW_YEAR + 10 * HOUR)

    with pytest.raises(InvalidSchedule, match="is over already"):
        await remind(frozen_app).scheduled("a", "today at 9am").create(1)
