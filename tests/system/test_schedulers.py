"""Schedulers as processes: one that is killed is replaced by the others, and nothing fires twice or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.occurrences import SCHEDULE_OF
from tests.waiting import PATIENCE, until

from mainspring import Calendar, Context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mainspring import Mainspring
    from mainspring.store.connection import Connection

SECOND = timedelta(seconds=1)
NAMES = [f"every-second-{number}" for number in range(20)]


# Of two such schedulers each keeps every other lane, whoever else lives.
KEEPING_ITS_LANES = """
from mainspring.cli.__main__ import main
from mainspring.scheduler import scheduler
scheduler.lanes_of = lambda own_id, live, lanes: [lane for lane in range(lanes) if lane % 2 == {}]
main()
"""


@contextmanager
def scheduler(url: str, *program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process `mainspring scheduler`, ended in any case."""
    environment = {**os.environ, "MAINSPRING_DATABASE_URL": url}
    python = [sys.executable, *(program or ("-m", "mainspring.cli"))]
    process = subprocess.Popen([*python, "scheduler"], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def schedule_all(app: Mainspring) -> None:
    @app.job
    async def note(number: int) -> None: ...

    for number, name in enumerate(NAMES):
        await note.scheduled(name, "* * * * * *", catch_up="all").create(number)


async def fired(connection: Connection) -> dict[str, list[datetime]]:
    """The instants of each schedule that became runs, in order."""
    rows = await connection.fetch(
        "select schedule.name, array_agg(occurrence.nominal_at order by occurrence.nominal_at) as instants"
        " from schedule join occurrence on occurrence.schedule_id = schedule.id group by schedule.name"
    )
    return {row["name"]: row["instants"] for row in rows}


async def until_each_fired(connection: Connection, times: int) -> dict[str, list[datetime]]:
    async def have_fired() -> dict[str, list[datetime]] | None:
        found = await fired(connection)
        return found if len(found) == len(NAMES) and all(len(each) >= times for each in found.values()) else None

    found: dict[str, list[datetime]] = await until(have_fired, 0.1)
    return found


async def live(connection: Connection) -> int:
    return int(await connection.fetchval("select count(*) from scheduler_heartbeat where beat > 0"))


@pytest.mark.invariant(2)
@pytest.mark.invariant(8)
async def test_a_killed_scheduler_is_replaced_and_nothing_is_missing_or_extra(
    app: Mainspring, url: str, connection: Connection
) -> None:
    await schedule_all(app)
    with scheduler(url) as first, scheduler(url) as second:
        await until(lambda: live(connection))
        before = await until_each_fired(connection, 2)
        first.kill()
        most = max(len(instants) for instants in before.values())
        await until_each_fired(connection, most + 5)
        second.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(second.wait, PATIENCE) == 0

    ledger = await fired(connection)
    for instants in ledger.values():
        assert instants == [instants[0] + count * SECOND for count in range(len(instants))], "none is missing"
    occurrences = {(name, at) for name, instants in ledger.items() for at in instants}
    rows = await connection.fetch(f"select {SCHEDULE_OF} as name, due_at from ready")  # noqa: S608
    assert len(rows) == len(occurrences), "none is extra"
    assert {(row["name"], row["due_at"]) for row in rows} == occurrences


async def test_without_a_new_share_of_the_lanes_those_of_a_killed_scheduler_would_be_silent(
    app: Mainspring, url: str, connection: Connection
) -> None:
    """The control of the test above."""
    await schedule_all(app)
    rows = await connection.fetch("select name from schedule where lane % 2 = 0")
    orphans = {row["name"] for row in rows}
    assert 0 < len(orphans) < len(NAMES)
    with (
        scheduler(url, "-c", KEEPING_ITS_LANES.format(0)) as first,
        scheduler(url, "-c", KEEPING_ITS_LANES.format(1)),
    ):
        await until_each_fired(connection, 2)
        first.kill()
        await asyncio.to_thread(first.wait, PATIENCE)
        before = await fired(connection)

        async def others_went_on() -> dict[str, list[datetime]] | None:
            found = await fired(connection)
            return found if all(len(found[name]) >= len(before[name]) + 5 for name in {*NAMES} - orphans) else None

        after = await until(others_went_on, 0.1)
    # What was on its way when the scheduler was killed may have arrived.
    assert all(len(after[name]) <= len(before[name]) + 2 for name in orphans)


async def test_a_scheduler_that_was_frozen_fires_nothing_again(
    app: Mainspring, url: str, connection: Connection
) -> None:
    await schedule_all(app)
    with scheduler(url) as frozen:
        before = await until_each_fired(connection, 1)
        frozen.send_signal(signal.SIGSTOP)
        with scheduler(url):
            most = max(len(instants) for instants in before.values())
            await until_each_fired(connection, most + 5)  # the other has taken its lanes over
            frozen.send_signal(signal.SIGCONT)
            await until_each_fired(connection, most + 8)
    ledger = await fired(connection)
    rows = await connection.fetch(f"select {SCHEDULE_OF} as name, due_at from ready")  # noqa: S608
    assert sorted((row["name"], row["due_at"]) for row in rows) == sorted(
        (name, at) for name, instants in ledger.items() for at in instants
    )


async def test_an_application_fires_its_own_schedules(app: Mainspring) -> None:
    seen = asyncio.Queue[object]()

    @app.job(schedule="* * * * * *")
    async def tick(context: Context) -> None:
        seen.put_nowait(context.occurrence)

    async with app.running():
        first, second = [await asyncio.wait_for(seen.get(), PATIENCE) for _ in range(2)]
    assert first is not None
    assert first != second
    assert (await app.schedules.find("tick")).is_declared


async def test_a_running_scheduler_follows_a_calendar_that_is_edited(
    app: Mainspring, url: str, connection: Connection
) -> None:
    @app.job
    async def note() -> None: ...

    await app.calendars.put(Calendar(name="holidays", yearly=frozenset({(12, 25)})))
    before = (await note.scheduled("daily", "0 9 * * * not=holidays").create()).next_at
    assert before is not None

    async def has_followed() -> bool:
        return (await app.schedules.find("daily")).next_at == before + timedelta(days=1)

    with scheduler(url):
        await until(lambda: connection.fetchval("select exists (select from scheduler_heartbeat)"))
        await app.calendars.put(Calendar(name="holidays", dates=frozenset({before.date()})))
        await until(has_followed)
