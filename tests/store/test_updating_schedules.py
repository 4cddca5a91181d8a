"""Single fields of a schedule are changed, and the rest stays."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.control.schedules import Schedules
from mainspring.errors import InvalidArguments, InvalidInput, InvalidSchedule, ScheduleNotFound, ScheduleVersionConflict
from mainspring.model.options import SubmitOptions
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.deciding import CatchUp
from mainspring.schedule.schedule import Schedule

from .scheduling import HOUR, NEW_YEAR, Firing, outcomes, remind

if TYPE_CHECKING:
    from mainspring import Mainspring, ScheduleSummary
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

HOLIDAYS = Calendar(name="holidays", yearly=frozenset({(1, 1)}))


@pytest.fixture
async def acme(frozen_app: Mainspring) -> ScheduleSummary:
    """A schedule of which everything is said that can be said."""
    return await (
        remind(frozen_app)
        .options(priority=2, tags=["vip"], timeout=30, max_age=60)
        .scheduled(
            "acme",
            "0 9 * * * not=holidays",
            zone="Europe/Berlin",
            spread=timedelta(minutes=5),
            ends_at=NEW_YEAR + timedelta(days=300),
            calendars={"holidays": HOLIDAYS},
            catch_up=CatchUp(rule="all", window=timedelta(days=2)),  # type: ignore[arg-type]
        )
        .create(1)
    )


def told(schedule: ScheduleSummary) -> dict[str, Any]:
    """What a schedule is, besides who changed it when."""
    fields = ("when", "payload", "options", "tags", "catch_up", "catch_up_window", "state", "is_declared")
    return {field: getattr(schedule, field) for field in fields}


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        ({"when": "0 18 * * *"}, {"when": "0 18 * * * zone=Europe/Berlin"}),
        ({"zone": "Asia/Tokyo"}, {"when": "0 9 * * * zone=Asia/Tokyo"}),
        ({"spread": None}, {"when": "0 9 * * * zone=Europe/Berlin"}),
        ({"arguments": {"customer": 7}}, {"payload": {"customer": 7}}),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}),
        ({"tags": None}, {"tags": []}),
        ({"priority": 4}, {"options": {"priority": 4, "max_age": 60.0, "overrides": {"timeout": "PT30S"}}}),
        ({"timeout": None, "max_age": None}, {"options": {"priority": 2}}),
        ({"catch_up": "none"}, {"catch_up": "none"}),
        ({"catch_up": CatchUp()}, {"catch_up": "latest", "catch_up_window": timedelta(days=1)}),
    ],
)
async def test_what_is_given_changes_and_the_rest_stays(
    frozen_app: Mainspring, acme: ScheduleSummary, changes: dict[str, Any], differing: dict[str, Any]
) -> None:
    updated = await frozen_app.schedules.update("acme", **changes)

    before, after = told(acme), told(updated)
    assert {field for field in before if before[field] != after[field]} == set(differing)
    when = differing.pop("when", None)
    assert {field: after[field] for field in differing} == differing
    if when is not None:
        spread = "" if "spread" in changes else " spread=PT5M"
        assert after["when"] == f"{when} ends=2031-10-28T00:00:00Z{spread} not=holidays"
    assert (updated.version, updated.id) == (2, acme.id)


async def test_a_whole_schedule_may_be_given(frozen_app: Mainspring, acme: ScheduleSummary) -> None:
    assert (await frozen_app.schedules.update("acme", when=Schedule.parse("0 7 * * *"))).when == "0 7 * * *"
    with pytest.raises(InvalidSchedule, match="zone is given beside a Schedule"):
        await frozen_app.schedules.update("acme", when=Schedule.parse("0 7 * * *"), zone="Asia/Tokyo")


async def test_a_calendar_is_replaced_by_its_name(frozen_app: Mainspring, acme: ScheduleSummary) -> None:
    closed = Calendar(name="holidays", yearly=frozenset({(1, 1), (1, 2)}))
    updated = await frozen_app.schedules.update("acme", calendars={"holidays": closed})
    assert updated.when == acme.when
    assert (acme.next_at, updated.next_at) == (NEW_YEAR + 32 * HOUR, NEW_YEAR + 56 * HOUR)


@pytest.mark.parametrize("changes", [{"when": "0  9 * * *"}, {"tags": ["vip"], "priority": 2}, {"overlap": "allow"}])
async def test_what_stays_the_same_makes_no_new_version(
    frozen_app: Mainspring, acme: ScheduleSummary, changes: dict[str, Any]
) -> None:
    assert await frozen_app.schedules.update("acme", **changes) == acme


async def test_a_declared_schedule_belongs_to_whoever_changes_it(frozen_app: Mainspring) -> None:
    frozen_app.job(name="report", schedule="0 9 * * *")(_report)
    await frozen_app.schedules.apply()
    assert (await frozen_app.schedules.update("report", when="0 9 * * *")).is_declared
    assert not (await frozen_app.schedules.update("report", when="0 8 * * *")).is_declared
    assert [each.difference for each in await frozen_app.schedules.apply()] == ["overridden"]


async def _report() -> None: ...


async def test_what_was_due_before_is_decided_by_what_was_before(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR)
    await frozen_app.schedules.update("hourly", when="30 * * * *")
    await clock.advance(HOUR)
    await Firing(connection, clock).fire()
    assert await outcomes(frozen_app, "hourly") == [
        (NEW_YEAR + HOUR, NEW_YEAR + HOUR, "fired"),
        (NEW_YEAR + 1.5 * HOUR, NEW_YEAR + 1.5 * HOUR, "fired"),
    ]


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({}, InvalidInput, "nothing-to-change"),
        ({"when": "every blue moon"}, InvalidSchedule, "invalid-english"),
        ({"when": "2030-01-01T00:00Z"}, InvalidSchedule, "never-fires"),
        ({"zone": "Mars"}, InvalidSchedule, "unknown-zone"),
        ({"max_runs": 3}, InvalidSchedule, "max-runs-needs-start"),
        ({"ends_at": NEW_YEAR - HOUR}, InvalidSchedule, "schedule-over"),
        ({"catch_up": "some"}, InvalidSchedule, "invalid-catch-up"),
        ({"overlap": "never"}, InvalidSchedule, "invalid-overlap"),
        ({"pause_after_failures": 0}, InvalidSchedule, "invalid-pause-after-failures"),
        ({"priority": 10}, InvalidInput, "invalid-priority"),
        ({"key": "x"}, InvalidInput, "not-for-schedules"),
        ({"arguments": {"customer": "x"}}, InvalidArguments, "invalid-arguments"),
        ({"expected_version": 2, "tags": ["b"]}, ScheduleVersionConflict, "schedule-version-conflict"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_changes(
    frozen_app: Mainspring, acme: ScheduleSummary, changes: dict[str, Any], error: type[InvalidInput], code: str
) -> None:
    with pytest.raises(error) as caught:
        await frozen_app.schedules.update("acme", **changes)
    assert caught.value.code == code
    assert await frozen_app.schedules.find("acme") == acme


async def test_there_must_be_something_to_change(frozen_app: Mainspring) -> None:
    with pytest.raises(ScheduleNotFound):
        await frozen_app.schedules.update("acme", tags=["b"])
    with pytest.raises(TypeError, match="colour"):
        await frozen_app.schedules.update("acme", colour="red")  # type: ignore[call-arg]


async def test_two_who_change_different_fields_both_succeed(
    frozen_app: Mainspring, acme: ScheduleSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read version 1 before either has written."""
    put, have_read = Schedules._put, asyncio.Barrier(2)

    async def put_together(*args: Any) -> Any:
        if args[4] == 1:
            await have_read.wait()
        return await put(*args)

    monkeypatch.setattr(Schedules, "_put", put_together)
    await asyncio.gather(
        frozen_app.schedules.update("acme", tags=["b"]), frozen_app.schedules.update("acme", arguments={"customer": 9})
    )
    found = await frozen_app.schedules.find("acme")
    assert (found.tags, found.payload, found.version) == (["b"], {"customer": 9}, 3)


async def test_one_that_was_made_again_meanwhile_is_read_again(
    frozen_app: Mainspring, acme: ScheduleSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, reads = Schedules._put, []

    async def replaced_meanwhile(*args: Any) -> Any:
        reads.append(args)
        if len(reads) == 1:
            await frozen_app.schedules.delete("acme")
            options = SubmitOptions.checked(tags=["new"])
            await frozen_app.schedules.create("acme", "remind", "every hour", {"customer": 5}, options=options)
        return await put(*args)

    monkeypatch.setattr(Schedules, "_put", replaced_meanwhile)
    updated = await frozen_app.schedules.update("acme", arguments={"customer": 9})
    assert (updated.tags, updated.payload, updated.version) == (["new"], {"customer": 9}, 2)


async def test_other_calendars_take_the_place_of_those_there_were(
    frozen_app: Mainspring, acme: ScheduleSummary
) -> None:
    await frozen_app.calendars.put(Calendar(name="freeze", yearly=frozenset({(1, 2)})))

    by_name = await frozen_app.schedules.update("acme", calendars=["freeze"])
    none = await frozen_app.schedules.update("acme", calendars=None)

    assert by_name.when.endswith(" not=freeze")
    assert "holidays" not in by_name.when
    assert "not=" not in none.when


async def test_a_calendar_that_the_schedule_does_not_name_is_refused(
    frozen_app: Mainspring, acme: ScheduleSummary
) -> None:
    with pytest.raises(InvalidSchedule, match="which the text does not name"):
        await frozen_app.schedules.update("acme", calendars={"freeze": HOLIDAYS})
