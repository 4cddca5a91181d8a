"""The forecast over all schedules of a tenant: exact of some thousands, an estimate of more."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.store import schedule_reading

from .scheduling import LANES, MINUTE, NEW_YEAR, remind

if TYPE_CHECKING:
    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection

MANY = 30_000
# A table in which every seventh schedule is the tenant's, and every other of these is at nine.
FILL = """
    insert into schedule (lane, id, tenant_id, name, job_id, spec, payload, created_by, changed_by)
    select n % 8, gen_random_uuid(), 1 + (n % 7)::int, 'name-' || n, 1,
           case when n % 2 = 0 then '{"when":"0 9 * * *"}' else '{"when":"H * * * *"}' end, repeat('x', 200)::bytea,
           '', ''
    from generate_series(1, 7 * 30000) as n
"""


@pytest.fixture
def job(frozen_app: Mainspring) -> Job[[int], None]:
    return remind(frozen_app)


async def test_the_runs_of_all_active_schedules_are_counted_by_the_minute(
    frozen_app: Mainspring, job: Job[[int], None]
) -> None:
    for number in range(12):
        await job.scheduled(f"daily-{number:02}", "0 9 * * *").create(number)
    await job.scheduled("hourly", "30 * * * *").create(0)
    await job.scheduled("paused", "0 9 * * *").create(0)
    await frozen_app.schedules.pause("paused")
    found = await frozen_app.schedules.forecast(peaks=1)

    assert (found.begin, found.end, found.step) == (NEW_YEAR, NEW_YEAR + timedelta(days=1), MINUTE)
    assert (found.schedules, found.total, found.is_estimate) == (13, 12 + 24, False)
    assert found.counts[9 * 60] == 12
    (maker,) = found.peaks[0].makers
    assert (maker.when, maker.schedules, maker.name) == ("0 9 * * *", 12, "daily-00")


async def test_h_goes_by_the_name(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    names = ["alpha", "beta", "gamma"]
    for name in names:
        await job.scheduled(name, "H H * * *").create(0)
    found = await frozen_app.schedules.forecast()

    due = [(await frozen_app.schedules.find(name)).next_at for name in names]
    assert sorted(due) == [found.begin + place * MINUTE for place, count in enumerate(found.counts) if count]  # type: ignore[type-var]


async def test_of_many_schedules_a_sample_is_counted(frozen_app: Mainspring, connection: Connection) -> None:
    await connection.execute(FILL)
    found = await frozen_app.schedules.forecast(peaks=1)

    assert found.is_estimate
    assert found.schedules == pytest.approx(MANY, rel=0.2)
    assert found.counts[9 * 60] == pytest.approx(MANY / 2 * (1 + 1 / 60), rel=0.2)
    assert found.counts[9 * 60 + 1] == pytest.approx(MANY / 2 / 60, rel=0.2)
    again = await frozen_app.schedules.forecast(peaks=1)
    assert again == found, "the same pages"


async def test_a_sample_reads_few_pages_of_a_large_table(connection: Connection) -> None:
    await connection.execute(FILL)
    _, pages = await schedule_reading.extent(connection, LANES, 1, tenant_id=DEFAULT_TENANT)
    rows = await schedule_reading.sample_specs(connection, 100 / pages, tenant_id=DEFAULT_TENANT)

    assert 0 < sum(row["count"] for row in rows) < MANY / 10
    assert (await schedule_reading.extent(connection, LANES, 50, tenant_id=DEFAULT_TENANT))[0] == 50


async def test_a_tenant_with_few_schedules_among_many_has_them_counted_one_by_one(
    frozen_app: Mainspring, job: Job[[int], None], connection: Connection
) -> None:
    await connection.execute(FILL.replace("1 + (n", "2 + (n"))
    await job.scheduled("daily", "0 9 * * *").create(0)
    found = await frozen_app.schedules.forecast()

    assert (found.schedules, found.total, found.is_estimate) == (1, 1, False)


async def test_a_schedule_that_nobody_can_read_is_left_out(
    frozen_app: Mainspring, job: Job[[int], None], connection: Connection
) -> None:
    for name in ("strange", "plain"):
        await job.scheduled(name, "0 9 * * *").create(0)
    await connection.execute("""update schedule set spec = '{"when":"when pigs fly"}' where name = 'strange'""")
    found = await frozen_app.schedules.forecast()

    assert (found.schedules, found.left_out, found.total) == (2, 1, 1)


async def test_the_load_that_a_schedule_would_add_is_known_before_it_is_made(
    frozen_app: Mainspring, job: Job[[int], None]
) -> None:
    for number in range(3):
        await job.scheduled(f"daily-{number}", "0 9 * * *").create(number)
    load = await frozen_app.schedules.added_load("berlin", "*/30 * * * *", zone="Europe/Berlin")

    assert load is not None
    assert (load.at, load.before, load.added) == (NEW_YEAR + timedelta(hours=9), 3, 1)
    assert await frozen_app.schedules.added_load("summer", "0 9 1 6 *") is None
    assert len(await frozen_app.schedules.list()) == 3


@pytest.mark.parametrize("hours", [0, -1, 1_000_000, float("nan"), "day", True])
async def test_hours_must_be_some_and_not_too_many(frozen_app: Mainspring, hours: float) -> None:
    with pytest.raises(InvalidInput, match=r"hours is .*; it must be more than 0 and at most 744") as refused:
        await frozen_app.schedules.forecast(hours=hours)
    assert refused.value.code == "invalid-hours"
