"""Many schedules are made what is asked for at once: those that are so already are left alone, or nothing is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.control import schedule_batch, schedule_batches
from mainspring.errors import InvalidInput, InvalidSchedule, QueueNotFound
from mainspring.model.scheduling import PutReport
from mainspring.store import schedule_replacing, schedules

from .callers import caller, until_someone_waits_for_a_lock
from .scheduling import HOUR, MINUTE, NEW_YEAR, Firing, holidays, outcomes, remind, run_ids

if TYPE_CHECKING:
    from mainspring import Job, Mainspring
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    Remind = Job[[int], None]


@pytest.fixture
def job(frozen_app: Mainspring) -> Remind:
    return remind(frozen_app)


def hourly(job: Remind, numbers: range, minute: int = 0) -> list[ScheduleRequest]:
    return [job.scheduled(f"remind-{number:05}", f"{minute} * * * *").request(number) for number in numbers]


async def versions(app: Mainspring) -> list[int]:
    return [each.version for each in await app.schedules.list()]


async def orphans(connection: Connection) -> int:
    query = "select count(*) from cursor where schedule_id not in (select id from schedule)"
    return int(await connection.fetchval(query))


async def test_what_is_new_is_made_what_differs_is_changed_and_the_rest_is_left_alone(
    frozen_app: Mainspring, job: Remind, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_batches, "ROWS", 3)
    assert await frozen_app.schedules.put_many(hourly(job, range(40))) == PutReport(created=40)
    wanted = [*hourly(job, range(38)), *hourly(job, range(38, 45), minute=30)]
    report = await frozen_app.schedules.put_many(reversed(wanted))
    assert report == PutReport(created=5, changed=2, unchanged=38)
    found = await frozen_app.schedules.list()
    assert [each.version for each in found] == [1] * 38 + [2] * 2 + [1] * 5
    assert [each.payload["customer"] for each in found] == list(range(45))
    assert [each.next_at for each in found] == [NEW_YEAR + HOUR] * 38 + [NEW_YEAR + HOUR / 2] * 7

    audited = await connection.fetchval("select count(*) from audit")
    assert await frozen_app.schedules.put_many(wanted) == PutReport(unchanged=45), "the same again does nothing"
    assert await connection.fetchval("select count(*) from audit") == audited
    assert await frozen_app.schedules.put_many([]) == PutReport()


async def test_they_are_what_put_makes_of_each(frozen_app: Mainspring, job: Remind) -> None:
    options = job.options(priority=2, tags=["a", 'b"'], timeout=30)
    request = options.scheduled("batch", "0 9 * * *", zone="Europe/Berlin", catch_up="all").request(7)
    await frozen_app.schedules.put_many([request])
    put = await options.scheduled("batch", "0 9 * * *", zone="Europe/Berlin", catch_up="all").put(7)
    assert (put.version, put.tags, put.options["priority"]) == (1, ["a", 'b"'], 2)
    await options.scheduled("batch", "0 9 * * *").put(7)
    assert await frozen_app.schedules.put_many([request]) == PutReport(changed=1)


async def test_nothing_is_locked_for_what_is_new_or_unchanged(
    frozen_app: Mainspring, job: Remind, monkeypatch: pytest.MonkeyPatch
) -> None:
    await frozen_app.schedules.put_many(hourly(job, range(20)))

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("one by one")

    monkeypatch.setattr(schedules, "lock", refuse)
    monkeypatch.setattr(schedule_replacing, "lock_many", refuse)
    report = await frozen_app.schedules.put_many(hourly(job, range(30)))
    assert report == PutReport(created=10, unchanged=20)


async def test_what_is_staged_is_taken_back_and_what_is_overdue_is_decided_first(
    frozen_app: Mainspring, job: Remind, clock: FrozenClock, connection: Connection
) -> None:
    await frozen_app.schedules.put_many(hourly(job, range(3)))
    await frozen_app.schedules.pause("remind-00002")
    firing = Firing(connection, clock)
    await firing.fire(horizon=3600.0)  # 01:00, ahead of its time
    assert len(await run_ids(frozen_app)) == 2
    wanted = [*hourly(job, range(1)), *hourly(job, range(1, 3), minute=30)]
    assert await frozen_app.schedules.put_many(wanted) == PutReport(changed=2, unchanged=1)
    assert len(await run_ids(frozen_app)) == 1, "what was staged by the old version was taken back"

    await clock.advance(HOUR / 2)  # nobody fires
    assert (await frozen_app.schedules.put_many(hourly(job, range(3)))).changed == 2
    half = NEW_YEAR + HOUR / 2
    assert await outcomes(frozen_app, "remind-00001") == [(half, half, "fired")], "by what was in force then"
    assert (await frozen_app.schedules.find("remind-00002")).state == "paused"


STAGED = {"staged": "30 2 * * *", "over": "2031-01-01T00:10:00Z"}  # what each is before, and fired a little ahead
BEFORE = {
    "plain": "0 9 * * *",
    "overdue": "30 0 * * *",
    "overdue-twice": "20,40 0 * * *",
    "paused": "30 0 * * *",
    "in-calendar": "0 9 * * * not=holidays",
    "to-calendar": "0 9 * * *",
    "unchanged": "0 2 * * *",
}
KINDS = [*STAGED, *BEFORE]


async def story(app: Mainspring, connection: Connection, name: str) -> list[object]:
    """All that is there of a schedule, besides what tells it from another."""
    found = await app.schedules.find(name)
    audit = "select action, actor, detail->>'job', detail->>'when' from audit where subject = $1 order by at, action"
    runs = "select due_at from ready where headers->>'schedule' = $1 union all"
    runs += " select due_at from later where headers->>'schedule' = $1 order by 1"
    cursor = "select nominal_at, due_at, tzdata, calendars_revision from cursor where schedule_id = $1"
    return [
        (found.version, found.state, found.next_at, found.payload, found.when),
        await outcomes(app, name),
        [(each.version, each.when, each.payload) for each in await app.schedules.versions(name)],
        [tuple(row) for row in await connection.fetch(audit, str(found.id))],
        [tuple(row) for row in await connection.fetch(runs, name)],
        [tuple(row) for row in await connection.fetch(cursor, found.id)],
    ]


async def test_by_sets_they_become_what_put_makes_of_each(
    frozen_app: Mainspring, job: Remind, clock: FrozenClock, connection: Connection
) -> None:
    """Whatever is staged, overdue, paused, over or in a calendar: ledger, versions, audit and cursors are the same."""
    app = frozen_app
    await app.calendars.put(holidays())
    for group, horizon in ((STAGED, 10_000.0), (BEFORE, 0.0)):
        for kind, when in group.items():
            await job.scheduled(f"one-{kind}", when).create(1)
            await job.scheduled(f"many-{kind}", when).create(1)
        await Firing(connection, clock).fire(horizon)
    for who in ("one", "many"):
        await app.schedules.pause(f"{who}-paused")
    await clock.advance(HOUR - MINUTE)  # nobody fires

    wanted = dict.fromkeys(KINDS, "0 2 * * *") | {"to-calendar": "0 2 * * * not=holidays"}
    for kind in KINDS:
        await job.scheduled(f"one-{kind}", wanted[kind]).put(1)
    report = await app.schedules.put_many([job.scheduled(f"many-{kind}", wanted[kind]).request(1) for kind in KINDS])

    assert report == PutReport(changed=len(KINDS) - 1, unchanged=1)
    for kind in KINDS:
        assert await story(app, connection, f"many-{kind}") == await story(app, connection, f"one-{kind}"), kind


async def test_those_of_which_nothing_is_left_to_decide_are_replaced_by_sets(
    frozen_app: Mainspring, job: Remind, monkeypatch: pytest.MonkeyPatch
) -> None:
    await frozen_app.schedules.put_many(hourly(job, range(20)))

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("one by one")

    monkeypatch.setattr(schedules, "lock", refuse)
    assert await frozen_app.schedules.put_many(hourly(job, range(20), minute=30)) == PutReport(changed=20)
    assert await versions(frozen_app) == [2] * 20


async def test_one_that_is_over_is_left_alone_if_it_is_the_same(
    frozen_app: Mainspring, job: Remind, clock: FrozenClock, connection: Connection
) -> None:
    once = job.scheduled("once", "2031-01-01T01:00Z")
    await once.put(1)
    await clock.advance(HOUR)
    await Firing(connection, clock).fire()
    assert (await once.put(1)).state == "done"
    assert await frozen_app.schedules.put_many([once.request(1)]) == PutReport(unchanged=1)
    with pytest.raises(InvalidSchedule, match="it is over"):
        await frozen_app.schedules.put_many([once.request(2)])


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_there", [True, False], ids=["one that differs", "one that is new"])
async def test_what_one_of_them_cannot_be_is_said_with_its_position_and_nothing_is_done(
    frozen_app: Mainspring, job: Remind, connection: Connection, is_there: bool
) -> None:
    await frozen_app.schedules.put_many(hourly(job, range(3)))
    if is_there:
        await job.scheduled("over", "0 * * * *").put(1)
    over = job.scheduled("over", "2030-01-01T00:00Z").request(1)
    wanted = [*hourly(job, range(5), minute=30), over, *hourly(job, range(7, 9))]
    with pytest.raises(InvalidSchedule, match=r"requests\[5\], 'over': .* it is over. Nothing of the batch") as caught:
        await frozen_app.schedules.put_many(wanted)
    assert (caught.value.code, caught.value.fields["position"]) == ("schedule-over", 5)
    assert await versions(frozen_app) == [1] * (4 if is_there else 3)
    assert await orphans(connection) == 0


async def test_one_that_its_stored_calendars_leave_nothing_of_says_so(frozen_app: Mainspring, job: Remind) -> None:
    await frozen_app.calendars.put(holidays(1))
    never = job.scheduled("never", "0 9 26 12 * only=holidays").request(1)
    for act in (frozen_app.schedules.put_many, frozen_app.schedules.create_many):
        with pytest.raises(InvalidSchedule, match=r"requests\[2\], 'never': The schedule never fires") as caught:
            await act([*hourly(job, range(2)), never])
        assert caught.value.code == "never-fires"
    assert await frozen_app.schedules.list() == []


async def test_names_given_twice_too_many_and_unknown_queues_are_refused(
    frozen_app: Mainspring, job: Remind, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = hourly(job, range(4))
    with pytest.raises(InvalidInput, match="each schedule of a batch must have a name of its own"):
        await frozen_app.schedules.put_many([*requests, requests[2]])
    elsewhere = job.options(queue="nowhere").scheduled("elsewhere", "every hour").request(1)
    with pytest.raises(QueueNotFound, match=r"requests\[\d\], 'elsewhere'"):
        await frozen_app.schedules.put_many([*requests, elsewhere])
    monkeypatch.setattr(schedule_batch, "MAX_BATCH", 3)
    with pytest.raises(InvalidInput, match="4 schedules in one batch; at most 3"):
        await frozen_app.schedules.put_many(requests)
    assert await frozen_app.schedules.list() == []


# ── beside others ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_somebody_else_makes_meanwhile_is_compared_again(
    frozen_app: Mainspring, job: Remind, url: str, connection: Connection
) -> None:
    async with caller("asyncpg", url) as one:
        first = [*hourly(job, range(3)), *hourly(job, range(3, 5), minute=30)]
        await frozen_app.schedules.put_many(first, connection=one.connection)
        putting = asyncio.create_task(frozen_app.schedules.put_many(hourly(job, range(6))))
        await until_someone_waits_for_a_lock(one.connection)
        await one.commit()
    assert await putting == PutReport(created=1, changed=2, unchanged=3)
    assert await versions(frozen_app) == [1, 1, 1, 2, 2, 1]
    assert await orphans(connection) == 0


async def test_batches_with_names_in_common_do_not_lock_each_other_out(frozen_app: Mainspring, job: Remind) -> None:
    await frozen_app.schedules.put_many(hourly(job, range(0, 60, 2)))
    numbers = (range(40), range(10, 50), range(59, -1, -1))
    batches = [hourly(job, each, minute) for minute, each in enumerate(numbers, start=1)]
    reports = await asyncio.gather(*map(frozen_app.schedules.put_many, batches))
    assert [each.unchanged for each in reports] == [0, 0, 0]
    assert sum(each.created for each in reports) == 30
    assert len(await frozen_app.schedules.list()) == 60


@pytest.mark.parametrize("verb", ["create_many", "put_many"])
async def test_an_unknown_calendar_or_job_is_refused_with_its_position(
    frozen_app: Mainspring, job: Remind, verb: str
) -> None:
    many = getattr(frozen_app.schedules, verb)
    festive = job.scheduled("festive", "0 9 * * * not=holidays").request(1)
    with pytest.raises(InvalidSchedule, match=r"requests\[2\], 'festive'") as caught:
        await many([*hourly(job, range(2)), festive])

    assert (caught.value.code, caught.value.fields["position"]) == ("unknown-calendar", 2)
    assert await frozen_app.schedules.list() == []
