"""What is given beside the text of a schedule is checked, and has an effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import Calendar, Mainspring
from mainspring.control.schedule_texts import read_declared, read_schedule
from mainspring.errors import InvalidInput, InvalidSchedule
from mainspring.schedule.schedule import Schedule

NOW = datetime(2026, 11, 16, 10, 30, 17, 123456, tzinfo=UTC)
HOLIDAYS = Calendar(name="holidays", yearly=frozenset({(1, 1)}))


def said(text: Any, **settings: Any) -> Schedule:
    return read_schedule(text, now=NOW, **settings).schedule


@pytest.mark.parametrize("names", [["holidays", "freeze"], ("holidays", "freeze")])
def test_names_of_stored_calendars_are_left_out(names: Any) -> None:
    schedule = said("@daily", calendars=names)

    assert schedule == said("@daily not=holidays not=freeze")
    assert schedule.stored_calendars == ("freeze", "holidays")


def test_a_calendar_that_the_text_leaves_out_is_left_out_once() -> None:
    assert said("@daily not=holidays", calendars=["holidays"]) == said("@daily not=holidays")


def test_a_calendar_that_is_given_belongs_to_the_schedule() -> None:
    (use,) = said("@daily not=holidays", calendars={"holidays": HOLIDAYS}).calendars

    assert (use.calendar, use.is_stored) == (HOLIDAYS, False)


def test_a_calendar_that_the_text_does_not_name_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="which the text does not name") as refused:
        said("@daily", calendars={"holidays": HOLIDAYS})

    assert refused.value.code == "calendar-not-used"
    assert refused.value.fields["field"] == "calendars"
    assert "not=holidays" in str(refused.value.hint)


@pytest.mark.parametrize("calendars", [HOLIDAYS, "holidays", 5, {"holidays": 5}, {5: HOLIDAYS}, [5], [HOLIDAYS]])
@pytest.mark.parametrize("text", ["@daily", "@daily not=holidays"])
def test_what_is_no_calendars_is_refused(text: str, calendars: Any) -> None:
    with pytest.raises(InvalidSchedule, match=r"^calendars is ") as refused:
        said(text, calendars=calendars)

    assert (refused.value.code, refused.value.fields["field"]) == ("invalid-calendars", "calendars")
    assert str(refused.value.fields["rule"]).startswith("must be a ")


def test_a_name_that_calendars_cannot_have_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="must be 1 to 100 letters"):
        said("@daily", calendars=["bank holidays"])


@pytest.mark.parametrize("calendars", [["holidays"], HOLIDAYS, {"holidays": 5}])
def test_the_mathematics_refuses_what_is_no_calendars(calendars: Any) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse("@daily not=holidays", calendars=calendars)

    assert refused.value.code == "invalid-calendars"


def test_calendars_of_the_code_are_checked() -> None:
    app = Mainspring()

    @app.job(schedule="@daily", calendars=["holidays"])
    def nightly() -> None: ...

    assert app.declared[0].schedule.text == "0 0 * * * not=holidays"
    with pytest.raises(InvalidSchedule, match="calendars is"):
        app.job(name="other", schedule="@daily", calendars=5)(lambda: None)  # type: ignore[call-overload]


def test_what_is_no_text_says_how_to_write_one() -> None:
    with pytest.raises(InvalidSchedule, match="must be a text") as refused:
        said(datetime(2031, 5, 1, 9, tzinfo=UTC))

    assert "2031-05-01T09:00:00+00:00" in str(refused.value.hint)


COUNTED = [
    ("every 1 hour 30 minutes", "PT1H30M/2026-11-16T10:30:00Z"),
    ("every 45 minutes", "PT45M/2026-11-16T10:30:00Z"),
    ("every other tuesday at noon", "DTSTART:20261117T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
    ("every hour, 10 times", "0 * * * * starts=2026-11-16T10:30:17Z runs=10"),
    ("every hour until 1 march", "0 * * * * ends=2027-03-02T00:00:00Z"),
    ("tomorrow at 9am", "2026-11-17T09:00:00Z"),
    ("in 2 hours", "2026-11-16T12:30:17Z"),
]


@pytest.mark.parametrize(("text", "means"), COUNTED)
def test_what_counts_from_now_counts_from_when_it_is_read(text: str, means: str) -> None:
    read = read_schedule(text, now=NOW)

    assert (read.schedule.text, read.read_at) == (means, NOW.replace(microsecond=0))
    assert read.said is not None
    assert read.said.at(NOW.replace(microsecond=0)) == read.schedule


def test_what_does_not_count_from_now_does_not_say_when_it_was_read() -> None:
    assert read_schedule("every day at 09:00 until 2027-03-01", now=NOW)[1:] == (None, None)


def test_what_is_not_understood_is_refused_as_it_would_be_at_that_time() -> None:
    with pytest.raises(InvalidSchedule, match="2026-11-20 or 2026-11-27"):
        said("next friday at 9am")


@pytest.mark.parametrize("text", ["every 1 hour 30 minutes", "every 45 minutes", "every 5 hours"])
def test_in_code_steps_count_from_where_intervals_do(text: str) -> None:
    schedule = read_declared(text, now=NOW)

    assert schedule == read_declared(text, now=NOW.replace(year=2027, minute=1))
    span = Schedule.parse(schedule.text.partition("/")[0])
    assert schedule.next_after(NOW) == span.next_after(NOW)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("every other tuesday at noon", "every other tuesday at noon starting 2026-11-17"),
        ("every hour, 10 times", "0 * * * * starts=2026-11-16T10:30:17Z runs=10"),
        ("every hour until 1 march", "0 * * * * ends=2027-03-02T00:00:00Z"),
        ("tomorrow at 9am", "2026-11-17T09:00:00Z"),
        ("every 45 minutes starting tomorrow", "PT45M/2026-11-17T00:00:00 starts=2026-11-17T00:00:00Z"),
        ("every 50 minutes and every other tuesday at noon", "PT50M/2026-11-16T10:30:00Z"),
    ],
)
def test_in_code_what_else_counts_from_now_is_refused_with_what_it_means_today(text: str, instead: str) -> None:
    with pytest.raises(InvalidSchedule, match="counts from now") as refused:
        read_declared(text, now=NOW)

    assert refused.value.code == "counts-from-now"
    offered = str(refused.value.hint).split("'")[1]
    assert instead in offered
    assert read_declared(offered, now=NOW.replace(year=2027)).next_after(NOW) == said(text).next_after(NOW)


def test_in_code_everything_may_count_from_where_it_starts() -> None:
    starts_at = datetime(2026, 1, 1, tzinfo=UTC)

    schedule = read_declared("every other tuesday at noon", now=NOW, starts_at=starts_at)

    assert schedule.when.text == "DTSTART:20260106T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"


def test_thousands_that_count_from_now_are_read_once() -> None:
    first = read_schedule("every 7 hours", now=NOW)

    assert read_schedule("every 7 hours", now=NOW.replace(microsecond=9)).schedule is first.schedule


@pytest.mark.parametrize(
    ("keyword", "hint"), [("retry", "job.options(retry=…).scheduled(…)"), ("zoned", "Did you mean 'zone'?")]
)
def test_a_keyword_that_schedules_do_not_have_is_refused_at_once(keyword: str, hint: str) -> None:
    app = Mainspring()

    @app.job
    def remind() -> None: ...

    with pytest.raises(InvalidInput, match=f"no keyword '{keyword}'") as refused:
        remind.scheduled("x", "@daily", **{keyword: 3})  # type: ignore[arg-type]

    assert (refused.value.code, refused.value.fields["field"]) == ("unknown-option", keyword)
    assert hint in str(refused.value.hint)


def test_a_spread_above_a_day_is_refused_however_the_schedule_was_made() -> None:
    daily = said("@daily")

    with pytest.raises(InvalidSchedule) as refused:
        said(replace(daily, spread=timedelta(days=300)))

    assert refused.value.code == "invalid-spread"
    assert said(replace(daily, spread=timedelta(days=1))).spread == timedelta(days=1)


@pytest.mark.parametrize("spread", ["soon", "P", "PT0.0.1S"])
def test_a_spread_that_is_none_is_named_as_such(spread: str) -> None:
    for text, settings in (("@daily", {"spread": spread}), (f"@daily spread={spread}", {})):
        with pytest.raises(InvalidSchedule, match=r"^spread is ") as refused:
            said(text, **settings)
        assert (refused.value.code, refused.value.fields["field"]) == ("invalid-interval", "spread")


def test_instants_in_messages_are_as_people_write_them() -> None:
    with pytest.raises(InvalidSchedule, match="starts_at is 0001-01-01T00:00:00"):
        said("@daily", starts_at=datetime(1, 1, 1))  # noqa: DTZ001
