"""A scheduler beside somebody who makes, changes or deletes a schedule in a transaction of their own.

It looks at each statement boundary of that transaction, is never held up, and sees nothing of what is not committed;
what is rolled back has never been.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.occurrences import NOTHING_WRONG, fired, verdict

from mainspring.control import schedule_transactions
from mainspring.store.callers import CallersConnection
from mainspring.store.connection import transaction

from .racing import HOURLY, INSTANT, NAME, Party, Stage, fire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .racing import Act


async def create(stage: Stage, connection: CallersConnection) -> None:
    await stage.job.options(connection=connection).scheduled(NAME, HOURLY).create(1)


async def put(stage: Stage, connection: CallersConnection) -> None:
    await stage.job.options(connection=connection).scheduled(NAME, HOURLY).put(2)


async def delete(stage: Stage, connection: CallersConnection) -> None:
    await stage.app.schedules.delete(NAME, connection=connection)


def in_own_transaction(stage: Stage, change: Any, *, is_committed: bool) -> Act:
    async def act(party: Party) -> None:
        frame = party.stepped.transaction()
        await frame.start()
        await change(stage, CallersConnection(party.stepped, "asyncpg"))
        if is_committed:
            await frame.commit()
        else:
            await party.stepped.gate.boundary("rollback")
            await frame.rollback()

    return act


# What is done, whether the instant is still to come, and whose runs it becomes: committed, and rolled back.
CASES: dict[str, tuple[Any, bool, list[int], list[int]]] = {
    "create": (create, True, [1], []),
    "put, staging": (put, True, [2], [1]),
    "put, firing": (put, False, [1], [1]),
    "delete, staging": (delete, True, [], [1]),
    "delete, firing": (delete, False, [1], [1]),
}


async def prepare(stage: Stage, name: str) -> None:
    change, is_staging, *_ = CASES[name]
    await (stage.clear() if change is create else stage.set_up(HOURLY, is_staging=is_staging))


@pytest.mark.invariant(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "rolled back"])
async def test_a_scheduler_beside_a_callers_transaction_sees_all_of_it_or_nothing(
    stage: Stage, name: str, *, is_committed: bool
) -> None:
    change, _, if_committed, if_rolled_back = CASES[name]
    act, seen = in_own_transaction(stage, change, is_committed=is_committed), []
    async for meeting in stage.meetings(act, fire, partial(prepare, stage, name), look=partial(fired, stage.observer)):
        seen.append(meeting.seen)
        assert not (change is create and meeting.seen), "a schedule that nobody has committed fires"
        wanted = if_committed if is_committed else if_rolled_back
        assert (meeting.refusals, await stage.customers()) == ([], wanted), meeting.title
        is_there = change is not create or is_committed
        assert await verdict(stage.observer, {NAME: [INSTANT] * is_there}) == NOTHING_WRONG, meeting.title
    assert None not in seen[:-1], "a scheduler waits for somebody else's transaction"


@pytest.mark.parametrize("name", ["create", "put, staging", "delete, staging"])
async def test_over_a_connection_of_our_own_what_is_rolled_back_would_happen(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The control."""
    database = (await stage.app.services()).store.database

    @asynccontextmanager
    async def session_of_our_own(*_: Any, **__: Any) -> AsyncIterator[Any]:
        async with database.acquire() as connection, transaction(connection):
            yield connection

    monkeypatch.setattr(schedule_transactions, "callers_session", session_of_our_own)
    change, _, if_committed, _ = CASES[name]
    act = in_own_transaction(stage, change, is_committed=False)
    found = [await stage.customers() async for _ in stage.meetings(act, fire, partial(prepare, stage, name))]
    assert if_committed in found
