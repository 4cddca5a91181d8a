"""Many schedules are made at once: all of them, or none."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.control import schedule_batch, schedule_batches
from mainspring.control.schedule_texts import _timeless
from mainspring.errors import InvalidInput, InvalidSchedule, QueueNotFound, ScheduleExists
from mainspring.store import notify

from .scheduling import HOUR, LANES, NEW_YEAR, Firing, outcomes, remind, run_ids

if TYPE_CHECKING:
    from mainspring import Job, Mainspring
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def job(frozen_app: Mainspring) -> Job[[int], None]:
    return remind(frozen_app)


def hourly(job: Job[[int], None], numbers: range) -> list[ScheduleRequest]:
    return [job.scheduled(f"remind-{number:05}", "0 * * * *").request(number) for number in numbers]


async def test_they_are_what_each_of_them_would_be_alone(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    options = job.options(priority=2, tags=["a", 'b"'], timeout=30)
    settings = {"zone": "Europe/Berlin", "spread": timedelta(minutes=5), "catch_up": "all"}
    single = await options.scheduled("single", "0 9 * * *", **settings).create(7)  # type: ignore[arg-type]
    plain = await job.scheduled("single-plain", "every hour").create(7)
    (first, second) = await frozen_app.schedules.create_many(
        [
            job.scheduled("plain", "every hour").request(7),
            options.scheduled("batch", "0 9 * * *", **settings).request(7),  # type: ignore[arg-type]
        ]
    )
    for alone, together, schedule_id in ((plain, "plain", first), (single, "batch", second)):
        found = await frozen_app.schedules.find(together)
        assert found.id == schedule_id
        for field in ("job", "version", "when", "payload", "options", "tags", "catch_up", "catch_up_window", "state"):
            assert getattr(found, field) == getattr(alone, field)
        assert (found.next_at, found.created_by, found.is_declared) == (alone.next_at, alone.created_by, False)
        assert found.next_due_at is not None


async def test_all_of_them_fire(
    frozen_app: Mainspring, job: Job[[int], None], clock: FrozenClock, connection: Connection
) -> None:
    await frozen_app.schedules.create_many(hourly(job, range(50)))
    await clock.advance(HOUR)
    await Firing(connection, clock).fire()
    assert len(await run_ids(frozen_app)) == 50
    assert await outcomes(frozen_app, "remind-00049") == [(NEW_YEAR + HOUR, NEW_YEAR + HOUR, "fired")]


async def test_more_than_one_statement_makes_them(
    frozen_app: Mainspring, job: Job[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_batches, "ROWS", 3)
    requests = hourly(job, range(100))
    ids = await frozen_app.schedules.create_many(reversed(requests))
    found = await frozen_app.schedules.list()
    assert [each.id for each in found] == ids[::-1]
    assert [each.payload["customer"] for each in found] == list(range(100))


async def test_one_name_that_is_taken_refuses_them_all(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    await job.scheduled("remind-00017", "every hour").create(1)
    with pytest.raises(ScheduleExists, match="'remind-00017'; none of the batch was made"):
        await frozen_app.schedules.create_many(hourly(job, range(100)))
    assert [each.name for each in await frozen_app.schedules.list()] == ["remind-00017"]


async def test_names_given_twice_are_refused(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    requests = hourly(job, range(9))
    with pytest.raises(InvalidInput, match="'remind-00004' and 4 more; each") as caught:
        await frozen_app.schedules.create_many(requests + requests)
    assert caught.value.code == "names-repeated"
    assert await frozen_app.schedules.list() == []


async def test_what_one_of_them_cannot_be_refuses_them_all(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    over = job.scheduled("over", "2030-01-01T00:00Z").request(1)
    with pytest.raises(InvalidSchedule, match="it is over"):
        await frozen_app.schedules.create_many([*hourly(job, range(9)), over])
    elsewhere = job.options(queue="nowhere").scheduled("elsewhere", "every hour").request(1)
    with pytest.raises(QueueNotFound, match=r"requests\[\d\], 'elsewhere'"):
        await frozen_app.schedules.create_many([*hourly(job, range(9)), elsewhere])
    assert await frozen_app.schedules.list() == []


async def test_there_may_be_none_and_not_too_many(
    frozen_app: Mainspring, job: Job[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await frozen_app.schedules.create_many([]) == []
    monkeypatch.setattr(schedule_batch, "MAX_BATCH", 3)
    with pytest.raises(InvalidInput, match="4 schedules in one batch; at most 3") as caught:
        await frozen_app.schedules.create_many(hourly(job, range(4)))
    assert caught.value.code == "batch-too-large"
    assert len(await frozen_app.schedules.create_many(hourly(job, range(3)))) == 3


async def test_the_audit_names_the_batch_once_and_each_lane_is_woken_once(
    frozen_app: Mainspring, job: Job[[int], None], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[notify.WakeUp] = []
    monkeypatch.setattr(notify, "send", lambda _, wake_ups: woken.extend(wake_ups))
    await frozen_app.schedules.create_many(hourly(job, range(200)))
    assert sorted(woken) == sorted(map(notify.schedule, range(LANES)))
    rows = await connection.fetch("select detail::text from audit where action = 'schedule.create_many'")
    (detail,) = (row["detail"] for row in rows)
    assert '"count": 200' in detail


async def test_schedules_with_one_text_share_what_was_read(job: Job[[int], None]) -> None:
    _timeless.cache_clear()
    requests = hourly(job, range(100))
    assert len({id(each.schedule) for each in requests}) == 1
    assert _timeless.cache_info().misses == 1


async def test_what_is_no_request_is_refused(frozen_app: Mainspring, job: Job[[int], None]) -> None:
    forgotten: Any = job.scheduled("a", "0 * * * *")
    for put in (frozen_app.schedules.create_many, frozen_app.schedules.put_many):
        with pytest.raises(InvalidInput, match=r"requests\[1\] is ") as refused:
            await put([*hourly(job, range(1)), forgotten])
        assert (refused.value.code, refused.value.fields["position"]) == ("invalid-requests", 1)
        assert ".request(" in str(refused.value.hint)
