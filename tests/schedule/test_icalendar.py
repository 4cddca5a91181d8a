"""Calendars from iCalendar files, hostile ones too; previews as iCalendar files."""

from __future__ import annotations

from datetime import date

import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.asking import utc

from mainspring.errors import InvalidSchedule
from mainspring.schedule.icalendar import MAX_BYTES, Imported, read_calendar, write_preview
from mainspring.schedule.preview import preview
from mainspring.schedule.text import parse

SINCE = date(2026, 11, 16)
CHRISTMAS = "DTSTART;VALUE=DATE:20261225\nSUMMARY:Christmas"


def file_of(*events: str) -> bytes:
    bodies = "".join(f"BEGIN:VEVENT\nUID:{at}\n{event}\nEND:VEVENT\n" for at, event in enumerate(events))
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n{bodies}END:VCALENDAR\n".replace("\n", "\r\n").encode()


def imported(*events: str, zone: str = "UTC") -> Imported:
    return read_calendar(file_of(*events), name="holidays", since=SINCE, zone=zone)


# ── whole days ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_day_is_a_date_and_several_days_are_a_range() -> None:
    found = imported(
        CHRISTMAS, "DTSTART;VALUE=DATE:20261220\nDTEND;VALUE=DATE:20270104", "DTSTART;VALUE=DATE:20270501\nDURATION:P2D"
    )

    assert found.calendar.name == "holidays"
    assert found.calendar.dates == {date(2026, 12, 25)}
    assert found.calendar.ranges == ((date(2026, 12, 20), date(2027, 1, 3)), (date(2027, 5, 1), date(2027, 5, 2)))
    assert (found.events, found.left_out) == (3, ())


@pytest.mark.parametrize("rule", ["FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25", "FREQ=YEARLY;INTERVAL=1"])
def test_the_same_date_every_year_is_a_yearly_date(rule: str) -> None:
    calendar = imported(f"{CHRISTMAS}\nRRULE:{rule}").calendar

    assert calendar.yearly == {(12, 25)}
    assert not calendar.dates


def test_other_recurring_days_are_written_out_from_now_on() -> None:
    calendar = imported(
        "DTSTART;VALUE=DATE:20200106\nRRULE:FREQ=MONTHLY;BYDAY=1MO\nEXDATE;VALUE=DATE:20270104"
    ).calendar

    assert {date(2026, 12, 7), date(2027, 2, 1)} <= calendar.dates
    assert date(2027, 1, 4) not in calendar.dates
    assert max(calendar.dates).year == 2046


def test_additional_days_and_ends_of_rules_count() -> None:
    calendar = imported("DTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY;COUNT=3\nRDATE;VALUE=DATE:20261224").calendar

    assert calendar.dates == {date(2026, 12, day) for day in (1, 2, 3, 24)}


def test_from_midnight_to_midnight_in_the_zone_is_a_whole_day() -> None:
    berlin = "DTSTART:20261224T230000Z\nDTEND:20261225T230000Z"

    assert imported(berlin, zone="Europe/Berlin").calendar.dates == {date(2026, 12, 25)}
    assert imported("DTSTART:20261224T000000\nDURATION:P1D").calendar.dates == {date(2026, 12, 24)}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("SUMMARY:Meeting\nDTSTART:20261201T140000Z\nDTEND:20261201T160000Z", "Meeting: it is not about whole days"),
        ("SUMMARY:Off\nDTSTART;VALUE=DATE:20261201\nSTATUS:CANCELLED", "Off: it is cancelled"),
        ("SUMMARY:Empty", "Empty: it has no date"),
        ("SUMMARY:Odd\nDTSTART;VALUE=DATE:20261201\nRECURRENCE-ID:20261201", "Odd: it changes one occurrence"),
        ("SUMMARY:Fast\nDTSTART;VALUE=DATE:20261201\nRRULE:FREQ=SECONDLY", "Fast: it recurs within days"),
        ("SUMMARY:Wrong\nDTSTART;VALUE=DATE:20261301", "Wrong: "),
        (
            "SUMMARY:Endless\nDTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:99981231\nRRULE:FREQ=DAILY",
            "more than 10,000",
        ),
    ],
)
def test_what_a_calendar_cannot_hold_is_left_out_and_told(event: str, reason: str) -> None:
    found = imported(CHRISTMAS, event)

    assert found.calendar.dates == {date(2026, 12, 25)}
    assert len(found.left_out) == 1
    assert reason in found.left_out[0]


def test_at_most_some_are_told() -> None:
    found = imported(CHRISTMAS, *["SUMMARY:x"] * 100)

    assert len(found.left_out) == 21
    assert found.left_out[-1] == "more events were left out"


# ── hostile files ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "icalendar-without-days"),
        (b"hello", "invalid-icalendar"),
        (b"\xff\xfe\x00\x01", "invalid-icalendar"),
        (b"BEGIN:VCALENDAR\r\n", "icalendar-without-days"),
        (b"END:VEVENT\r\n", "invalid-icalendar"),
        (file_of("SUMMARY:only a title"), "icalendar-without-days"),
        (b"BEGIN:VCALENDAR\r\n" + b"BEGIN:VEVENT\r\n" * 4_000, "icalendar-without-days"),
        (b"BEGIN:VCALENDAR\r\n" + b"BEGIN:VEVENT\r\n" * 6_000, "icalendar-too-large"),
        (b"BEGIN:VCALENDAR\r\n" + b"X:" + b"y" * MAX_BYTES, "icalendar-too-large"),
        (file_of(*["DTSTART;VALUE=DATE:20261225"] * 5_001), "icalendar-too-large"),
    ],
    ids=["empty", "text", "bytes", "open", "end", "titles", "nested", "deeper", "large", "many"],
)
def test_files_that_are_none_are_refused(data: bytes, code: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        read_calendar(data, name="holidays", since=SINCE)
    assert caught.value.code == code
    assert caught.value.hint


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
@settings(deadline=None)
def test_any_bytes_are_read_or_refused_by_name(data: bytes) -> None:
    middle = file_of(CHRISTMAS).replace(b"SUMMARY:Christmas", data)
    for each in (data, middle):
        try:
            assert read_calendar(each, name="x", since=SINCE).calendar.name == "x"
        except InvalidSchedule as error:
            if not error.code.endswith(("icalendar", "icalendar-too-large", "icalendar-without-days")):
                raise


# ── previews ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_preview_becomes_events_that_any_calendar_reads() -> None:
    found = preview(parse("30 2 * * * zone=Europe/Berlin gap=skip"), after=utc("2026-03-27T12:00"), count=3)
    data = write_preview(found, title="nightly; import\nof \x00 orders", stamp=utc("2026-03-27T12:00"))

    events = icalendar.Calendar.from_ical(data).walk("VEVENT")
    assert [event.start for event in events if isinstance(event, icalendar.Event)] == [
        entry.nominal_at for entry in found.entries if entry.fires
    ]
    assert all(str(event["SUMMARY"]).startswith("nightly; import") for event in events)
    assert "Every day at 02:30, Europe/Berlin time" in str(events[0]["DESCRIPTION"])


def test_equal_occurrences_have_equal_ids() -> None:
    def ids(after: str) -> list[str]:
        found = preview(parse("0 9 * * *"), after=utc(after), count=2)
        data = write_preview(found, title="report", stamp=utc(after))
        return [str(event["UID"]) for event in icalendar.Calendar.from_ical(data).walk("VEVENT")]

    assert ids("2026-11-16")[1] == ids("2026-11-17")[0]
    assert len(set(ids("2026-11-16"))) == 2
