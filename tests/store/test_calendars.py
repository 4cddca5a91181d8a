"""Stored calendars: made, imported, listed with who uses them, deleted; and named by schedules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import Calendar, Mainspring
from mainspring.errors import (
    CalendarExists,
    CalendarInUse,
    CalendarNotFound,
    CalendarVersionConflict,
    InvalidSchedule,
)
from mainspring.schedule.calendar import NamedCalendar
from mainspring.store import calendars
from mainspring.testing import travel

from .scheduling import (
    DAY,
    HOUR,
    NEW_YEAR,
    NONE_YET,
    Firing,
    holidays,
    made_daily,
    next_at,
    nights,
    outcomes,
    remind,
)

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


# ── keeping them ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_calendar_is_stored_found_and_listed_with_who_uses_it(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app, holidays(1))
    await frozen_app.calendars.create(nights())
    found = await frozen_app.calendars.find("holidays")
    assert found.days == {"dates": ["2031-01-02"], "yearly": ["12-25"]}
    assert (found.version, found.used_by, found.created_by) == (1, ["daily"], "tester")
    assert [(each.name, each.used_by) for each in await frozen_app.calendars.list()] == [
        ("holidays", ["daily"]),
        ("nights", []),
    ]
    assert await frozen_app.calendars.users("holidays") == ["daily"]
    assert await frozen_app.calendars.users("holidays", after="daily") == []


async def test_who_did_what_is_audited(frozen_app: Mainspring, connection: Connection) -> None:
    for calendar in (holidays(1), holidays(1), holidays(2)):
        await frozen_app.calendars.put(calendar)
    await frozen_app.calendars.delete("holidays")
    rows = await connection.fetch("select actor, action, subject from audit")
    assert {tuple(row) for row in rows} == {
        ("tester", f"calendar.{act}", "holidays") for act in ("create", "replace", "delete")
    }
    assert len(rows) == 3


async def test_asked_for_twice_nothing_more_happens(frozen_app: Mainspring) -> None:
    for _ in range(2):
        assert (await frozen_app.calendars.put(holidays(1))).version == 1
    assert (await frozen_app.calendars.put(holidays(2))).version == 2
    with pytest.raises(CalendarExists):
        await frozen_app.calendars.create(holidays(2))
    with pytest.raises(CalendarVersionConflict) as refused:
        await frozen_app.calendars.put(holidays(3), expected_version=1)
    assert refused.value.fields["version"] == 2
    assert (await frozen_app.calendars.put(holidays(3), expected_version=2)).version == 3


async def test_a_calendar_is_imported_from_icalendar(frozen_app: Mainspring) -> None:
    lines = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT",
        "SUMMARY:Epiphany",
        "DTSTART;VALUE=DATE:20310106",
        "END:VEVENT",
        "BEGIN:VEVENT",
        "SUMMARY:Lunch",
        "DTSTART:20310107T120000Z",
        "DTEND:20310107T130000Z",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    imported = await frozen_app.calendars.import_icalendar("off", "\r\n".join(lines).encode())
    assert (imported.events, imported.calendar.days) == (2, {"dates": ["2031-01-06"]})
    assert imported.left_out == ("Lunch: it is not about whole days",)
    with pytest.raises(InvalidSchedule) as refused:
        await frozen_app.calendars.import_icalendar("off", b"no calendar")
    assert refused.value.code in ("invalid-icalendar", "icalendar-without-days")


async def test_a_calendar_in_use_cannot_be_deleted(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app)
    with pytest.raises(CalendarInUse, match="is used by daily") as refused:
        await frozen_app.calendars.delete("holidays")
    assert refused.value.fields["used_by"] == ["daily"]
    await frozen_app.schedules.delete("daily")
    await frozen_app.calendars.delete("holidays")
    assert await frozen_app.calendars.list() == []


async def test_a_deletion_waits_for_whoever_is_about_to_use_the_calendar(
    frozen_app: Mainspring, connection: Connection, database: Database
) -> None:
    await frozen_app.calendars.put(NONE_YET)
    await remind(frozen_app).scheduled("plain", "0 9 * * *").create(1)
    other = await database.connect("other")
    async with other.transaction():
        await calendars.hold(other, ["holidays"], tenant_id=1)
        await other.execute("update schedule set calendars = '{holidays}'")
        deleting = asyncio.ensure_future(frozen_app.calendars.delete("holidays"))
        waiting = "select exists (select from pg_stat_activity where datname = current_database() and wait_event = $1)"
        await until(lambda: connection.fetchval(waiting, "transactionid"))
    with pytest.raises(CalendarInUse, match="is used by plain"):
        await deleting
    await other.close()


async def test_what_is_not_there_has_a_near_name(frozen_app: Mainspring) -> None:
    await frozen_app.calendars.put(NONE_YET)
    for act in (frozen_app.calendars.find, frozen_app.calendars.delete, frozen_app.calendars.users):
        with pytest.raises(CalendarNotFound) as missing:
            await act("holiday")
        assert missing.value.hint == "Did you mean 'holidays'?"
    with pytest.raises(InvalidSchedule) as unknown:
        await remind(frozen_app).scheduled("daily", "0 9 * * * not=holiday").create(1)
    assert (unknown.value.code, unknown.value.hint) == ("unknown-calendar", "Did you mean 'holidays'?")


@pytest.mark.parametrize(
    "calendar", [Calendar(name="x"), NamedCalendar(name="x"), "x"], ids=["of all time", "only a name", "none at all"]
)
async def test_what_is_no_calendar_is_refused(frozen_app: Mainspring, calendar: Any) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        await frozen_app.calendars.put(calendar)
    assert refused.value.code == "invalid-calendar"


# ── in schedules ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_follows_the_calendar_it_names(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await made_daily(frozen_app, holidays(0, 2))
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR
    assert '"stored":"holidays"' in await connection.fetchval("select spec from schedule")
    for _ in range(4):
        await clock.advance(DAY)
        await firing.fire()
    fired = [at for at, _, what in await outcomes(frozen_app, "daily") if what == "fired"]
    assert fired == [NEW_YEAR + day * DAY + 9 * HOUR for day in (1, 3)]
    preview = await frozen_app.schedules.preview("daily", count=1)
    assert [entry.nominal_at for entry in preview.entries] == [NEW_YEAR + 4 * DAY + 9 * HOUR]


async def test_a_calendar_that_is_given_goes_before_a_stored_one(frozen_app: Mainspring) -> None:
    await frozen_app.calendars.put(NONE_YET)
    given = {"holidays": holidays(0)}
    made = await remind(frozen_app).scheduled("daily", "0 9 * * * not=holidays", calendars=given).create(1)
    assert made.next_at == NEW_YEAR + DAY + 9 * HOUR
    assert await frozen_app.calendars.users("holidays") == []


async def test_a_schedule_that_its_calendars_leave_nothing_of_is_refused(frozen_app: Mainspring) -> None:
    await frozen_app.calendars.put(Calendar(name="always", weekdays=frozenset(range(7))))
    with pytest.raises(InvalidSchedule) as refused:
        await remind(frozen_app).scheduled("daily", "0 9 * * * not=always").create(1)
    assert refused.value.code == "never-fires"


async def test_a_declared_schedule_uses_a_stored_calendar(frozen_app: Mainspring) -> None:
    @frozen_app.job(schedule="0 9 * * * not=holidays")
    async def report() -> None: ...

    with pytest.raises(InvalidSchedule) as refused:
        await frozen_app.schedules.apply()
    assert refused.value.code == "unknown-calendar"
    await frozen_app.calendars.put(holidays(0))
    (added,) = await frozen_app.schedules.apply()
    assert (added.difference.value, await next_at(frozen_app, "report")) == ("added", NEW_YEAR + DAY + 9 * HOUR)
    await frozen_app.calendars.put(holidays(0, 1))
    (unchanged,) = await frozen_app.schedules.apply()
    assert unchanged.difference.value == "unchanged", "an edit of the calendar is none of the schedule"


async def test_a_rollback_follows_the_calendar_as_it_is_now(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app)
    await frozen_app.schedules.put("daily", "remind", "0 10 * * *", {"customer": 1})
    assert await frozen_app.calendars.users("holidays") == []
    await frozen_app.calendars.put(holidays(0))
    await frozen_app.schedules.rollback("daily", to=1)
    assert await next_at(frozen_app) == NEW_YEAR + DAY + 9 * HOUR
    assert await frozen_app.calendars.users("holidays") == ["daily"]


async def test_many_schedules_that_use_a_calendar_are_made_at_once(
    frozen_app: Mainspring, connection: Connection
) -> None:
    await frozen_app.calendars.put(holidays(0))
    job = remind(frozen_app)
    texts = ["0 9 * * * not=holidays", "0 9 * * *"]
    requests = [job.scheduled(f"daily-{number}", texts[number % 2]).request(number) for number in range(10)]
    await frozen_app.schedules.create_many(requests)
    assert await frozen_app.calendars.users("holidays") == [f"daily-{number}" for number in range(0, 10, 2)]
    assert await next_at(frozen_app, "daily-0") == NEW_YEAR + DAY + 9 * HOUR
    assert await next_at(frozen_app, "daily-1") == NEW_YEAR + 9 * HOUR
    stale = "select count(*) from cursor join schedule on id = schedule_id where (calendars is null) <> ($1 is null)"
    assert await connection.fetchval(stale.replace("$1", "calendars_revision")) == 0
    unknown = job.scheduled("daily-10", "0 9 * * * not=holiday").request(10)
    with pytest.raises(InvalidSchedule) as refused:
        await frozen_app.schedules.create_many([unknown])
    assert refused.value.hint == "Did you mean 'holidays'?"


async def test_an_update_leaves_stored_calendars_what_they_are(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app, holidays(0))
    updated = await frozen_app.schedules.update("daily", when="0 10 * * *")
    assert (updated.when, updated.next_at) == ("0 10 * * * not=holidays", NEW_YEAR + DAY + 10 * HOUR)
    updated = await frozen_app.schedules.update("daily", zone="Europe/Berlin")
    assert updated.next_at == NEW_YEAR + DAY + 9 * HOUR
    given = await frozen_app.schedules.update("daily", calendars={"holidays": NONE_YET})
    assert given.next_at == NEW_YEAR + 9 * HOUR
    assert await frozen_app.calendars.users("holidays") == []


async def test_a_forecast_knows_what_is_in_the_calendars(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app, holidays(0))
    assert (await frozen_app.schedules.forecast(hours=24)).total == 0
    assert (await frozen_app.schedules.forecast(hours=48)).total == 1
    assert await frozen_app.schedules.added_load("other", "0 9 * * * not=holidays") is None
    with pytest.raises(InvalidSchedule, match="is not known"):
        await frozen_app.schedules.added_load("other", "0 9 * * * not=holiday")


async def test_a_test_that_travels_follows_an_edit(frozen_app: Mainspring) -> None:
    await made_daily(frozen_app, holidays(0, 1))
    await frozen_app.calendars.put(holidays(1))
    fired = await travel(frozen_app, 3 * DAY, run=False)
    assert [each.nominal_at for each in fired] == [NEW_YEAR + day * DAY + 9 * HOUR for day in (0, 2)]
