"""A test travels through schedules: each occurrence fires when the clock comes by, and its run is executed."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from mainspring import Context, Mainspring, RetryPolicy, State
from mainspring.errors import InvalidInput
from mainspring.store import history
from mainspring.testing import FrozenClock, NotIdle, run_until_idle, travel, travel_sync

from .scheduling import DAY, HOUR, MINUTE, NEW_YEAR, outcomes, remind

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

BERLIN = ZoneInfo("Europe/Berlin")
MARCH = datetime(2031, 3, 1, tzinfo=BERLIN)


# ── time passes ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("run", [True, False])
async def test_a_year_passes_with_both_changes_of_the_clocks(frozen_app: Mainspring, run: bool) -> None:
    seen = []

    @frozen_app.job(schedule="every day at 09:00", zone="Europe/Berlin")
    async def report(context: Context) -> None:
        assert context.occurrence is not None
        seen.append(context.occurrence.nominal_at)

    fired = await travel(frozen_app, start=MARCH, to=MARCH.replace(year=2032), run=run, timeout=120)

    instants = [datetime(2031, 3, 1, 9, tzinfo=BERLIN) + n * DAY for n in range(366)]  # of wall time: a zone's days
    assert [each.nominal_at for each in fired] == instants
    assert sorted({each.nominal_at.hour for each in fired}) == [7, 8]
    assert {each.schedule for each in fired} == {"report"}
    assert {each.state for each in fired} == {State.SUCCEEDED if run else State.READY}
    assert seen == (instants if run else [])


@pytest.mark.parametrize(
    ("start", "instants"),
    [
        (datetime(2031, 3, 29, tzinfo=BERLIN), ["03-29 02:30 +0100", "03-30 03:00 +0200", "03-31 02:30 +0200"]),
        (datetime(2031, 10, 25, tzinfo=BERLIN), ["10-25 02:30 +0200", "10-26 02:30 +0200", "10-27 02:30 +0100"]),
    ],
    ids=["skipped", "repeated"],
)
async def test_an_instant_that_the_clocks_skip_or_repeat_fires_once(
    frozen_app: Mainspring, start: datetime, instants: list[str]
) -> None:
    @frozen_app.job(schedule="30 2 * * *", zone="Europe/Berlin")
    async def clean_up() -> None: ...

    fired = await travel(frozen_app, start=start, to=start + 3 * DAY)

    assert [each.nominal_at.astimezone(BERLIN).strftime("%m-%d %H:%M %z") for each in fired] == instants


async def test_schedules_fire_in_the_order_of_their_instants(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    await job.scheduled("weekly", "0 12 * * MON").create(1)
    await job.scheduled("monthly", "every month on the 1st at 06:00").create(1)

    fired = await travel(frozen_app, to=NEW_YEAR + 31 * DAY + 6 * HOUR)

    weekly, monthly = ("weekly", 12), ("monthly", 6)
    assert [(each.schedule, each.nominal_at.hour) for each in fired] == [monthly, *[weekly] * 4, monthly]
    assert [each.nominal_at.day for each in fired] == [1, 6, 13, 20, 27, 1]


@pytest.mark.parametrize("catch_up", ["latest", "none"])
async def test_rules_for_catching_up_have_nothing_to_do(frozen_app: Mainspring, catch_up: str) -> None:
    await remind(frozen_app).scheduled("hourly", "every hour", catch_up=catch_up).create(1)

    fired = await travel(frozen_app, 5 * HOUR)

    assert [each.nominal_at for each in fired] == [NEW_YEAR + n * HOUR for n in range(1, 6)]
    assert await outcomes(frozen_app, "hourly") == [(each.nominal_at, each.nominal_at, "fired") for each in fired]
    assert {run.due_at for run in (await frozen_app.runs.list(job="remind")).runs} == {e.due_at for e in fired}


async def test_a_journey_goes_on_where_the_last_one_ended(frozen_app: Mainspring, clock: FrozenClock) -> None:
    await remind(frozen_app).scheduled("hourly", "every hour").create(1)

    first, second = await travel(frozen_app, HOUR), await travel(frozen_app, HOUR)

    assert [each.nominal_at for each in first + second] == [NEW_YEAR + HOUR, NEW_YEAR + 2 * HOUR]
    assert clock.at == NEW_YEAR + 2 * HOUR
    assert await travel(frozen_app, 0) == []


async def test_what_did_not_run_on_the_way_can_run_afterwards(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("hourly", "every hour").create(1)

    fired = await travel(frozen_app, DAY, run=False)

    assert await run_until_idle(frozen_app) == {"succeeded": 24}
    assert (await fired[0].run.find()).state is State.SUCCEEDED


# ── what happens on the way ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_paused_schedule_fires_again_when_its_pause_is_over(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("daily", "every day at 09:00").create(1)
    await frozen_app.schedules.pause("daily", until=NEW_YEAR + 2 * DAY)

    fired = await travel(frozen_app, 4 * DAY)

    assert [each.nominal_at for each in fired] == [NEW_YEAR + 2 * DAY + 9 * HOUR, NEW_YEAR + 3 * DAY + 9 * HOUR]
    assert [what for *_, what in await outcomes(frozen_app, "daily")] == ["paused", "fired", "fired"]


async def test_a_schedule_that_is_paused_for_good_does_not_fire(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("daily", "every day at 09:00").create(1)
    await frozen_app.schedules.pause("daily")

    assert await travel(frozen_app, 40 * DAY) == []


async def test_a_handler_changes_its_schedule_on_the_way(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def ask(context: Context) -> None:
        assert context.occurrence is not None
        if context.occurrence.nominal_at == NEW_YEAR + 2 * HOUR:
            await ask.scheduled("asking", "every day at 12:30").put()

    await ask.scheduled("asking", "every hour").create()
    fired = await travel(frozen_app, 2 * DAY)

    hours = [1.0, 2.0, 12.5, 36.5]
    assert [(each.nominal_at - NEW_YEAR) / HOUR for each in fired] == hours


async def test_a_schedule_that_is_deleted_on_the_way_is_told_of(frozen_app: Mainspring) -> None:
    @frozen_app.job(schedule="every hour")
    async def once() -> None:
        await frozen_app.schedules.delete("once")

    (fired,) = await travel(frozen_app, DAY)

    assert (fired.schedule, fired.nominal_at, fired.state) == ("once", NEW_YEAR + HOUR, State.SUCCEEDED)


async def test_retries_wait_for_their_time_between_other_instants(frozen_app: Mainspring, clock: FrozenClock) -> None:
    seen = []

    @frozen_app.job(schedule="every day at 09:00", retry=RetryPolicy(max_attempts=3, first_delay=10 * MINUTE))
    async def fail() -> None:
        seen.append(("fail", clock.at - NEW_YEAR))
        raise ValueError("never works")

    @frozen_app.job(schedule="every day at 09:15")
    async def succeed() -> None:
        seen.append(("succeed", clock.at - NEW_YEAR))

    fired = await travel(frozen_app, DAY)

    began, pauses = 9 * HOUR, (10 * MINUTE, 20 * MINUTE)
    assert seen == [
        ("fail", began),
        ("fail", began + pauses[0]),
        ("succeed", began + 15 * MINUTE),
        ("fail", began + sum(pauses, timedelta(0))),
    ]
    assert [(each.schedule, each.state) for each in fired] == [("fail", State.DEAD), ("succeed", State.SUCCEEDED)]


async def test_a_retry_that_is_due_after_the_journey_stays(frozen_app: Mainspring) -> None:
    @frozen_app.job(schedule="every day at 09:00", retry=RetryPolicy(max_attempts=2, first_delay=DAY, cap=DAY))
    async def fail() -> None:
        raise ValueError

    (fired,) = await travel(frozen_app, 10 * HOUR)

    assert fired.state is State.SCHEDULED


async def test_schedules_fire_on_time_while_a_handler_waits_for_its_timeout(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    seen = []

    @frozen_app.job(schedule="every day at 01:00", timeout=3 * HOUR, retry=RetryPolicy(max_attempts=1))
    async def hang() -> None:
        await asyncio.Event().wait()

    @frozen_app.job(schedule="every hour", catch_up="none")
    async def hourly() -> None:
        seen.append(round((clock.at - NEW_YEAR) / HOUR))

    fired = await travel(frozen_app, 6 * HOUR)

    assert [each.state for each in fired if each.schedule == "hang"] == [State.DEAD]
    assert seen == [1, 2, 3, 4, 5, 6]


async def test_delayed_runs_happen_on_the_way(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    handle = await job.options(delay=300 * DAY).submit(1)

    assert await travel(frozen_app, 299 * DAY) == []
    assert (await handle.find()).state is State.SCHEDULED
    assert await travel(frozen_app, DAY) == []
    (attempt,) = (await handle.find()).attempts
    assert attempt.recorded_at == NEW_YEAR + 300 * DAY


# ── history ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_days_around_the_end_of_a_journey_have_partitions_of_their_own(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    @frozen_app.job(schedule="every day at 09:00")
    async def report(context: Context) -> None:
        context.log("one line")

    fired = await travel(frozen_app, 100 * DAY)

    for table in ("attempt", "log"):
        rows = await connection.fetch(f"select tableoid::regclass::text as place from {table} order by recorded_at")  # noqa: S608
        days = [row["place"].removeprefix(f"{table}_") for row in rows]
        assert days == ["20310101", "20310102", *["journey"] * 97, "20310410"]
    assert [len((await each.run.find()).attempts) for each in fired] == [1] * 100
    assert await history.add_partitions(connection) == 0  # where a keeper looks, it has nothing to do


async def test_a_clock_that_was_set_back_travels_the_same_days_again(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    job = remind(frozen_app)
    await job.scheduled("first", "every day at 09:00").create(1)
    await travel(frozen_app, 20 * DAY)
    await frozen_app.schedules.delete("first")

    await clock.set(NEW_YEAR + 10 * DAY)
    await job.scheduled("second", "every day at 10:00").create(1)
    fired = await travel(frozen_app, 20 * DAY)

    assert [(each.schedule, each.state) for each in fired] == [("second", State.SUCCEEDED)] * 20
    assert len((await frozen_app.runs.list(job="remind", limit=100)).runs) == 40


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "wanted", [{}, {"by": DAY, "to": NEW_YEAR + DAY}, {"to": NEW_YEAR - DAY}, {"by": -1.0}], ids=str
)
async def test_a_journey_without_an_end_ahead_is_refused(frozen_app: Mainspring, wanted: dict[str, object]) -> None:
    remind(frozen_app)
    with pytest.raises(InvalidInput) as refused:
        await travel(frozen_app, **wanted)  # type: ignore[arg-type]
    assert (refused.value.code, refused.value.fields["field"]) == ("invalid-journey", "to")


async def test_a_database_that_goes_by_another_clock_is_refused(url: str) -> None:
    async with Mainspring(url, clock=FrozenClock(NEW_YEAR)) as app:
        with pytest.raises(InvalidInput, match="in its database") as refused:
            await travel(app, DAY)
    assert refused.value.code == "clock-not-frozen"


async def test_only_a_frozen_clock_travels(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="frozen clock"):
        await travel(app, DAY)


async def test_a_journey_that_takes_too_long_says_how_far_it_came(frozen_app: Mainspring, clock: FrozenClock) -> None:
    await remind(frozen_app).scheduled("often", "every second").create(1)

    with pytest.raises(NotIdle, match=r"on the way to 2041") as refused:
        await travel(frozen_app, to=NEW_YEAR.replace(year=2041), run=False, timeout=0.5)

    assert "less far" in str(refused.value.hint)
    assert await travel(frozen_app, 2, run=False)


# ── for tests that are not async ────────────────────────────────────────────────────────────────────────────────


async def test_a_test_that_is_not_async_travels_alike(url: str) -> None:
    await asyncio.to_thread(_plain_test, url)


def _plain_test(url: str) -> None:
    clock = FrozenClock(NEW_YEAR)
    app = Mainspring(url, clock=clock)
    app.blocking(clock.freeze(app))

    @app.job(schedule="every day at 09:00")
    def report() -> int:
        return 7

    (fired,) = travel_sync(app, DAY)

    assert (fired.nominal_at, fired.run.result_sync()) == (NEW_YEAR + 9 * HOUR, 7)
    app.close_sync()


# ── runs that are kept apart ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("overlap", "outcome"),
    [("allow", ["fired"] * 4), ("skip", ["fired", "overlap", "overlap", "fired"]), ("buffer_all", ["fired"] * 4)],
)
async def test_a_journey_keeps_to_the_rule_about_overlap(
    frozen_app: Mainspring, overlap: str, outcome: list[str]
) -> None:
    """The first run backs off until half past three, and has not ended until then."""
    tried: list[datetime] = []
    retry = RetryPolicy(max_attempts=2, first_delay=2.5 * HOUR, cap=DAY)

    @frozen_app.job(schedule="0 * * * *", overlap=overlap, retry=retry)
    async def sync(context: Context) -> None:
        assert context.occurrence is not None
        tried.append(context.occurrence.nominal_at)
        if len(tried) == 1:
            raise ValueError("once more")

    await travel(frozen_app, 4 * HOUR, start=NEW_YEAR)

    assert [said for _, _, said in await outcomes(frozen_app, "sync")] == outcome
    if overlap != "allow":
        assert tried == sorted(tried), "one after the other"


async def test_a_journey_ends_at_a_pause_after_failures(frozen_app: Mainspring) -> None:
    @frozen_app.job(schedule="0 * * * *", pause_after_failures=2, retry=RetryPolicy(max_attempts=1))
    async def sync() -> None:
        raise ValueError("the shop is closed")

    await travel(frozen_app, 4 * HOUR, start=NEW_YEAR)

    assert [said for _, _, said in await outcomes(frozen_app, "sync")] == ["fired"] * 2
    found = await frozen_app.schedules.find("sync")
    assert found.pause_reason is not None
    assert found.pause_reason.endswith("is a dead letter: the shop is closed")
