"""Schedules are listed by name or by when they are due, and a page reads a bounded number of rows."""

from __future__ import annotations

import base64
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.control import schedule_lists
from mainspring.errors import InvalidInput
from mainspring.model.scheduling import ScheduleState

from .scheduling import HOUR, NEW_YEAR, remind

if TYPE_CHECKING:
    from mainspring import Mainspring

EVERY = 10  # so many have the tag "few"


@pytest.fixture
async def many(frozen_app: Mainspring) -> list[str]:
    """A hundred schedules, due one after the other within hours, the last by name first; every tenth is special."""
    job = remind(frozen_app)
    names = [f"remind-{number:03}" for number in range(100)]
    await frozen_app.schedules.create_many(
        job.options(tags=["few"] if at % EVERY == 0 else ["most"])
        .scheduled(name, f"{59 - at % 60} {23 - at // 60} * * *")
        .request(at)
        for at, name in enumerate(names)
    )
    return names


async def pages(app: Mainspring, **wanted: Any) -> list[list[str]]:
    """The names on all pages, one list each."""
    found, cursor = [], None
    while True:
        page = await app.schedules.page(cursor=cursor, **wanted)
        found.append([each.name for each in page.schedules])
        cursor = page.cursor
        if cursor is None:
            return found


def joined(found: list[list[str]]) -> list[str]:
    return list(chain.from_iterable(found))


async def test_pages_by_name_show_each_schedule_once(frozen_app: Mainspring, many: list[str]) -> None:
    found = await pages(frozen_app, limit=30)
    assert [len(page) for page in found] == [30, 30, 30, 10]
    assert joined(found) == many


@pytest.mark.parametrize("job", [None, "remind"])
async def test_a_page_reads_few_rows_and_says_where_the_next_begins(
    frozen_app: Mainspring, many: list[str], monkeypatch: pytest.MonkeyPatch, job: str | None
) -> None:
    monkeypatch.setattr(schedule_lists, "SCAN", 2)
    found = await pages(frozen_app, tags=["few"], job=job, limit=100)
    assert len(found) > 5, "each page reads two rows of each lane at most"
    assert joined(found) == many[::EVERY]
    assert [each.name for each in await frozen_app.schedules.list(tags=["few"], job=job)] == many[::EVERY]
    assert [each.name for each in await frozen_app.schedules.list(tags=["few"], job=job, limit=3)] == many[:30:EVERY]


async def test_states_are_chosen_page_by_page(
    frozen_app: Mainspring, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_lists, "SCAN", 2)
    for name in (many[3], many[97]):
        await frozen_app.schedules.pause(name)
    assert joined(await pages(frozen_app, states=["paused"])) == [many[3], many[97]]
    assert [each.name for each in await frozen_app.schedules.list(states=[ScheduleState.PAUSED])] == [many[3], many[97]]


async def test_those_that_are_due_soon_come_first(frozen_app: Mainspring, many: list[str]) -> None:
    """The first by name is due last, at 23:59."""
    found = await frozen_app.schedules.list(due_before=NEW_YEAR + 23 * HOUR)
    assert [each.name for each in found] == many[:59:-1]
    assert [each.next_due_at for each in found] == sorted(each.next_due_at for each in found if each.next_due_at)
    everything = await pages(frozen_app, due_before=NEW_YEAR + 24 * HOUR, limit=7)
    assert joined(everything) == many[::-1]


async def test_what_is_paused_is_not_due(frozen_app: Mainspring, many: list[str]) -> None:
    await frozen_app.schedules.pause(many[99])
    await frozen_app.schedules.pause(many[98], until=NEW_YEAR + HOUR)
    found = await frozen_app.schedules.list(due_before=NEW_YEAR + 24 * HOUR, limit=2)
    assert [each.name for each in found] == [many[97], many[96]]


async def test_of_those_that_are_due_some_may_be_chosen(
    frozen_app: Mainspring, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_lists, "SCAN_DUE", 4)
    chosen: dict[str, Any] = {"due_before": NEW_YEAR + 24 * HOUR, "tags": ["few"], "prefix": "remind-0", "limit": 4}
    assert joined(await pages(frozen_app, **chosen, job="remind")) == many[90::-EVERY]
    assert [each.name for each in await frozen_app.schedules.list(**chosen)] == many[90:50:-EVERY]
    assert await frozen_app.schedules.list(**chosen, states=[ScheduleState.DONE]) == []


async def test_many_that_are_due_at_one_instant_are_each_on_one_page(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    names = {f"herd-{number}" for number in range(40)}
    await frozen_app.schedules.create_many(job.scheduled(name, "0 * * * *").request(1) for name in names)
    found = await pages(frozen_app, due_before=NEW_YEAR + 2 * HOUR, limit=7)
    assert [len(page) for page in found] == [7, 7, 7, 7, 7, 5]
    assert set(joined(found)) == names


async def test_what_cannot_be_asked_is_refused(frozen_app: Mainspring, many: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        await frozen_app.schedules.list(after="a", due_before=NEW_YEAR)
    assert caught.value.code == "after-of-due"
    by_name = (await frozen_app.schedules.page(limit=1)).cursor
    naive = base64.urlsafe_b64encode(b'["2031-01-01T00:00:00", "00000000-0000-4000-8000-000000000000"]').decode()
    for cursor, due_before in (("?", None), ("é", None), (by_name, NEW_YEAR), (naive, NEW_YEAR), (naive, None)):
        with pytest.raises(InvalidInput) as caught:
            await frozen_app.schedules.page(cursor=cursor, due_before=due_before)
        assert caught.value.code == "invalid-cursor"
