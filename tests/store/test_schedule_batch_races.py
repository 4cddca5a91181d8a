"""Many schedules that are made at once meet somebody else, or are cut off: all of them are made, or none.

The other begins at each statement boundary of the batch.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from tests.lifecycle.stepping import Died
from tests.occurrences import SCHEDULE_OF

from mainspring.control import schedule_transactions
from mainspring.control.schedule_requests import requested
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of_key

from .racing import HOURLY, INSTANT, LANE, NAME, TESTER, Party, Stage, change_arguments, delete, pause
from .scheduling import LANES, NEW_YEAR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .racing import Act

ELSEWHERE = next(
    name for number in count() if lane_of_key(DEFAULT_TENANT, name := f"elsewhere-{number}", LANES) != LANE
)
BATCH = sorted([NAME, ELSEWHERE])
IN_LANES = [LANE, lane_of_key(DEFAULT_TENANT, ELSEWHERE, LANES)]


def request(name: str, customer: int = 1) -> Any:
    return requested(name, "remind", HOURLY, f'{{"customer":{customer}}}'.encode(), now=NEW_YEAR)


async def create_many(party: Party) -> None:
    """In two lanes: by two statements."""
    await party.batches.create_many(TESTER, map(request, BATCH))


async def create_many_others(party: Party) -> None:
    """Of the same names, asked for in another order."""
    await party.batches.create_many(TESTER, [request(name, 2) for name in reversed(BATCH)])


async def create(party: Party) -> None:
    await party.schedules.create(TESTER, request(NAME, 2))


async def fire(party: Party) -> None:
    await party.fire(*IN_LANES)


async def fired_at_the_instant(stage: Stage) -> list[tuple[str, int]]:
    """Of which schedules there are runs when the instant has come, and for which customers."""
    await stage.clock.set(INSTANT)
    await stage.later.fire(*IN_LANES)
    rows = await stage.observer.fetch(f"select {SCHEDULE_OF} as name, payload from ready order by name")  # noqa: S608
    return [(row["name"], json.loads(row["payload"])["customer"]) for row in rows]


async def rows_made(stage: Stage) -> int:
    query = """select (select count(*) from schedule) + (select count(*) from cursor)
               + (select count(*) from audit where action like 'schedule.%')"""
    return int(await stage.observer.fetchval(query))


async def test_a_batch_that_is_cut_off_at_any_statement_has_made_nothing(stage: Stage) -> None:
    """Beside a scheduler, which sees nothing of it before all is there."""
    async for meeting in stage.meetings(create_many, fire, stage.clear, dies=True):
        is_cut_off = isinstance(meeting.first, Died)
        assert await rows_made(stage) == (0 if is_cut_off else 5), meeting.title
        assert await fired_at_the_instant(stage) == ([] if is_cut_off else ALL_OF_ONE), meeting.title


ALL_OF_ONE = [(name, 1) for name in BATCH]
ALL_OF_TWO = [(name, 2) for name in BATCH]
OTHER = (ELSEWHERE, 1)


@pytest.mark.parametrize(
    ("act", "code", "if_refused", "else_fired"),
    [
        (fire, "", [], ALL_OF_ONE),
        (create, "schedule-exists", [ALL_OF_ONE, [(NAME, 2)]], None),
        (create_many_others, "schedule-exists", [ALL_OF_ONE, ALL_OF_TWO], None),
        (change_arguments, "schedule-not-found", [ALL_OF_ONE], sorted([(NAME, 2), OTHER])),
        (pause, "schedule-not-found", [ALL_OF_ONE], [OTHER]),
        (delete, "schedule-not-found", [ALL_OF_ONE], [OTHER]),
    ],
    ids=["fire", "create", "create many", "update", "pause", "delete"],
)
async def test_a_batch_that_meets_somebody_else_is_made_as_a_whole_or_not_at_all(
    stage: Stage, act: Act, code: str, if_refused: list[Any], else_fired: list[Any] | None
) -> None:
    """Who comes second is refused, for what there is by then or is not yet; nothing fires of what was paused."""
    pairs = [(create_many, act), (act, create_many)] if code == "schedule-exists" else [(create_many, act)]
    for first, second in pairs:
        async for meeting in stage.meetings(first, second, stage.clear):
            found = await fired_at_the_instant(stage)
            assert meeting.refusals in ([], [code]), meeting.title
            assert (found in if_refused) if meeting.refusals else (found == else_fired), meeting.title


async def test_a_batch_without_a_transaction_would_be_made_in_part(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""

    @asynccontextmanager
    async def no_transaction(_: object) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(schedule_transactions, "transaction", no_transaction)
    meetings = stage.meetings(create_many, fire, stage.clear, dies=True)
    assert any([len(await fired_at_the_instant(stage)) == 1 async for _ in meetings])


# ── replacing many ──────────────────────────────────────────────────────────────────────────────────────────────


async def put_many(party: Party) -> None:
    """One of them is there and is something else; the other is new."""
    await party.batches.put_many(TESTER, map(request, BATCH))


async def put_many_others(party: Party) -> None:
    await party.batches.put_many(TESTER, [request(name, 2) for name in reversed(BATCH)])


@pytest.mark.parametrize(
    ("act", "fired"),
    [
        (fire, [ALL_OF_ONE]),
        (put_many_others, [ALL_OF_ONE, ALL_OF_TWO]),
        (pause, [[OTHER]]),
        (delete, [[OTHER], ALL_OF_ONE]),
    ],
    ids=["fire", "put many", "pause", "delete"],
)
async def test_a_batch_that_replaces_meets_somebody_else_as_a_whole(stage: Stage, act: Act, fired: list[Any]) -> None:
    """Nobody is refused, two batches are never mixed, and nothing fires of what was paused or deleted."""

    async def set_up() -> None:
        await stage.clear()
        await stage.later.schedules.create(TESTER, request(NAME, 3))

    for first, second in [(put_many, act), (act, put_many)]:
        async for meeting in stage.meetings(first, second, set_up):
            found = await fired_at_the_instant(stage)
            assert (meeting.refusals, found in fired) == ([], True), (meeting.title, found)
