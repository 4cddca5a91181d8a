"""Texts that count from now: by which clock they are read, and what happens when they are said again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.errors import InvalidSchedule

from .scheduling import HOUR, MINUTE, NEW_YEAR, Firing, holidays, remind

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
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


# ── said again ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", [STEPS, "every other tuesday at noon", "every hour, 10 times", "in 2 hours"])
async def test_said_again_they_go_on_counting_from_the_first_time(
    frozen_app: Mainspring, clock: FrozenClock, text: str
) -> None:
    job = remind(frozen_app)
    first = await job.scheduled("a", text).put(1)

    await clock.set(NEW_YEAR + 30 * MINUTE)
    again = await job.scheduled("a", text).put(1)
    updated = await frozen_app.schedules.update("a", when=text)
    report = await frozen_app.schedules.put_many([job.scheduled("a", text).request(1)])

    assert again == updated == first
    assert report.unchanged == 1


async def test_said_again_with_something_else_they_go_on_counting_from_the_first_time(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    job = remind(frozen_app)
    first = await job.scheduled("a", STEPS).put(1)
    await job.scheduled("b", STEPS).put(1)

    versions = []
    for minutes in (30, 60, 90):
        await clock.set(NEW_YEAR + minutes * MINUTE)
        versions.append(await job.scheduled("a", STEPS).put(minutes))
        await frozen_app.schedules.put_many([job.scheduled("b", STEPS).request(minutes)])

    assert [each.version for each in versions] == [2, 3, 4]
    assert {each.when for each in versions} == {first.when, (await frozen_app.schedules.find("b")).when}


async def test_another_text_counts_from_when_it_is_said(frozen_app: Mainspring, clock: FrozenClock) -> None:
    job = remind(frozen_app)
    await job.scheduled("a", STEPS).put(1)

    await clock.set(NEW_YEAR + 30 * MINUTE)
    changed = await job.scheduled("a", "every 50 minutes").put(1)

    assert (changed.version, changed.when) == (2, "PT50M/2031-01-01T00:30:00Z")


async def test_a_text_without_an_anchor_is_another_than_one_with_it(frozen_app: Mainspring, clock: FrozenClock) -> None:
    """Who wrote the anchor meant it; who leaves it out means now."""
    job = remind(frozen_app)
    await job.scheduled("a", "PT45M/2031-01-01T00:10:00Z").put(1)

    await clock.set(NEW_YEAR + 30 * MINUTE)
    changed = await job.scheduled("a", STEPS).put(1)

    assert (changed.version, changed.when) == (2, "PT45M/2031-01-01T00:30:00Z")


async def test_one_that_is_over_begins_anew(frozen_app: Mainspring, clock: FrozenClock, connection: Connection) -> None:
    job = remind(frozen_app)
    await job.scheduled("a", "in 2 hours").put(1)
    await clock.set(NEW_YEAR + 3 * HOUR)
    await Firing(connection, clock).fire()

    again = await job.scheduled("a", "in 2 hours").put(1)

    assert (again.version, again.next_at) == (2, NEW_YEAR + 5 * HOUR)


async def test_calendars_that_an_update_leaves_are_no_difference(frozen_app: Mainspring, clock: FrozenClock) -> None:
    await frozen_app.calendars.put(holidays(2))
    first = await remind(frozen_app).scheduled("a", f"{STEPS} not=holidays").put(1)

    await clock.set(NEW_YEAR + 30 * MINUTE)

    assert await frozen_app.schedules.update("a", when=STEPS) == first
