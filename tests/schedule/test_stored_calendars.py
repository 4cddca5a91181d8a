"""Stored calendars in schedules: known by name until somebody looks them up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring import Calendar, Schedule
from mainspring.errors import InvalidSchedule
from mainspring.schedule.document import schedule_of

AT = datetime(2026, 12, 24, 12, tzinfo=UTC)
HOLIDAYS = Calendar(name="holidays", yearly=frozenset({(12, 25)}))


def test_a_name_that_is_not_given_is_a_stored_calendar_if_that_is_allowed() -> None:
    schedule = Schedule.parse("0 9 * * * not=holidays blackout=freeze:move", stored=True)
    assert schedule.stored_calendars == ("freeze", "holidays")
    assert schedule.text == "0 9 * * * not=holidays blackout=freeze:move"
    assert "the calendar holidays" in schedule.words
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse("0 9 * * * not=holidays", calendars={"holiday": HOLIDAYS})
    assert (refused.value.code, refused.value.hint) == ("unknown-calendar", "Did you mean 'holiday'?")


def test_its_document_has_the_name_and_not_the_days() -> None:
    schedule = Schedule.parse("0 9 * * * not=holidays", stored=True)
    document = schedule.as_document()
    assert document["calendars"] == [{"use": "exclude", "stored": "holidays"}]
    assert schedule_of(document) == schedule
    whole = schedule.with_stored({"holidays": HOLIDAYS})
    assert whole.as_document() == document


def test_it_is_computed_with_what_is_looked_up() -> None:
    schedule = Schedule.parse("0 9 * * * not=holidays", stored=True)
    first = schedule.with_stored({"holidays": HOLIDAYS}).next_after(AT)
    assert first is not None
    assert first.nominal_at == datetime(2026, 12, 26, 9, tzinfo=UTC)
    with pytest.raises(InvalidSchedule, match="holidays"):
        schedule.with_stored({"holiday": HOLIDAYS})


@pytest.mark.parametrize(
    "use", [{}, {"stored": "a", "calendar": {"name": "a", "yearly": ["12-25"]}}, {"stored": "a b"}], ids=str
)
def test_a_document_says_one_of_both(use: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        schedule_of({"when": "0 9 * * *", "calendars": [use]})
    assert refused.value.code in ("invalid-document", "invalid-calendar")
