"""A handler asks which occurrence of its schedule succeeded last."""

from __future__ import annotations

import importlib
import os
from datetime import datetime  # noqa: TC003  handlers' annotations are read at run time
from typing import TYPE_CHECKING

from tests.waiting import PATIENCE

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.store import schedule_reading
from mainspring.testing import inline, run_until_idle, travel

from .scheduling import DAY, HOUR, NEW_YEAR, remind

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

ONCE = RetryPolicy(max_attempts=1)
NINE = [NEW_YEAR + n * DAY + 9 * HOUR for n in range(6)]
APART = """
import os
from datetime import datetime

from mainspring import Context, Mainspring

app = Mainspring()

@app.job(isolated=True, schedule="every day at 09:00")
async def apart(context: Context) -> tuple[datetime | None, int]:
    return await context.previous_success_at(), os.getpid()

@app.job(isolated=True, schedule="every day at 09:00")
def apart_and_blocking(context: Context) -> tuple[datetime | None, int]:
    return context.previous_success_at_sync(), os.getpid()
"""


async def test_what_failed_in_between_is_passed_over(frozen_app: Mainspring) -> None:
    seen: list[datetime | None] = []

    @frozen_app.job(schedule="every day at 09:00", retry=ONCE)
    async def report(context: Context) -> None:
        seen.append(await context.previous_success_at())
        if len(seen) in (1, 3, 4):
            raise ValueError

    await travel(frozen_app, 6 * DAY)

    assert seen == [None, None, NINE[1], NINE[1], NINE[1], NINE[4]]


async def test_a_success_after_retries_counts_and_one_to_come_does_not(frozen_app: Mainspring) -> None:
    seen: list[tuple[int, datetime | None]] = []

    @frozen_app.job(schedule="every day at 09:00", retry=RetryPolicy(max_attempts=3, first_delay=HOUR))
    async def report(context: Context) -> None:
        seen.append((context.attempt, await context.previous_success_at()))
        if context.attempt < 3:
            raise ValueError

    await travel(frozen_app, 2 * DAY)

    assert seen == [(1, None), (2, None), (3, None), (1, NINE[0]), (2, NINE[0]), (3, NINE[0])]


async def test_a_handler_that_is_not_async_asks_too(frozen_app: Mainspring) -> None:
    @frozen_app.job(schedule="every day at 09:00")
    def report(context: Context) -> datetime | None:
        return context.previous_success_at_sync()

    fired = await travel(frozen_app, 2 * DAY)

    assert [await each.run.result() for each in fired] == [None, NINE[0]]


async def test_a_later_occurrence_that_ran_before_does_not_count(frozen_app: Mainspring, clock: FrozenClock) -> None:
    seen: dict[datetime, datetime | None] = {}

    @frozen_app.job(schedule="every day at 09:00")
    async def report(context: Context) -> None:
        assert context.occurrence is not None
        seen[context.occurrence.nominal_at] = await context.previous_success_at()

    await travel(frozen_app, DAY)
    delayed, _ = await travel(frozen_app, 2 * DAY, run=False)
    await delayed.run.change(at=clock.at + HOUR)
    await run_until_idle(frozen_app, travel=True)

    assert list(seen.items()) == [(NINE[0], None), (NINE[2], NINE[0]), (NINE[1], NINE[0])]


async def test_another_schedule_of_the_same_job_does_not_count(frozen_app: Mainspring) -> None:
    seen: list[datetime | None] = []

    @frozen_app.job
    async def report(context: Context) -> None:
        seen.append(await context.previous_success_at())

    await report.scheduled("first", "every day at 09:00").create()
    await report.scheduled("second", "every day at 10:00").create()
    await travel(frozen_app, DAY)

    assert seen == [None, None]


async def test_a_run_that_is_no_occurrence_has_none_before(frozen_app: Mainspring) -> None:
    seen: list[datetime | None] = []

    @frozen_app.job(schedule="every day at 09:00")
    async def report(context: Context) -> None:
        seen.append(await context.previous_success_at())

    await travel(frozen_app, DAY)
    await frozen_app.schedules.trigger("report")
    await report.submit()
    await run_until_idle(frozen_app)
    with inline(frozen_app):
        await report.submit()

    assert seen == [None] * 4


async def test_only_the_last_thousand_are_looked_at(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_reading, "LOOKED_BACK", 3)
    await remind(frozen_app).scheduled("daily", "every day at 09:00").create(1)
    await travel(frozen_app, DAY)
    fired = await travel(frozen_app, 3 * DAY, run=False)
    lane = await connection.fetchval("select lane from schedule")

    async def before(instant: datetime) -> datetime | None:
        return await schedule_reading.previous_success(connection, lane, "daily", instant, tenant_id=1)

    assert await before(fired[-1].nominal_at) == NINE[0]
    assert await before(fired[-1].nominal_at + DAY) is None


async def test_an_isolated_handler_asks_too(
    frozen_app: Mainspring, clock: FrozenClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asking_app.py").write_text(APART)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    app = importlib.import_module("asking_app").app
    app.use(frozen_app.location)
    app.clock = clock
    await travel(app, DAY)
    fired = await travel(app, DAY, run=False)

    async with app.running(path="asking_app:app", scheduler=False):
        found = [(at, pid != os.getpid()) for at, pid in [await each.run.result(PATIENCE) for each in fired]]
    await app.close()

    assert found == [(NINE[0], True)] * 2
