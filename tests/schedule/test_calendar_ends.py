"""The years 1 and 9999, in questions and in texts: an answer or a clear error for every kind of schedule."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.document import schedule_of
from mainspring.schedule.text import parse

NOW = datetime(2026, 11, 16, tzinfo=UTC)
ENDS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))),
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"]
CALENDARS = {
    "off": Calendar(name="off", yearly=frozenset({(1, 1)})),
    "ever": Calendar(name="ever", ranges=((date(1, 1, 1), date(9999, 12, 31)),)),
}
KINDS = [
    "0 9 * * *",
    "* * * * * *",
    "H H * * *",
    "0 0 9 1 1 * 2026",
    "cron(0 9 ? * 2 2199)",
    "rate(1 day)",
    "PT15M",
    "PT24H spread=5m",
    "P1D",
    "P1M",
    "P5Y",
    "2026-12-24T18:00",
    "RRULE:FREQ=DAILY",
    "DTSTART:19000101T000000 RRULE:FREQ=DAILY",
    "RRULE:FREQ=DAILY;UNTIL=99991231T235959Z",
    "RRULE:FREQ=MONTHLY;BYDAY=-1FR",
    "RRULE:FREQ=SECONDLY;INTERVAL=7",
    "every weekday at 09:00",
    "every other tuesday at noon",
    "0 9 * * * | PT15M",
    "0 9 * * * but not 0 9 1 * *",
    "0 9 * * * not=off",
    "0 9 * * * only=ever",
    "0 9 * * * blackout=off:move",
    "0 9 * * * starts=2026-01-01 runs=3",
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", KINDS)
def test_every_kind_answers_at_both_ends_of_the_calendar(text: str, zone: str) -> None:
    schedule = parse(text, zone=zone, now=NOW, calendars=CALENDARS)

    for end in ENDS:
        following, before = schedule.next_after(end), schedule.prev_before(end)
        assert (following is None, before is None) == ((False, True) if end.year == 1 else (True, False))
        assert not schedule.is_due(end)
        assert list(schedule.between(end, end)) == []
        assert len(schedule.preview(end, count=1).entries) >= (end.year == 1)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("clock", ["T00:00:00", "T23:59:59", "T00:00:00+14:00", "T23:59:59-12:00"])
@pytest.mark.parametrize(
    "text", ["{}", "PT1H/{}", "P1D/{}", "P1M/{}", "0 9 * * * starts={}", "0 9 * * * ends={}", "at({})"]
)
def test_a_date_at_the_end_of_the_calendar_is_refused(text: str, day: str, clock: str, zone: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text.format(day + clock), zone=zone)

    assert caught.value.code == ("invalid-cron" if text == "at({})" and len(clock) > 9 else "invalid-instant")


@pytest.mark.parametrize("now", ENDS)
@pytest.mark.parametrize("zone", ZONES)
def test_plain_english_needs_a_now_only_if_it_counts_from_there(now: datetime, zone: str) -> None:
    assert parse("every weekday at 09:00", zone=zone, now=now).when.text == "0 9 * * 1-5"
    with pytest.raises(InvalidSchedule, match="it is counted from now"):
        parse("every other tuesday at noon", zone=zone, now=now)


@pytest.mark.parametrize("anchor", ENDS)
def test_an_anchor_at_the_end_of_the_calendar_is_refused(anchor: datetime) -> None:
    with pytest.raises(InvalidSchedule, match="must be between the years 1900 and 2500"):
        parse("PT15M", anchor=anchor)
    with pytest.raises(InvalidSchedule, match="is too far away"):
        schedule_of({"when": "PT15M", "starts": anchor.isoformat()})


@pytest.mark.parametrize("text", ["on 2600-01-01 at 09:00", "2600-01-01T09:00Z", "PT1H/2600-01-01T00:00Z"])
def test_a_year_after_the_last_is_one_error_in_every_form(text: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse(text)
    assert refused.value.code == "invalid-instant"
