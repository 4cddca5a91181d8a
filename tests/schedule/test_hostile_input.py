"""Hostile input: bounded before it is expanded, answered with a clear error, never a hang or another exception."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.cron import Cron
from mainspring.schedule.document import calendar_of, schedule_of
from mainspring.schedule.instants import Instants
from mainspring.schedule.sets import Union
from mainspring.schedule.text import parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = [
    "," * 1024,
    "0 0 1--100000000 * *",
    f"{'1,' * 400}1 * * * *",
    "*/99999999999999999999 * * * *",
    "0 0 1-999999999 * *",
    f"{'9' * 5000} * * * *",
    " | ".join(f"{n % 60} {n % 24} * * *" for n in range(10_000)),
    " | ".join(f"{n} 0 * * *" for n in range(60)) + " | " + " | ".join(f"{n} 1 * * *" for n in range(60)),
    "(" * 500 + "0 0 * * *" + ")" * 500,
    " but not ".join(["0 0 * * *"] * 50),
    "RRULE:FREQ=DAILY;COUNT=1000000000",
    f"RRULE:FREQ=DAILY;BYSECOND={','.join(map(str, range(60)))};BYMINUTE=-1",
    f"RRULE:FREQ=YEARLY;BYYEARDAY={'1,' * 2000}1",
    "RRULE:FREQ=SECONDLY;INTERVAL=99999999999",
    "RRULE:FREQ=SECONDLY;INTERVAL=120;BYMINUTE=1",
    "RRULE:FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
    "RRULE:FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=30",
    "RRULE:FREQ=MONTHLY;INTERVAL=12;BYMONTH=6",
    "RRULE:FREQ=MONTHLY;BYDAY=6MO",
    "PT99999999999999999999S",
    "P" + "1" * 50 + "D",
    ", ".join(["2026-01-01T00:00:00Z"] * 20_000),
    "0 0 * * * zone=" + "a" * 5000,
    "* * * * * * but not * * * * * *",
    "0 0 * * *\x00",
    "\ud800 * * * *",
    "0 0 * * * runs=99999999999999999999",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:40]))
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)

    assert len(str(caught.value)) < 700


def test_a_storm_of_times_is_arithmetic_not_a_list() -> None:
    every = ",".join(map(str, range(60)))
    hours = ",".join(map(str, range(24)))
    storm = parse(f"DTSTART:19700101T000000 RRULE:FREQ=DAILY;BYHOUR={hours};BYMINUTE={every};BYSECOND={every}")

    found = storm.next_after(NOW)
    assert found is not None
    assert found.nominal_at == NOW + timedelta(seconds=1)


def test_a_million_dates_are_refused_before_they_are_read() -> None:
    dates = [date(1, 1, 1) + timedelta(days=n) for n in range(1_000_000)]

    with pytest.raises(InvalidSchedule, match="at most 10,000"):
        Calendar(name="all", dates=frozenset(dates))
    with pytest.raises(InvalidSchedule, match="too long"):
        calendar_of({"name": "all", "dates": ["2026-01-01"] * 1_000_000})


def test_too_many_parts_and_instants_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="2 to 64"):
        Union(tuple(Cron.parse(f"{n % 60} {n // 60} * * *") for n in range(1000)))
    with pytest.raises(InvalidSchedule, match="1 to 10000"):
        Instants((NOW,) * 10_001)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"when": 1},
        {"when": "0 0 * * *", "zone": 3},
        {"when": "0 0 * * *", "x": 1},
        {"when": "0 0 * * *", "gap": "no"},
    ],
)
def test_documents_that_are_none_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidSchedule):
        schedule_of(document)


quick = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
PIECES = ["*", "/", "-", ",", "#", "L", "W", "H", "(", ")", "?", "|", " ", "but not", "@every", "RRULE:", "FREQ=DAILY",
          ";", "BYDAY=", "PT", "P1M", "0", "1", "7", "59", "60", "99999", "MON", "JAN", "2026-01-01", "T00:00", "Z",
          "zone=UTC", "every", "day", "at", "9am", "\x00", "é", "٣"]  # fmt: skip


@quick
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
                 st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)))  # fmt: skip
@example("0 0 29 2 1#5")
@example("(((")
@example("P")
@example("@every")
@example("2026-01-01T00:00, ")
def test_any_text_is_a_schedule_or_a_clear_error(text: str) -> None:
    try:
        schedule = parse(text, now=NOW)
    except InvalidSchedule as error:
        assert error.code  # noqa: PT017 - any other exception is what this test looks for
    else:
        assert parse(schedule.text) == schedule
        schedule.next_after(NOW)
        schedule.prev_before(NOW)
