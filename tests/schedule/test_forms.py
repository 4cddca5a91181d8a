"""Intervals, instants, recurrence rules, sets, calendars, bounds and spread: tables and refusals."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile

import pytest
from dateutil.rrule import rrulestr
from tests.schedule.asking import instants, next_wall, utc, walls

from mainspring import Calendar, Schedule
from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import BlackoutPolicy, CalendarUse, Use
from mainspring.schedule.document import schedule_of
from mainspring.schedule.interval import Interval
from mainspring.schedule.text import parse

NEXT = [
    # text                             after                     zone             next
    ("15m", "2026-01-01 00:07", "UTC", "2026-01-01 00:15"),
    ("PT15M", "2026-01-01 00:15", "Asia/Kathmandu", "2026-01-01 00:30"),
    ("@every 90s", "2026-01-01 00:00", "UTC", "2026-01-01 00:01:30"),
    ("1h30m/2026-01-01T00:10:00Z", "2026-01-01 00:10", "UTC", "2026-01-01 01:40"),
    ("P1D/2026-01-01T09:00", "2026-03-28 09:00", "Europe/Berlin", "2026-03-29 09:00"),
    ("PT24H/2026-01-01T09:00", "2026-03-28 09:00", "Europe/Berlin", "2026-03-29 10:00"),
    ("P1W", "2026-01-01 00:00", "UTC", "2026-01-05 00:00"),  # Mondays
    ("2 weeks/2026-01-06T12:00", "2026-01-07 00:00", "UTC", "2026-01-20 12:00"),
    ("P1M/2026-01-31T09:00", "2026-01-31 09:00", "UTC", "2026-02-28 09:00"),
    ("P1M/2026-01-31T09:00", "2026-02-28 09:00", "UTC", "2026-03-31 09:00"),
    ("P1Y/2024-02-29T00:00", "2024-02-29 00:00", "UTC", "2025-02-28 00:00"),
    ("P1Y/2024-02-29T00:00", "2027-12-01 00:00", "UTC", "2028-02-29 00:00"),
    ("2026-12-24T18:00", "2026-01-01 00:00", "Europe/Berlin", "2026-12-24 18:00"),
    ("2026-12-24T18:00Z, 2025-12-24T18:00Z", "2026-01-01 00:00", "Europe/Berlin", "2026-12-24 19:00"),
    ("RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18", "2026-01-01 00:00", "UTC", "2026-01-30 18:00"),
    ("DTSTART:19700101T090000 RRULE:FREQ=DAILY;INTERVAL=10", "2026-01-01 00:00", "UTC", "2026-01-07 09:00"),
    ("DTSTART:19700101T000000 RRULE:FREQ=SECONDLY;INTERVAL=7", "2026-01-01 00:00", "UTC", "2026-01-01 00:00:07"),
    ("0 9 * * * | 0 17 * * *", "2026-01-01 09:00", "UTC", "2026-01-01 17:00"),
    ("0 * * * * but not 0 10-12 * * *", "2026-01-01 09:00", "UTC", "2026-01-01 13:00"),
    ("* * * * * * but not * * * * 12 *", "2026-11-30 23:59:59", "Europe/Berlin", "2027-01-01 00:00"),
    ("* * * * * but not * 1-23 * * *", "2026-01-01 00:59", "UTC", "2026-01-02 00:00"),
    ("(0 9 * * * | 0 17 * * *) but not 0 17 * * 4", "2026-01-01 09:00", "UTC", "2026-01-02 09:00"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "after", "zone", "expected"), NEXT)
def test_the_next_wall_of_a_form(text: str, after: str, zone: str, expected: str) -> None:
    assert next_wall(text, after, zone) == expected


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(minutes=15), "PT15M"),
        (timedelta(days=7), "P7D"),
        (timedelta(hours=36), "PT36H"),
        ("1 year", "P1Y"),
        ("18 months", "P1Y6M"),
        ("P1W", "P7D"),
        ("90s", "PT1M30S"),
        ("PT1.5S", "PT1.5S"),
    ],
)
def test_spans_have_one_form(span: str | timedelta, text: str) -> None:
    assert Interval.every(span).text == text


def test_an_interval_counts_from_starts_at_when_it_has_no_anchor() -> None:
    schedule = parse("PT20M", starts_at=utc("2026-01-01T00:05"))

    assert instants(schedule, "2025-01-01", "2026-01-01T01:00") == [
        "2026-01-01 00:05",
        "2026-01-01 00:25",
        "2026-01-01 00:45",
    ]


RULES = [
    "FREQ=DAILY;INTERVAL=2",
    "FREQ=DAILY;COUNT=10;BYHOUR=9,17",
    "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=TU,SU",
    "FREQ=WEEKLY;INTERVAL=2;WKST=MO;BYDAY=TU,SU",
    "FREQ=MONTHLY;BYMONTHDAY=-1,13",
    "FREQ=MONTHLY;INTERVAL=18;BYMONTHDAY=10,11,12",
    "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
    "FREQ=MONTHLY;BYDAY=1FR,-1MO",
    "FREQ=YEARLY;BYDAY=20MO",
    "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO",
    "FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,100,200,-1",
    "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
    "FREQ=YEARLY;BYMONTH=6,7",
    "FREQ=HOURLY;INTERVAL=5",
    "FREQ=HOURLY;INTERVAL=3;BYMINUTE=0,30",
    "FREQ=MINUTELY;INTERVAL=90",
    "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11",
    "FREQ=SECONDLY;INTERVAL=4000",
    "FREQ=HOURLY;BYDAY=SA;BYHOUR=1,2",
    "FREQ=DAILY;UNTIL=19990101T000000",
    "FREQ=DAILY;INTERVAL=3;BYMONTH=1,3;BYMONTHDAY=-1,-5,2,3",
    "FREQ=DAILY;BYYEARDAY=-1,60;BYDAY=MO,TU,WE,TH",
]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_means_what_dateutil_finds_from_its_start(rule: str) -> None:
    """Re-anchored or not: DTSTART is far enough back for many periods, the oracle walks all the way."""
    starts = datetime(1997, 9, 2, 9, 10, 30)  # noqa: DTZ001 - a wall
    until = datetime(2003, 1, 1)  # noqa: DTZ001
    walked = takewhile(lambda each: each < until, rrulestr(rule, dtstart=starts))
    expected = [each.replace(tzinfo=UTC) for each in islice(walked, 400)]
    middle = len(expected) // 2
    schedule = parse(f"DTSTART:19970902T091030 RRULE:{rule}")

    found = schedule.between(expected[middle], utc("2003-01-01"))

    assert [each.nominal_at for each in islice(found, 100)] == expected[middle : middle + 100]
    for at in (-1, middle):
        before = schedule.prev_before(expected[at])
        assert before is not None
        assert before.nominal_at == expected[at - 1]


HOLIDAYS = Calendar(name="holidays", dates=frozenset({date(2026, 12, 25)}), yearly=frozenset({(1, 1)}))
OFFICE = Calendar(name="office", weekdays=frozenset(range(5)), windows=((time(9), time(17)),))
FREEZE = Calendar(name="freeze", ranges=((date(2026, 12, 20), date(2026, 12, 31)),))
NIGHT = Calendar(name="night", windows=((time(22), time(6)),))
KNOWN = {each.name: each for each in (HOLIDAYS, OFFICE, FREEZE, NIGHT)}


def test_an_excluded_day_is_left_out() -> None:
    assert walls(parse("0 9 * * * not=holidays", calendars=KNOWN), "2026-12-24", "2027-01-03") == [
        *(f"2026-12-{day} 09:00" for day in (24, 26, 27, 28, 29, 30, 31)),
        "2027-01-02 09:00",
    ]


def test_an_included_calendar_leaves_only_what_is_inside() -> None:
    found = walls(parse("0 */4 * * * only=office", calendars=KNOWN), "2026-01-02", "2026-01-06")

    assert found == ["2026-01-02 12:00", "2026-01-02 16:00", "2026-01-05 12:00", "2026-01-05 16:00"]


def test_a_blackout_drops_or_moves_to_its_end_once() -> None:
    dropped = parse("0 */6 * * * blackout=freeze:drop", calendars=KNOWN)
    moved = parse("0 3,9 * * * blackout=freeze:move", calendars=KNOWN)

    assert walls(dropped, "2026-12-19T12:00", "2027-01-01T01:00") == [
        "2026-12-19 12:00",
        "2026-12-19 18:00",
        "2027-01-01 00:00",
    ]
    assert walls(moved, "2026-12-19T06:00", "2027-01-01T04:00") == [
        "2026-12-19 09:00",
        "2027-01-01 00:00",
        "2027-01-01 03:00",
    ]


def test_a_window_may_reach_over_midnight() -> None:
    moved = parse("0 23,3,12 * * * blackout=night:move", calendars=KNOWN)

    assert walls(moved, "2026-01-01T12:00", "2026-01-02T13:00") == [
        "2026-01-01 12:00",
        "2026-01-02 06:00",
        "2026-01-02 12:00",
    ]


def test_where_blackouts_overlap_it_is_due_at_the_end_of_all_of_them() -> None:
    mondays = Calendar(name="mondays", weekdays=frozenset({0}))
    moved = parse(
        "30 0 * * 1 blackout=night:move blackout=mondays:move", calendars={"night": NIGHT, "mondays": mondays}
    )
    due = utc("2026-03-31T06:00")  # a Tuesday: the night before began on Monday, which is a blackout itself

    assert walls(moved, "2026-03-29", "2026-04-05") == ["2026-03-31 06:00"]
    assert moved.is_due(due)
    asked = moved.next_after(utc("2026-03-30T23:00"))
    assert asked is not None
    assert asked.nominal_at == due, "also when asked in the middle of the night"


def test_what_was_moved_has_to_pass_the_other_calendars() -> None:
    schedule = parse("0 9 24 12 * not=holidays blackout=night:move blackout=freeze:move", calendars=KNOWN)

    assert walls(schedule, "2026-01-01", "2028-01-01") == ["2027-12-24 09:00"]  # 1 January is a holiday


def test_a_calendar_with_one_day_far_ahead_is_found() -> None:
    only = CalendarUse(calendar=Calendar(name="day", dates=frozenset({date(2126, 12, 25)})), use=Use.INCLUDE)

    assert walls(Schedule(when=parse("0 9 * * *").when, calendars=(only,)), "2026-01-01", "2200-01-01") == [
        "2126-12-25 09:00"
    ]


def test_bounds_and_the_number_of_runs() -> None:
    schedule = parse("0 9 * * * starts=2026-01-01T09:00Z ends=2026-01-10T09:00Z")
    counted = parse("0 9 * * * starts=2026-01-01T09:00Z runs=3")

    assert len(instants(schedule, "2025-01-01", "2027-01-01")) == 9  # from the first on, before the last
    assert instants(counted, "2025-01-01", "2027-01-01") == [f"2026-01-0{day} 09:00" for day in (1, 2, 3)]
    last = counted.prev_before(utc("2030-01-01"))
    assert last is not None
    assert last.nominal_at == utc("2026-01-03T09:00")
    assert counted.prev_before(utc("2026-01-01T09:00")) is None


def test_spread_delays_inside_the_window_and_is_always_the_same() -> None:
    schedule = parse("0 * * * *", spread="10m")
    found = [schedule.next_after(utc("2026-01-01"), job=f"job-{n}") for n in range(200)]
    delays = [each.due_at - each.nominal_at for each in found if each is not None]

    assert len(set(delays)) > 190
    assert timedelta(0) <= min(delays) < timedelta(minutes=1)
    assert timedelta(minutes=9) < max(delays) < timedelta(minutes=10)
    assert delays[:2] == [timedelta(seconds=273, milliseconds=853), timedelta(seconds=223, milliseconds=22)]


def test_answers_name_their_tzdata() -> None:
    found = parse("@daily").next_after(utc("2026-01-01"))

    assert found is not None
    assert found.tzdata >= "2026f"


REFUSED = [
    ("0 0 30 2 *", "never-fires", "names no day or time that ever comes"),
    ("0 0 31 4,6,9,11 *", "never-fires", "names no day"),
    ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never-fires", "names no day"),
    ("RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "never-fires", "names no day"),
    ("0 9 * * * but not 0 9 * * *", "never-fires", "names no day"),
    ("0 9 1 1 * starts=2026-01-02 ends=2026-12-01", "never-fires", "no instant between its bounds"),
    ("0 9 * * 0 only=office", "never-fires", "calendars leave next to nothing"),
    ("0 9 * * * starts=2026-01-02 ends=2026-01-01", "contradictory-bounds", "must be after starts_at"),
    ("0 9 * * * runs=3", "max-runs-needs-start", "needs starts_at"),
    ("0 9 * * * starts=2026-01-01 runs=1000000", "invalid-schedule", "1 to 10,000"),
    ("0 9 * * * zone=Europe/Berln", "unknown-zone", "'Europe/Berlin'"),
    ("0 9 * * * zone=berlin", "unknown-zone", "'Europe/Berlin'"),
    ("0 9 * * * zone=../../etc/passwd", "unknown-zone", "IANA"),
    ("0 9 * * * not=holiday", "unknown-calendar", "Did you mean 'holidays'?"),
    ("0 9 * * * gap=never", "invalid-schedule", "as-cron, run-after, shift, skip"),
    ("0 9 * * * zone=UTC zone=UTC", "invalid-schedule", "given twice"),
    ("0 9 * * * colour=blue", "invalid-schedule", "is no setting"),
    ("0 9 * * * blackout=freeze:later", "invalid-schedule", "drop, move"),
    ("@dayly", "invalid-schedule", "Did you mean '@daily'?"),
    ("@dialy zone=Europe/Berlin", "invalid-schedule", "Did you mean '@daily zone=Europe/Berlin'?"),
    ("@evry 5m", "invalid-schedule", "Did you mean '@every 5m'?"),
    ("", "invalid-schedule", "it is empty"),
    ("P1DT12H", "invalid-interval", "must count one thing"),
    ("PT0S", "invalid-interval", "must be longer than nothing"),
    ("@every 0s", "invalid-interval", "must be longer than nothing"),
    ("@every 1.5d", "invalid-interval", "days are counted whole"),
    ("PT5M/0001-01-01T00:00:00", "invalid-instant", "anchor is 0001-01-01T00:00:00; it must be between"),
    ("at(2026-02-30T00:00:00)", "invalid-instant", "at(yyyy-mm-ddThh:mm:ss), without an offset"),
    ("zone=Europe/Berlin", "invalid-schedule", "has a setting, and does not say when"),
    ("zone=Europe/Berlin spread=5m", "invalid-schedule", "has a setting, and does not say when"),
    ("TZ=Europe/Berlin", "invalid-schedule", "has a setting, and does not say when"),
    ("0 9 * * * spread=25h", "invalid-spread", "spread is 1 day, 1:00:00; it must be at most a day"),
    ("0 9 * * * spread=366d", "invalid-spread", "spread is 366 days; it must be at most a day"),
    ("0 9 * * * spread=0s", "invalid-spread", "must be more than nothing"),
    ("0 9 * * * EST", "unknown-zone", "Did you mean '0 9 * * * America/New_York'?"),
    ("0 9 * * * CST", "unknown-zone", "Name a place"),
    ("CRON_TZ=EST 0 9 * * *", "unknown-zone", "Did you mean 'CRON_TZ=America/New_York 0 9 * * *'?"),
    ("0 9 * * * UTC+2", "unknown-zone", "names an offset from UTC"),
    (
        "every hour until 2027-03-01 ends=2027-01-01",
        "contradictory-settings",
        "as a setting it is 2027-01-01T00:00:00Z",
    ),
    ("15 parsecs", "invalid-interval", "this is no span of time"),
    ("PT999999999999H", "invalid-interval", "too long"),
    ("PT0.5S", "invalid-interval", "one second"),
    ("P1M/yesterday", "invalid-schedule", "the anchor is no date"),
    ("2026-03-29T02:30 zone=Europe/Berlin", "invalid-instant", "does not exist in Europe/Berlin"),
    ("2026-13-01T00:00", "invalid-instant", "is no date and time"),
    ("9999-01-01T00:00", "invalid-instant", "between the years"),
    ("RRULE:FREQ=FORTNIGHTLY", "invalid-rrule", "WEEKLY"),
    ("RRULE:INTERVAL=2", "invalid-rrule", "FREQ is missing"),
    ("RRULE:FREQ=DAILY;COUNT=2;UNTIL=20260101", "invalid-rrule", "Allowed here: one of the two"),
    ("RRULE:FREQ=DAILY;BYDAY=2MO", "invalid-rrule", "MO without a number"),
    ("RRULE:FREQ=MONTHLY;BYWEEKNO=3", "invalid-rrule", "weeks of the year with FREQ=YEARLY"),
    ("RRULE:FREQ=DAILY;BYHOUR=24", "invalid-rrule", "0 to 23"),
    ("RRULE:FREQ=DAILY;FREQ=DAILY", "invalid-rrule", "given twice"),
    ("RRULE:FREQ=SECONDLY;INTERVAL=2;BYSECOND=1", "invalid-rrule", "name the times themselves"),
    ("(0 9 * * * | 0 10 * * *", "invalid-schedule", "brackets"),
    ("%s", "invalid-schedule", "cannot begin a schedule"),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(text: str, code: str, words: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text, calendars=KNOWN)

    assert caught.value.code == code
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("0 0 30 2 *", "Name days that come"),
        ("0 9 1 1 * starts=2026-01-02 ends=2026-12-01", "Let it start earlier or end later"),
        ("0 9 * * 0 only=office", "Say when it shall run"),
    ],
)
def test_what_never_fires_is_refused_with_a_remedy(text: str, remedy: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text, calendars=KNOWN)

    assert (caught.value.code, remedy in (caught.value.hint or "")) == ("never-fires", True)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("0 9 * * * spread=5m", "spread", timedelta(minutes=10)),
        ("0 9 * * * spread=5m", "spread", "10m"),
        ("0 9 * * * starts=2027-01-01", "starts_at", utc("2027-01-02")),
        ("0 9 * * * ends=2027-01-01", "ends_at", utc("2027-01-02")),
        ("0 9 * * * starts=2027-01-01 runs=3", "max_runs", 4),
        ("every hour until 2027-03-01", "ends_at", utc("2027-01-02")),
    ],
)
def test_a_text_and_an_argument_that_contradict_are_refused(text: str, field: str, value: object) -> None:
    with pytest.raises(InvalidSchedule, match="as an argument") as caught:
        parse(text, **{field: value})  # type: ignore[arg-type]

    assert (caught.value.code, caught.value.fields["field"]) == ("contradictory-settings", field)
    assert parse(text, defaults={field: value}) == parse(text), "what a schedule had before is no contradiction"


def test_a_text_and_an_argument_that_agree_are_one() -> None:
    same = parse("0 9 * * * spread=5m starts=2027-01-01", spread="300s", starts_at=utc("2027-01-01T01:00+01:00"))
    assert same == parse("0 9 * * * spread=5m starts=2027-01-01")
    assert parse("0 9 * * *", spread="5m", defaults={"spread": timedelta(1), "ends_at": utc("2030-01-01")}) == parse(
        "0 9 * * * spread=5m ends=2030-01-01"
    )


def test_a_spread_is_a_day_at_most_but_a_longer_one_that_is_stored_stays_readable() -> None:
    day = parse("0 9 * * *", spread=timedelta(days=1))
    with pytest.raises(InvalidSchedule, match="at most a day") as caught:
        parse("0 9 1 * *", spread=timedelta(days=365))
    assert (caught.value.fields["field"], caught.value.fields["value"]) == ("spread", "365 days")
    assert caught.value.hint

    stored = schedule_of(day.as_document() | {"spread": "PT8760H"})
    assert stored.spread == timedelta(days=365)
    assert schedule_of(stored.as_document()) == stored
    assert stored.words
    assert stored.next_after(utc("2026-01-01")) is not None


@pytest.mark.parametrize("text", ["@every 1.5h", "1.5h", "1.5 hours", "90m", "PT1H30M"])
def test_hours_need_not_be_whole(text: str) -> None:
    assert parse(text).text == "PT1H30M"


@pytest.mark.parametrize("text", ["@quarterly", "@fortnightly", "@biweekly", "@sunday", "@semidaily", "@dail y"])
def test_a_macro_that_is_merely_alike_is_not_offered(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="is not known") as caught:
        parse(text)

    assert "Did you mean" not in (caught.value.hint or "")


def test_an_instant_that_the_clock_skips_is_offered_with_all_around_it() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse("2026-03-01T09:00, 2026-03-29T02:30 zone=Europe/Berlin")
    assert caught.value.fields["suggestion"] == "2026-03-01T09:00, 2026-03-29T03:30:00 zone=Europe/Berlin"
    with pytest.raises(InvalidSchedule) as caught:
        parse("0 9 * * * zone=Europe/Berlin starts=2026-03-29T02:30 spread=5m")
    assert caught.value.fields["suggestion"] == "0 9 * * * zone=Europe/Berlin starts=2026-03-29T03:30:00 spread=5m"


def test_a_move_is_for_blackouts_only() -> None:
    with pytest.raises(InvalidSchedule, match="is for blackouts only"):
        CalendarUse(calendar=NIGHT, use=Use.EXCLUDE, then=BlackoutPolicy.MOVE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("when", "0 9 * * *"),
        ("zone", ["UTC"]),
        ("gap", "skip"),
        ("repeat", None),
        ("calendars", ("holidays",)),
        ("spread", 5),
        ("starts_at", datetime(2026, 1, 1)),  # noqa: DTZ001 - that is what is wrong with it
        ("ends_at", "tomorrow"),
        ("max_runs", True),
    ],
)
def test_values_of_the_wrong_kind_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Schedule(**{"when": parse("@daily").when, field: value})  # type: ignore[arg-type]

    assert caught.value.fields["field"] == field


def test_a_schedule_that_was_asked_can_be_copied_and_sent_elsewhere() -> None:
    schedule = parse("H 9 * * * starts=2026-01-01 runs=3", zone="Europe/Berlin")
    asked = schedule.next_after(utc("2026-01-01"), job="backup")

    for twin in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        assert twin == schedule
        assert twin.next_after(utc("2026-01-01"), job="backup") == asked
