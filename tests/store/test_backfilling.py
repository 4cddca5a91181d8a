"""Backfills: instants of a schedule that have passed become runs, each once, whoever else is at work."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.occurrences import NOMINAL_OF
from tests.waiting import until

from mainspring import Calendar, Context, Mainspring, RetryPolicy, RunFilter, State
from mainspring.control import backfill_range, backfilling, backfills
from mainspring.errors import InvalidInput, MainspringError, ScheduleNotFound
from mainspring.model.backfill import backfill_of
from mainspring.model.ids import lane_of_key
from mainspring.store import operations
from mainspring.testing import FrozenClock, run_until_idle

from .scheduling import (
    DAY,
    HOUR,
    LANES,
    MINUTE,
    NEW_YEAR,
    Firing,
    holidays,
    made_daily,
    outcomes,
    remind,
    run_ids,
)

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Run
    from mainspring.model.operation import Operation
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

SINCE = NEW_YEAR + MINUTE
HOURS = [NEW_YEAR + hours * HOUR for hours in range(1, 6)]


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


@pytest.fixture
async def night(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> Mainspring:
    """An hourly schedule of which one instant fired and four were missed: it is half past five."""
    await remind(frozen_app).scheduled("hourly", "0 * * * *", catch_up="none").create(1)
    await clock.advance(HOUR)
    await firing.fire()
    await clock.advance(4 * HOUR + 30 * MINUTE)
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 1
    return frozen_app


async def fired(app: Mainspring, name: str = "hourly") -> list[datetime]:
    return [first for first, _, what in await outcomes(app, name) if what == "fired"]


async def made(app: Mainspring) -> list[datetime]:
    """For which instants there are runs."""
    return [datetime.fromisoformat(run.headers["occurrence"]) for run in await runs_in_order(app)]


async def runs_in_order(app: Mainspring) -> list[Run]:
    """In the order of their occurrences: ids that were made together have none."""
    runs = [await app.runs.find(run_id) for run_id in await run_ids(app)]
    return sorted(runs, key=lambda run: run.headers["occurrence"])


async def stepped(app: Mainspring, operation: Operation, *, batch: int = 500, steps: int | None = None) -> Operation:
    """Work a backfill off, or so many of its batches."""
    async for latest in app.operations.work(operation.id, batch=batch):
        operation = latest
        if steps == 0:
            break
        steps = None if steps is None else steps - 1
    return operation


# ── what is missing ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(2)
async def test_what_is_missing_becomes_runs_and_a_second_time_nothing_does(night: Mainspring) -> None:
    report = await night.schedules.backfill("hourly", since=SINCE)
    assert [each.nominal_at for each in report.occurrences] == HOURS[1:]
    assert report.operation is not None
    assert (report.operation.done, report.operation.skipped, report.operation.expected) == (4, 0, 4)
    assert await fired(night) == HOURS
    assert await made(night) == HOURS

    again = await night.schedules.backfill("hourly", since=SINCE)
    assert (again.occurrences, len(await run_ids(night))) == ([], 5)


async def test_a_dry_run_tells_what_would_be_done_and_does_nothing(night: Mainspring, connection: Connection) -> None:
    before = await outcomes(night, "hourly")
    report = await night.schedules.backfill("hourly", since=HOURS[2], before=HOURS[4], dry_run=True)
    assert ([each.nominal_at for each in report.occurrences], report.operation) == (HOURS[2:4], None)
    assert await outcomes(night, "hourly") == before
    assert await connection.fetchval("select count(*) from operation") == 0


async def test_a_backfilled_run_is_due_now_and_knows_its_occurrence(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    seen = []

    @frozen_app.job(name="remind", max_age=60)
    async def remind(context: Context) -> None:
        seen.append(context.occurrence)

    await clock.advance(HOUR)
    await remind.options(tags=["vip"]).scheduled("hourly", "0 * * * *").create()
    report = await frozen_app.schedules.backfill("hourly", since=NEW_YEAR, before=SINCE, priority=9)
    (run_id,) = await run_ids(frozen_app)
    run = await frozen_app.runs.find(run_id)
    assert (run.due_at, run.expires_at, run.priority, run.tags) == (clock.at, clock.at + MINUTE, 9, ["vip"])
    assert report.operation is not None
    assert (run.headers["backfilled_by"], run.submitted_by) == (str(report.operation.id), "tester")
    (record,) = await frozen_app.schedules.history("hourly")
    assert (record.nominal_at, record.due_at, record.late) == (NEW_YEAR, NEW_YEAR, HOUR)

    await run_until_idle(frozen_app)
    (occurrence,) = seen
    assert occurrence is not None
    assert (occurrence.schedule, occurrence.interval) == ("hourly", (NEW_YEAR - HOUR, NEW_YEAR))


async def test_what_was_skipped_is_told_once(night: Mainspring) -> None:
    """A range of instants that did not fire is told without those that did afterwards."""
    await night.schedules.backfill("hourly", since=HOURS[2], before=HOURS[3])
    told = [
        (HOURS[0], HOURS[0], "fired"),
        (HOURS[1], HOURS[1], "missed"),
        (HOURS[2], HOURS[2], "fired"),
        (HOURS[3], HOURS[4], "missed"),
    ]
    assert await outcomes(night, "hourly") == told
    newest = await night.schedules.history("hourly", limit=2)
    older = await night.schedules.history("hourly", limit=2, before=newest[-1].nominal_at)
    assert [(each.nominal_at, each.last_at) for each in reversed([*newest, *older])] == [each[:2] for each in told]
    missed = await night.schedules.history("hourly", missed=True)
    assert [each.nominal_at for each in reversed(missed)] == HOURS[1:4], "what fired late was missed, too"

    await night.schedules.backfill("hourly", since=SINCE)
    assert [what for _, _, what in await outcomes(night, "hourly")] == ["fired"] * 5


async def test_the_cursor_stays_and_nothing_is_made_beyond_it(
    night: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await clock.advance(30.5 * MINUTE)  # six o'clock is due, and nobody has decided it
    batches = await firing.decided()  # a scheduler has, by now, and carries it out when the backfill is through
    report = await night.schedules.backfill("hourly", since=SINCE, before=clock.at + DAY)
    assert [each.nominal_at for each in report.occurrences] == HOURS[1:]
    assert (await night.schedules.find("hourly")).next_at == NEW_YEAR + 6 * HOUR
    await firing.carry_out(batches)
    assert await made(night) == [*HOURS, NEW_YEAR + 6 * HOUR]


async def test_the_latest_come_first_if_asked_for(night: Mainspring) -> None:
    operation = await night.schedules.start_backfill("hourly", since=SINCE, order="backwards")
    await stepped(night, operation, batch=2, steps=1)
    assert await fired(night) == [HOURS[0], *HOURS[3:]]
    assert (await stepped(night, operation, batch=2)).done == 4
    assert await fired(night) == HOURS


# ── what is over ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def mixed(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> Mainspring:
    """Of an hourly schedule, one run succeeded, one is dead, one was cancelled, one waits, and one is missing."""

    @frozen_app.job(name="remind", retry=RetryPolicy(max_attempts=1))
    async def remind(context: Context) -> None:
        if context.occurrence is not None and context.occurrence.nominal_at == HOURS[1] and clock.at < HOURS[4]:
            raise ValueError("not yet")

    await remind.scheduled("hourly", "0 * * * *", catch_up="none").create()
    for _ in range(2):
        await clock.advance(HOUR)
        await firing.fire()
        await run_until_idle(frozen_app)
    await clock.advance(HOUR)
    await firing.fire()
    await frozen_app.runs.cancel(await run_at(frozen_app, HOURS[2]))
    await clock.advance(90 * MINUTE)
    await firing.fire()
    await clock.advance(30 * MINUTE)
    await firing.fire()
    assert [each.run_state for each in reversed(await frozen_app.schedules.history("hourly"))] == [
        State.SUCCEEDED,
        State.DEAD,
        State.CANCELLED,
        None,
        State.READY,
    ]
    await clock.advance(MINUTE)
    return frozen_app


async def run_at(app: Mainspring, at: datetime) -> UUID:
    (found,) = [each.run_id for each in await app.schedules.history("hourly") if each.nominal_at == at]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("which", "hours"), [("missing", [3]), ("failed", [1, 2]), ("all", [0, 1, 2, 3])], ids=["missing", "failed", "all"]
)
async def test_what_is_over_is_run_again_and_has_no_second_row(
    mixed: Mainspring, connection: Connection, which: str, hours: list[int]
) -> None:
    report = await mixed.schedules.backfill("hourly", since=SINCE, which=which, priority=8)
    assert [each.nominal_at for each in report.occurrences] == [HOURS[hour] for hour in hours]
    assert report.operation is not None
    assert (report.operation.done, report.operation.skipped) == (len(hours), 0)
    waiting = await connection.fetch(f"select {NOMINAL_OF} as at from ready where priority = 8")  # noqa: S608
    assert sorted(row["at"] for row in waiting) == [HOURS[hour] for hour in hours]
    rows = await connection.fetchval("select count(*) from occurrence")
    assert rows == (5 if 3 in hours else 4)

    await run_until_idle(mixed)
    records = list(reversed(await mixed.schedules.history("hourly")))
    ended_before = {"missing": [], "failed": [2], "all": [0, 2]}[which]  # the dead one is requeued and stays itself
    assert [hour for hour, each in enumerate(records) if each.first_run_id is not None] == ended_before
    assert [each.run_state for each in records if each.nominal_at in [HOURS[hour] for hour in hours]] == (
        [State.SUCCEEDED] * len(hours)
    )
    if which == "failed":
        assert (await mixed.schedules.backfill("hourly", since=SINCE, which="failed")).occurrences == [], (
            "they have succeeded since: the dead one, and what the cancelled one was run again as"
        )


# ── which version ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("version", "instants", "customers", "versions"),
    [
        ("present", [(1, 30), (2, 30), (3, 30), (4, 30)], [2, 2, 2, 2], [2, 2, 2, 2]),
        ("then", [(1, 0), (2, 0), (3, 0), (3, 30), (4, 30)], [1, 1, 1, 2, 2], [1, 1, 1, 2, 2]),
    ],
)
async def test_instants_and_arguments_are_those_of_the_version(
    frozen_app: Mainspring,
    clock: FrozenClock,
    firing: Firing,
    version: str,
    instants: list[tuple[int, int]],
    customers: list[int],
    versions: list[int],
) -> None:
    job = remind(frozen_app)
    await job.scheduled("hourly", "0 * * * *", catch_up="none").create(1)
    await clock.advance(3 * HOUR + 10 * MINUTE)
    await job.scheduled("hourly", "30 * * * *", catch_up="none").put(2)
    await clock.advance(2 * HOUR - 10 * MINUTE)
    await firing.fire()
    assert await run_ids(frozen_app) == []

    since = NEW_YEAR + 40 * MINUTE
    report = await frozen_app.schedules.backfill("hourly", since=since, version=version)
    expected = [NEW_YEAR + timedelta(hours=hours, minutes=minutes) for hours, minutes in instants]
    assert [(each.nominal_at, each.version) for each in report.occurrences] == list(
        zip(expected, versions, strict=True)
    )
    runs = await runs_in_order(frozen_app)
    assert [run.payload["customer"] for run in runs] == customers
    assert [int(run.headers["schedule_version"]) for run in runs] == versions


# ── cut off, and beside others ──────────────────────────────────────────────────────────────────────────────────


async def test_a_backfill_that_was_cut_off_goes_on_elsewhere(
    night: Mainspring, url: str, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = await night.schedules.start_backfill("hourly", since=SINCE)
    advance, calls = operations.advance, iter(range(2))

    async def cut_off_in_the_second_batch(*arguments: Any, **values: Any) -> None:
        if next(calls) == 1:
            raise ConnectionResetError("the process is gone")
        await advance(*arguments, **values)

    monkeypatch.setattr(operations, "advance", cut_off_in_the_second_batch)
    with pytest.raises(ConnectionResetError):
        await stepped(night, operation, batch=1)
    monkeypatch.undo()
    assert await fired(night) == HOURS[:2], "a batch is done as a whole or not at all"

    async with Mainspring(url, clock=clock) as other:
        done = await stepped(other, operation, batch=1)
    assert (done.done, done.skipped) == (4, 0)
    assert await made(night) == HOURS


@pytest.mark.invariant(2)
@pytest.mark.parametrize("has_key", [True, False], ids=["with the ledger's key", "without it"])
async def test_two_backfills_at_once_make_each_run_once(
    night: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch, *, has_key: bool
) -> None:
    """Even if neither waits for the other and neither sees what the other made: then the ledger's key decides."""
    if not has_key:
        await connection.execute("alter table occurrence drop constraint occurrence_pkey")

    async def nothing_seen(*_: Any) -> dict[datetime, UUID]:
        return {}

    monkeypatch.setattr("mainspring.store.backfills.runs_at", nothing_seen)
    steps = [await stepped(night, await night.schedules.start_backfill("hourly", since=SINCE)) for _ in range(2)]
    assert len(await run_ids(night)) == (5 if has_key else 11)
    assert [(each.done, each.skipped) for each in steps] == ([(4, 1), (0, 5)] if has_key else [(5, 0), (5, 0)])


async def test_a_backfill_waits_for_whoever_changes_the_schedule(
    night: Mainspring, connection: Connection, database: Database
) -> None:
    operation = await night.schedules.start_backfill("hourly", since=SINCE)
    other = await database.connect("other")
    try:
        changing = other.transaction()
        await changing.start()
        await other.fetch("select from schedule where lane = $1 for update", lane_of_key(1, "hourly", LANES))
        working = asyncio.ensure_future(stepped(night, operation))
        await until(
            lambda: connection.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and wait_event_type = 'Lock' and query like '%schedule%'"
            )
        )
        await other.execute("update schedule set payload = '{\"customer\": 7}'::bytea")
        await changing.commit()
        await working
    finally:
        await other.close()
    runs = await runs_in_order(night)
    assert [run.payload["customer"] for run in runs] == [1, 7, 7, 7, 7]


async def test_a_schedule_that_was_deleted_is_not_backfilled_any_more(night: Mainspring) -> None:
    operation = await night.schedules.start_backfill("hourly", since=SINCE)
    await night.schedules.delete("hourly")
    await remind_again(night)
    with pytest.raises(ScheduleNotFound, match="was deleted"):
        await stepped(night, operation)
    assert len(await run_ids(night)) == 1


async def remind_again(app: Mainspring) -> None:
    await app.schedules.create("hourly", "remind", "0 * * * *", {"customer": 1})


# ── rate and concurrency ────────────────────────────────────────────────────────────────────────────────────────


class PassingClock(FrozenClock):
    """Whoever sleeps lets time pass. Meanwhile, the runs of an application that wait come to an end."""

    def __init__(self, at: datetime) -> None:
        super().__init__(at)
        self.slept: list[float] = []
        self.app: Mainspring | None = None

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.advance(seconds)
        if self.app is not None:
            for run in (await self.app.runs.list(state="ready")).runs:
                await self.app.runs.cancel(run.id)


async def test_a_rate_spreads_runs_over_time(night: Mainspring, url: str, clock: FrozenClock) -> None:
    slow = PassingClock(clock.at)
    async with Mainspring(url, clock=slow) as app:
        slow.govern(app)
        operation = await app.schedules.start_backfill("hourly", since=SINCE, rate=0.5)
        operation = await stepped(app, operation)
    assert slow.slept == [2.0, 2.0, 2.0], "each run has its two seconds; nothing waits after the last"
    assert operation.done == 4


async def test_no_more_runs_than_allowed_are_unfinished(night: Mainspring, url: str, clock: FrozenClock) -> None:
    await run_until_idle(night)
    slow = PassingClock(clock.at)
    async with Mainspring(url, clock=slow) as app:
        slow.govern(app)
        slow.app = app
        operation = await app.schedules.start_backfill("hourly", since=SINCE, concurrency=3)
        steps = app.operations.work(operation.id)
        counts = [len((await app.runs.list(job="remind", state="ready")).runs) async for _ in steps]
    assert counts == [0, 3, 1]
    assert len(slow.slept) == 1


async def test_unfinished_runs_are_looked_for_until_there_are_enough(
    night: Mainspring, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfilling, "LOOKED_AT", 2)
    asked = await night.schedules.start_backfill("hourly", since=SINCE, concurrency=3)
    await night.schedules.backfill("hourly", since=SINCE)
    runs = await runs_in_order(night)
    unfinished = backfilling.UnfinishedRuns(backfill_of(asked.change), lane_of_key(1, "hourly", LANES), 1)
    assert await unfinished.count(database, None) == 4, "two looks at two of them, from the end"
    for run in runs[2:]:
        await night.runs.cancel(run.id)
    assert await unfinished.count(database, None) == 2
    for run in runs[:2]:
        await night.runs.cancel(run.id)
    assert await unfinished.count(database, None) == 0


@pytest.mark.parametrize("order", ["forwards", "backwards"])
async def test_two_who_work_on_one_backfill_leave_no_more_unfinished_than_allowed(
    night: Mainspring, url: str, clock: FrozenClock, order: str
) -> None:
    """Each has looked at the range before the other made its runs, and sees them all the same."""
    await run_until_idle(night)
    slow = PassingClock(clock.at)
    async with Mainspring(url, clock=slow) as app:
        slow.govern(app)
        slow.app = app
        operation = await app.schedules.start_backfill("hourly", since=SINCE, concurrency=1, order=order)
        one, two = (app.operations.work(operation.id) for _ in range(2))
        while not operation.is_over:
            for steps in (one, two, two, one):  # who was overtaken has lost its turn, and has the next
                operation = await anext(steps, operation)
                assert len((await app.runs.list(job="remind", state="ready")).runs) <= 1
    assert await made(night) == HOURS


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({"since": None}, "invalid-since", "since"),
        ({"since": "yesterday"}, "invalid-since", "since"),
        ({"since": datetime(2031, 1, 1)}, "invalid-since", "since"),  # noqa: DTZ001  without a zone
        ({"before": NEW_YEAR}, "invalid-since", "since"),
        ({"before": NEW_YEAR - DAY}, "invalid-since", "since"),
        ({"since": NEW_YEAR - 20_000 * DAY}, "backfill-too-long", "since"),
        ({"since": datetime(2000, 1, 1, tzinfo=UTC), "before": NEW_YEAR}, "backfill-too-long", "since"),
        ({"since": NEW_YEAR + DAY}, "backfill-of-the-future", "since"),
        ({"since": NEW_YEAR + DAY, "before": NEW_YEAR + 2 * DAY}, "backfill-of-the-future", "since"),
        ({"since": NEW_YEAR - 50 * DAY}, "backfill-too-large", "before"),
        ({"since": NEW_YEAR - 50 * DAY, "order": "backwards"}, "backfill-too-large", "since"),
        ({"which": "some"}, "invalid-which", "which"),
        ({"which": None}, "invalid-which", "which"),
        ({"order": "sideways"}, "invalid-order", "order"),
        ({"version": 3}, "invalid-version", "version"),
        ({"priority": 10}, "invalid-priority", "priority"),
        ({"priority": True}, "invalid-priority", "priority"),
        *(({"rate": rate}, "invalid-rate", "rate") for rate in (0, -1, float("nan"), float("inf"), "1", True, 1e9)),
        *(({"concurrency": most}, "invalid-concurrency", "concurrency") for most in (0, -1, 1.5, "1", True, 10**9)),
        ({"name": "hurly"}, "schedule-not-found", "schedule"),
        ({"name": ""}, "invalid-name", "name"),
        ({"reason": "x" * 1_001}, "invalid-reason", "reason"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_done(
    night: Mainspring,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    code: str,
    field: str,
) -> None:
    monkeypatch.setattr(backfills, "MOST_OCCURRENCES", 1_000)
    given: dict[str, Any] = {"name": "hourly", "since": NEW_YEAR} | asked
    with pytest.raises(MainspringError) as caught:
        await night.schedules.backfill(given.pop("name"), **given)
    assert (caught.value.code, caught.value.fields["field"]) == (code, field)
    assert len(await run_ids(night)) == 1
    assert await connection.fetchval("select count(*) from operation") == 0


@pytest.mark.parametrize("looked_at", [7, 10, 1_000])
async def test_a_range_that_is_too_large_says_where_its_first_part_ends(
    night: Mainspring, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr(backfills, "MOST_OCCURRENCES", 100)
    monkeypatch.setattr(backfills, "LOOKED_AT", looked_at)
    since = NEW_YEAR - 5 * DAY
    with pytest.raises(InvalidInput, match="more than 100 occurrences") as caught:
        await night.schedules.backfill("hourly", since=since, dry_run=True)
    part = (since + 100 * HOUR).isoformat()
    assert caught.value.hint is not None
    assert part in caught.value.hint
    report = await night.schedules.backfill("hourly", since=since, before=datetime.fromisoformat(part), dry_run=True)
    assert (report.count, len(report.occurrences)) == (100, 100)


@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize(
    ("when", "days"), [("every 5 seconds", 3_000), ("* * * * * *", 30), ("* * 9-17 * * 1-5 zone=Europe/Berlin", 120)]
)
async def test_a_range_that_is_far_too_large_is_refused_without_counting(
    frozen_app: Mainspring, monkeypatch: pytest.MonkeyPatch, when: str, days: int, order: str
) -> None:
    await remind(frozen_app).scheduled("often", when).create(1)
    monkeypatch.setattr(backfill_range.PastRange, "look", _never)
    asked: dict[str, Any] = {"since": NEW_YEAR - days * DAY, "before": NEW_YEAR, "order": order, "dry_run": True}

    with pytest.raises(InvalidInput, match=r"has about [\d,]+,000 occurrences") as caught:
        await frozen_app.schedules.backfill("often", **asked)

    assert caught.value.code == "backfill-too-large"
    part = datetime.fromisoformat(str(caught.value.hint).removesuffix(".").split()[-1])
    with pytest.raises(AssertionError, match="it is counted"):
        await frozen_app.schedules.backfill("often", **asked | {str(caught.value.fields["field"]): part})


async def _never(*_: object, **__: object) -> None:
    raise AssertionError("it is counted")


@pytest.mark.parametrize("when", ["* * * 1 1 *", "*/5 * * * * * only=launch"])
async def test_bursts_are_no_reason_to_refuse_a_range(
    frozen_app: Mainspring, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    await frozen_app.calendars.put(
        Calendar(name="launch", dates=frozenset((NEW_YEAR + n * DAY).date() for n in (-100, 100)))
    )
    await remind(frozen_app).scheduled("bursts", when).create(1)
    monkeypatch.setattr(backfill_range.PastRange, "look", _never)

    with pytest.raises(AssertionError, match="it is counted"):
        await frozen_app.schedules.backfill("bursts", since=NEW_YEAR - 3_000 * DAY, before=NEW_YEAR)


@pytest.mark.parametrize("order", ["forwards", "backwards"])
async def test_of_many_occurrences_the_first_and_the_last_are_listed(
    night: Mainspring, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(backfills, "LOOKED_AT", 7)
    monkeypatch.setattr(backfills, "MOST_LISTED", 24)
    since, every = NEW_YEAR - DAY, [NEW_YEAR + hours * HOUR for hours in range(-24, 1)]
    walked = every if order == "forwards" else every[::-1]
    report = await night.schedules.backfill("hourly", since=since, before=SINCE, order=order, dry_run=True)
    assert (report.count, [each.nominal_at for each in report.occurrences]) == (25, walked[:5] + walked[-5:])
    fewer = await night.schedules.backfill("hourly", since=since + HOUR, before=SINCE, order=order)
    assert (fewer.count, len(fewer.occurrences)) == (24, 24)
    assert fewer.operation is not None
    assert (fewer.operation.expected, fewer.operation.done) == (24, 24)


async def test_an_operation_of_this_kind_is_not_started_by_a_filter(night: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="occurrences of a schedule"):
        await night.operations.start("backfill", RunFilter())


# ── stored calendars ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_backfill_and_history_follow_the_stored_calendars_of_a_schedule(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await made_daily(frozen_app, holidays(1))
    await frozen_app.schedules.pause("daily")
    await clock.advance(5 * DAY)
    await frozen_app.schedules.resume("daily")
    report = await frozen_app.schedules.backfill("daily", since=NEW_YEAR)
    instants = [each.nominal_at for each in report.occurrences]
    assert instants
    assert all(at.date() != (NEW_YEAR + DAY).date() for at in instants), "a holiday"
    assert [each for _, _, each in await outcomes(frozen_app, "daily")] == ["fired"] * len(instants)
