"""DTSTART, RDATE and EXDATE of recurrence rules: in UTC, in a zone of their own, as dates and in lists."""

# ruff: noqa: DTZ001 - walls are naive

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schedule.asking import instants, utc, walls
from tests.schedule.strategies import ZONES, rules

from mainspring.errors import InvalidSchedule
from mainspring.schedule.document import schedule_of
from mainspring.schedule.preview import preview
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse

NEW_YORK = "DTSTART;TZID=America/New_York:20260101T090000 RRULE:FREQ=DAILY"


def test_a_start_in_utc_is_read_in_utc_whatever_the_zone() -> None:
    schedule = parse("DTSTART:20260101T090000Z RRULE:FREQ=DAILY zone=Europe/Berlin")

    assert instants(schedule, "2026-03-28", "2026-03-31") == [f"2026-03-{day} 09:00" for day in (28, 29, 30)]
    assert schedule.text == "DTSTART:20260101T090000Z RRULE:FREQ=DAILY zone=Europe/Berlin"
    assert schedule.words == "Every day at 09:00, from 1 January 2026 on, UTC."


def test_a_start_without_zone_is_read_in_the_schedule_s() -> None:
    schedule = parse("DTSTART:20260101T090000 RRULE:FREQ=DAILY zone=Europe/Berlin")

    assert instants(schedule, "2026-03-28", "2026-03-31") == [
        "2026-03-28 08:00",
        "2026-03-29 07:00",
        "2026-03-30 07:00",
    ]


def test_a_start_with_a_zone_is_read_there() -> None:
    # New York's clocks jump on 8 March 2026, Berlin's on the 29th.
    schedule = parse(f"{NEW_YORK} zone=Europe/Berlin")

    assert walls(schedule, "2026-03-07", "2026-03-10") == ["2026-03-07 15:00", "2026-03-08 14:00", "2026-03-09 14:00"]
    assert parse(schedule.text) == schedule
    assert schedule.words == "Every day at 09:00, from 1 January 2026 on, America/New_York time."


def test_the_sentence_says_which_zone_is_whose() -> None:
    assert parse(f"{NEW_YORK} starts=2026-02-01T00:00Z zone=Europe/Berlin").words == (
        "Every day at 09:00, from 1 January 2026 on, America/New_York time; bounds and calendars in Europe/Berlin time;"
        " from 1 February 2026 at 01:00 on."
    )
    assert parse(f"0 12 * * * | {NEW_YORK}").words == (
        "Every day at 12:00, and every day at 09:00, from 1 January 2026 on (America/New_York time), UTC."
    )


@pytest.mark.parametrize(
    ("dates", "canonical", "left"),
    [
        ("EXDATE:20261225T090000", "EXDATE:20261225T090000", [24, 26]),
        ("EXDATE:20261225T140000Z", "EXDATE:20261225T140000Z", [24, 26]),
        ("EXDATE;TZID=Europe/Berlin:20261225T150000", "EXDATE:20261225T140000Z", [24, 26]),
        ("EXDATE;TZID=America/New_York:20261225T090000", "EXDATE:20261225T090000", [24, 26]),
        ("EXDATE;VALUE=DATE:20261225", "EXDATE:20261225", [24, 26]),
        ("EXDATE:20261225", "EXDATE:20261225", [24, 26]),
        (
            "EXDATE:20261226T090000,20261225T090000 EXDATE:20261225T090000",
            "EXDATE:20261225T090000,20261226T090000",
            [24],
        ),
        ("EXDATE:20261225T100000", "EXDATE:20261225T100000", [24, 25, 26]),  # nothing is due then
    ],
)
def test_excluded_dates(dates: str, canonical: str, left: list[int]) -> None:
    schedule = parse(f"{NEW_YORK} {dates} zone=America/New_York")

    assert schedule.when.text == f"{NEW_YORK} {canonical}"
    assert walls(schedule, "2026-12-24T12:00", "2026-12-26T15:00") == [f"2026-12-{day} 09:00" for day in left]
    assert parse(schedule.text) == schedule == schedule_of(schedule.as_document())


@pytest.mark.parametrize(
    ("dates", "canonical", "added"),
    [
        ("RDATE:20261224T180000", "RDATE:20261224T180000", "2026-12-24 18:00"),
        ("RDATE:20261224T170000Z", "RDATE:20261224T170000Z", "2026-12-24 18:00"),
        ("RDATE;TZID=America/New_York:20261224T120000", "RDATE:20261224T170000Z", "2026-12-24 18:00"),
        ("RDATE;VALUE=DATE:20261224", "RDATE:20261224", "2026-12-24 09:00"),  # at DTSTART's time of day
    ],
)
def test_added_dates(dates: str, canonical: str, added: str) -> None:
    schedule = parse(f"DTSTART:20261201T090000 RRULE:FREQ=MONTHLY;COUNT=2 {dates} zone=Europe/Berlin")

    assert schedule.when.text.endswith(canonical)
    assert walls(schedule, "2026-12-01", "2028-01-01") == ["2026-12-01 09:00", added, "2027-01-01 09:00"]
    assert parse(schedule.text) == schedule
    before = schedule.prev_before(utc("2026-12-31"))
    assert before is not None
    assert walls(schedule, "2026-12-02", "2026-12-31") == [added]


def test_dates_are_named_in_the_sentence_and_do_not_count() -> None:
    schedule = parse(
        "DTSTART:20261201T090000 RRULE:FREQ=DAILY;COUNT=3 RDATE:20261224T180000 EXDATE:20261202,20261224T180000Z"
    )

    assert schedule.words == (
        "Every day at 09:00, from 1 December 2026 on, 3 times, also on 24 December 2026 at 18:00,"
        " but not on 2 December 2026 and 24 December 2026 at 18:00, UTC."
    )
    assert walls(schedule, "2026-01-01", "2028-01-01") == ["2026-12-01 09:00", "2026-12-03 09:00"]


def test_an_excluded_day_is_passed_over_at_once() -> None:
    schedule = parse("DTSTART:20261201T000000 RRULE:FREQ=SECONDLY EXDATE;VALUE=DATE:20261225,20261226")

    found = schedule.next_after(utc("2026-12-24T23:59:59"))
    assert found is not None
    assert found.nominal_at == utc("2026-12-27")
    before = schedule.prev_before(utc("2026-12-27"))
    assert before is not None
    assert before.nominal_at == utc("2026-12-24T23:59:59")


def test_an_excluded_time_that_the_clock_skips_does_not_run_after_the_gap() -> None:
    text = "DTSTART:20260101T023000 RRULE:FREQ=DAILY EXDATE:20260329T023000 zone=Europe/Berlin"

    assert walls(parse(text), "2026-03-28", "2026-03-30T12:00") == ["2026-03-28 02:30", "2026-03-30 02:30"]


def test_until_is_an_instant_also_where_the_clock_is_set_back() -> None:
    # In Berlin, 02:30 comes at 00:30 UTC and again at 01:30 UTC on 25 October 2026.
    text = "DTSTART:20261024T023000 RRULE:FREQ=DAILY;UNTIL=20261025T{}Z zone=Europe/Berlin repeat=both"

    first, both = ["2026-10-24 00:30", "2026-10-25 00:30"], ["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-25 01:30"]
    assert instants(parse(text.format("003000")), "2026-10-01", "2026-11-01") == first
    assert instants(parse(text.format("013000")), "2026-10-01", "2026-11-01") == both


def test_a_preview_tells_of_the_gaps_of_the_rule_s_own_zone() -> None:
    schedule = parse("DTSTART;TZID=America/New_York:20260301T023000 RRULE:FREQ=DAILY zone=Europe/Berlin")

    found = preview(schedule, after=utc("2026-03-08T00:00"), count=1).entries
    assert [(f"{each.local_at:%H:%M}", each.notes) for each in found] == [
        ("08:00", ("02:30 does not exist on 8 March in America/New_York; runs at 03:00",))
    ]


def test_properties_may_stand_on_lines_of_their_own_in_any_order() -> None:
    pasted = "EXDATE;VALUE=DATE:20261225\r\nRRULE:FREQ=DAILY; BYHOUR=9\r\nDTSTART;VALUE=DATE:20260101\r\n"

    assert parse(pasted).text == "DTSTART:20260101T000000 RRULE:FREQ=DAILY;BYHOUR=9 EXDATE:20261225"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("DTSTART;TZID=Europe/Berln:20260101 RRULE:FREQ=DAILY", "unknown-zone", "Europe/Berlin"),
        ("DTSTART;TZID=Europe/Berlin:20260101T090000Z RRULE:FREQ=DAILY", "invalid-rrule", "Z is UTC"),
        ("DTSTART;X=1:20260101 RRULE:FREQ=DAILY", "invalid-rrule", "TZID=Europe/Berlin"),
        ("DTSTART:20260101 DTSTART:20260102 RRULE:FREQ=DAILY", "invalid-rrule", "DTSTART is given twice"),
        ("RRULE:FREQ=DAILY RRULE:FREQ=WEEKLY", "invalid-rrule", "union"),
        ("RRULE:FREQ=DAILY EXRULE:FREQ=WEEKLY", "invalid-rrule", "but not"),
        ("DTSTART:20260101 RDATE:20260101", "invalid-rrule", "RRULE is missing"),
        ("RRULE:FREQ=DAILY EXDATE:20261301", "invalid-rrule", "'20261301' is no date"),
        ("RRULE:FREQ=DAILY EXDATE:00010101", "invalid-rrule", "1900"),
        ("RRULE:FREQ=DAILY RDATE;VALUE=PERIOD:20260101T000000Z/P1D", "invalid-rrule", "VALUE=DATE"),
        (f"RRULE:FREQ=DAILY EXDATE:{','.join(['20260101'] * 401)}", "schedule-too-large", "at most 400"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, code: str, words: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)

    assert caught.value.code == code
    assert words in f"{caught.value} {caught.value.hint}"


stamps = st.builds(
    lambda at, shape: f"{at:{shape}}",
    st.datetimes(datetime(1970, 1, 1), datetime(2040, 1, 1)),
    st.sampled_from(["%Y%m%d", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M%SZ"]),
)
lists = st.lists(stamps, max_size=4)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules, lists, lists, st.sampled_from(["", *ZONES]), st.sampled_from(ZONES))
def test_the_canonical_text_says_the_same_again(
    rule: Rule, added: list[str], without: list[str], own: str, zone: str
) -> None:
    start = f"DTSTART{f';TZID={own}' if own else ''}:{rule.starts:%Y%m%dT%H%M%S}"
    dates = "".join(f" {name}:{','.join(each)}" for name, each in (("RDATE", added), ("EXDATE", without)) if each)
    read = Rule.parse(f"{start} RRULE:{rule.rrule}{dates}")
    schedule = Schedule(when=read, zone=zone)

    assert Rule.parse(read.text) == read
    assert Rule.parse(read.text).text == read.text
    assert schedule_of(schedule.as_document()) == schedule
    assert schedule.words == schedule_of(schedule.as_document()).words
