"""What is given beside the text of a schedule is checked, and has an effect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring import Calendar, Mainspring
from mainspring.control.schedule_texts import read_schedule
from mainspring.errors import InvalidSchedule
from mainspring.schedule.schedule import Schedule

HOLIDAYS = Calendar(name="holidays", yearly=frozenset({(1, 1)}))


@pytest.mark.parametrize("names", [["holidays", "freeze"], ("holidays", "freeze")])
def test_names_of_stored_calendars_are_left_out(names: Any) -> None:
    schedule = read_schedule("@daily", calendars=names)

    assert schedule == read_schedule("@daily not=holidays not=freeze")
    assert schedule.stored_calendars == ("freeze", "holidays")


def test_a_calendar_that_the_text_leaves_out_is_left_out_once() -> None:
    assert read_schedule("@daily not=holidays", calendars=["holidays"]) == read_schedule("@daily not=holidays")


def test_a_calendar_that_is_given_belongs_to_the_schedule() -> None:
    (use,) = read_schedule("@daily not=holidays", calendars={"holidays": HOLIDAYS}).calendars

    assert (use.calendar, use.is_stored) == (HOLIDAYS, False)


def test_a_calendar_that_the_text_does_not_name_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="which the text does not name") as refused:
        read_schedule("@daily", calendars={"holidays": HOLIDAYS})

    assert refused.value.code == "calendar-not-used"
    assert refused.value.fields["field"] == "calendars"
    assert "not=holidays" in str(refused.value.hint)


@pytest.mark.parametrize("calendars", [HOLIDAYS, "holidays", 5, {"holidays": 5}, {5: HOLIDAYS}, [5], [HOLIDAYS]])
@pytest.mark.parametrize("text", ["@daily", "@daily not=holidays"])
def test_what_is_no_calendars_is_refused(text: str, calendars: Any) -> None:
    with pytest.raises(InvalidSchedule, match=r"^calendars is ") as refused:
        read_schedule(text, calendars=calendars)

    assert (refused.value.code, refused.value.fields["field"]) == ("invalid-calendars", "calendars")
    assert str(refused.value.fields["rule"]).startswith("must be a ")


def test_a_name_that_calendars_cannot_have_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="must be 1 to 100 letters"):
        read_schedule("@daily", calendars=["bank holidays"])


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
        read_schedule(datetime(2031, 5, 1, 9, tzinfo=UTC))  # type: ignore[arg-type]

    assert "2031-05-01T09:00:00+00:00" in str(refused.value.hint)
