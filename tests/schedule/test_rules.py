"""Recurrence rules: which days and times they name, at both ends of the calendar too, and what a search may cost."""

# ruff: noqa: DTZ001 - walls are naive

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from dateutil.rrule import rrulestr
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.schedule.asking import utc, walls
from tests.schedule.slow_rules import WEEKDAYS, slow_days

from mainspring.errors import InvalidSchedule
from mainspring.schedule.rule import Rule
from mainspring.schedule.text import parse
from mainspring.schedule.timeline import MAX_STEPS, begin_search, steps_taken
from mainspring.schedule.zones import zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.schedule.schedule import Occurrence, Schedule

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
UTC_ZONE = zone_named("UTC")


# ── days ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=MONTHLY;BYDAY=FR,1MO", ["11-02", "11-06", "11-13", "11-20", "11-27", "12-04", "12-07", "12-11"]),
        ("FREQ=MONTHLY;BYDAY=TU,4TU", ["11-03", "11-10", "11-17", "11-24", "12-01", "12-08"]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=MO,-1FR", ["11-02", "11-09", "11-16", "11-23", "11-27", "11-30"]),
        ("FREQ=YEARLY;BYWEEKNO=46,50", ["11-12", "12-10"]),  # Thursdays, like DTSTART
        ("FREQ=YEARLY;BYWEEKNO=46;BYDAY=SA", ["11-14"]),
        ("FREQ=YEARLY;BYWEEKNO=46,50;BYMONTHDAY=12", ["11-12", "12-12"]),
        (
            "FREQ=YEARLY;BYMONTHDAY=1",
            ["11-01", "12-01"],
        ),  # every month: BYMONTHDAY expands a year, it does not limit it
    ],
)
def test_days_of_rules(rule: str, expected: list[str]) -> None:
    schedule = parse(f"DTSTART:20260101T000000 RRULE:{rule}")

    found = [each.removesuffix(" 00:00") for each in walls(schedule, "2026-11-01", "2026-12-14")]
    assert found == [f"2026-{day}" for day in expected]


def test_a_year_may_have_a_53rd_saturday() -> None:
    assert walls(parse("RRULE:FREQ=YEARLY;BYDAY=53SA"), "2011-01-01", "2023-01-01") == [
        "2011-12-31 00:00",
        "2016-12-31 00:00",
        "2022-12-31 00:00",
    ]


def _numbers(least: int, most: int) -> st.SearchStrategy[str]:
    both = st.integers(least, most) | st.integers(-most, -least)
    return st.lists(both, min_size=1, max_size=4).map(lambda found: ",".join(map(str, found)))


@st.composite
def day_rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]))
    optional = {
        "INTERVAL": st.sampled_from(["2", "3", "5", "12"]),
        "WKST": st.sampled_from(WEEKDAYS),
        "BYMONTH": st.lists(st.integers(1, 12), min_size=1, max_size=4).map(lambda found: ",".join(map(str, found))),
        "BYMONTHDAY": _numbers(1, 31),
        "BYYEARDAY": _numbers(1, 366),
    }
    parts = {key: draw(value) for key, value in optional.items() if draw(st.integers(0, 2)) == 0}
    if frequency == "YEARLY" and draw(st.booleans()):
        parts["BYWEEKNO"] = draw(_numbers(1, 53))
    if draw(st.booleans()):
        may_be_numbered = frequency in ("YEARLY", "MONTHLY") and "BYWEEKNO" not in parts
        places = st.sampled_from(["", "", "1", "2", "5", "-1", "-5", "20", "53", "-53"] if may_be_numbered else [""])
        days = st.lists(st.builds("{}{}".format, places, st.sampled_from(WEEKDAYS)), min_size=1, max_size=4)
        parts["BYDAY"] = ",".join(draw(days))
    if frequency != "DAILY" and draw(st.integers(0, 2)) == 0:
        parts["BYSETPOS"] = draw(_numbers(1, 8))
    return ";".join([f"FREQ={frequency}", *(f"{key}={value}" for key, value in parts.items())])


@quick
@given(day_rules(), st.dates(date(1995, 1, 1), date(2030, 12, 31)))
@example("FREQ=YEARLY;BYWEEKNO=-53,1;WKST=SA;INTERVAL=2", date(2000, 1, 1))
@example("FREQ=YEARLY;BYDAY=MO,-53TH,1SU;BYSETPOS=1,-1", date(2015, 12, 31))
@example("FREQ=WEEKLY;BYSETPOS=-1;BYDAY=MO,WE,SU;WKST=WE;INTERVAL=2", date(2020, 12, 29))
def test_days_are_those_that_every_sentence_of_the_standard_allows(rule: str, starts: date) -> None:
    end = starts + timedelta(days=600)
    pattern = Rule.parse(rule, datetime.combine(starts, datetime.min.time())).pattern(UTC_ZONE)

    forth: list[date] = []
    begin_search()
    found = pattern.next_wall(datetime.combine(starts, datetime.min.time()) - timedelta(seconds=1))
    while found is not None and found.date() < end:
        forth.append(found.date())
        begin_search()
        found = pattern.next_wall(found)
    back: list[date] = []
    begin_search()
    found = pattern.prev_wall(datetime.combine(end, datetime.min.time()))
    while found is not None:
        back.append(found.date())
        begin_search()
        found = pattern.prev_wall(found)

    assert forth == slow_days(rule, starts, end)
    assert back[::-1] == forth


# ── times of day, and counting ──────────────────────────────────────────────────────────────────────────────


TIMED = [
    "FREQ=HOURLY;INTERVAL={};BYMINUTE=0,30",
    "FREQ=HOURLY;INTERVAL={};BYDAY=SA,SU;BYSECOND=5,50",
    "FREQ=MINUTELY;INTERVAL={};BYHOUR=2,9,10",
    "FREQ=MINUTELY;INTERVAL={};BYSECOND=0,59",
    "FREQ=SECONDLY;INTERVAL={};BYHOUR=0,23",
    "FREQ=DAILY;INTERVAL={};BYHOUR=0,9,23;BYMINUTE=5,55",
    "FREQ=WEEKLY;INTERVAL={};BYHOUR=9,17",
]


@quick
@given(
    st.sampled_from(TIMED),
    st.sampled_from([1, 2, 5, 7, 24, 25, 90, 1000]),
    st.sampled_from(["", ";COUNT=1", ";COUNT=7", ";COUNT=40"]),
    st.datetimes(datetime(2024, 1, 1), datetime(2024, 3, 1)).map(lambda at: at.replace(microsecond=0)),
)
def test_times_of_day_and_counts_are_those_of_dateutil(rule: str, interval: int, count: str, starts: datetime) -> None:
    text = rule.format(interval) + count
    expected = list(islice(rrulestr(text, dtstart=starts), 40))
    schedule = parse(f"DTSTART:{starts:%Y%m%dT%H%M%S} RRULE:{text}")

    found = [each.nominal_at.replace(tzinfo=None) for each in islice(_all(schedule), 40)]
    assert found == expected
    before = schedule.prev_before(expected[-1].replace(tzinfo=UTC) + timedelta(seconds=1))
    assert before is not None
    assert before.nominal_at.replace(tzinfo=None) == expected[-1]


def _all(schedule: Schedule) -> Iterator[Occurrence]:
    return schedule.between(utc("1900-01-01"), utc("2499-01-01"))


# ── the ends of the calendar ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("frequency", ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
@pytest.mark.parametrize("rest", ["", ";INTERVAL=7", ";INTERVAL=9999", ";COUNT=3", ";UNTIL=00010101T000000Z"])
@pytest.mark.parametrize("starts", ["00010101T000000", "00010107T235959", "99991231T235959"])
def test_a_rule_may_begin_at_the_ends_of_the_calendar(frequency: str, rest: str, starts: str) -> None:
    text = f"DTSTART:{starts} RRULE:FREQ={frequency}{rest}"
    rule = Rule.parse(text)

    assert rule.text == text
    assert Rule.parse(rule.text) == rule
    try:
        schedule = parse(text)
    except InvalidSchedule as error:
        is_over = "COUNT" in rest or "UNTIL" in rest or "9999" in starts
        assert error.code == "never-fires"  # noqa: PT017
        assert is_over or (rest == ";INTERVAL=9999" and frequency in ("YEARLY", "MONTHLY")), text
    else:
        assert schedule.next_after(utc("2026-01-01")) is not None
        assert schedule.prev_before(utc("2026-01-01")) is not None
        assert schedule.words


def test_counting_begins_at_the_very_first_second() -> None:
    schedule = parse("DTSTART:00010101T000000 RRULE:FREQ=YEARLY;COUNT=1901")

    assert walls(schedule, "1900-01-01", "2000-01-01") == ["1901-01-01 00:00"]


# ── any text ────────────────────────────────────────────────────────────────────────────────────────────────


VALUES = ["0", "1", "-1", "2", "7", "13", "24", "29", "31", "-31", "52", "53", "-53", "59", "60", "365", "366", "-366",
          "9999", "10000", "MO", "SU", "1MO", "-1FR", "5SA", "53SA", "-53SA", "54SA", "0MO", "YEARLY", "DAILY",
          "HOURLY", "SECONDLY", "00010101", "00010101T000000Z", "20260329T023000", "99991231T235959Z",
          "20261225T090000Z", "19000101", "25000101", "", "x", "٣"]  # fmt: skip
NAMES = ["INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY", "BYHOUR",
         "BYMINUTE", "BYSECOND", "BYSETPOS"]  # fmt: skip
FITTING = {
    "INTERVAL": ["1", "2", "7", "12", "168", "9999"], "COUNT": ["1", "7", "9999"], "WKST": WEEKDAYS,
    "UNTIL": ["00010101", "20260329T013000Z", "20301231", "99991231T235959Z"], "BYMONTH": ["1", "2", "12"],
    "BYWEEKNO": ["1", "20", "53", "-1", "-53"], "BYYEARDAY": ["1", "60", "366", "-366"],
    "BYMONTHDAY": ["1", "13", "29", "30", "31", "-1", "-31"],
    "BYDAY": ["MO", "SA", "SU", "1MO", "-1FR", "5SA", "53SA", "-53SA"], "BYHOUR": ["0", "2", "23"],
    "BYMINUTE": ["0", "30", "59"], "BYSECOND": ["0", "59"], "BYSETPOS": ["1", "-1", "5", "366", "-366"],
}  # fmt: skip
DATES = ["00010101T000000", "00010107", "18991231", "20260101T090000", "20260329T023000", "20261025T023000Z",
         "20111230T120000", "24991231T235959", "99991231T235959Z"]  # fmt: skip
ZONES = ["", ";TZID=Europe/Berlin", ";TZID=Pacific/Apia", ";TZID=UTC", ";VALUE=DATE", ";TZID=Nowhere"]


@st.composite
def rule_texts(draw: st.DrawFn) -> str:
    fits = draw(st.integers(0, 3)) > 0
    names = draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=fits))
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]))
    parts = [f"FREQ={frequency}"]
    for name in names:
        values = st.sampled_from(FITTING[name] if fits else VALUES)
        most = 1 if name in ("INTERVAL", "COUNT", "UNTIL", "WKST") and fits else 4
        parts.append(f"{name}={','.join(draw(st.lists(values, min_size=1, max_size=most)))}")
    properties = [f"RRULE:{';'.join(parts)}"]
    for name in draw(st.lists(st.sampled_from(["DTSTART", "RDATE", "EXDATE"]), max_size=3)):
        dates = draw(st.lists(st.sampled_from(DATES), min_size=1, max_size=1 if name == "DTSTART" else 3))
        properties.append(f"{name}{draw(st.sampled_from(ZONES))}:{','.join(dates)}")
    return " ".join(draw(st.permutations(properties))) + draw(
        st.sampled_from(["", " zone=Europe/Berlin", " gap=shift"])
    )


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(rule_texts(), st.sampled_from(["1900-01-01", "2011-12-30", "2026-03-29T01:00", "2500-01-01"]))
@example("RRULE:FREQ=YEARLY;BYDAY=53SA", "2026-03-29")
@example("DTSTART:00010101T000000 RRULE:FREQ=WEEKLY;WKST=SU;BYSETPOS=1", "2026-03-29")
@example("DTSTART:99991231T235959 RRULE:FREQ=SECONDLY RDATE:20260101", "2026-03-29")
@example("DTSTART:05000101T000000 RRULE:FREQ=YEARLY;UNTIL=09990101T000000Z RDATE:20260101", "2026-03-29")
def test_any_rule_is_a_schedule_or_an_error_with_a_code(text: str, at: str) -> None:
    try:
        schedule = parse(text)
        assert schedule.words.endswith((".", "…"))
        assert parse(schedule.text) == schedule
        following, before = schedule.next_after(utc(at)), schedule.prev_before(utc(at))
    except InvalidSchedule as error:
        known = {"invalid-rrule", "never-fires", "unknown-zone", "schedule-too-sparse", "schedule-too-large"}
        assert error.code in known, error  # noqa: PT017 - any other exception is what this test looks for
    else:
        assert following is None or following.nominal_at > utc(at)
        assert before is None or before.nominal_at < utc(at)


# ── what it costs ───────────────────────────────────────────────────────────────────────────────────────────


COSTS = [
    ("DTSTART:20260117T031700 RRULE:FREQ=DAILY", 20),  # which no other test asks: answers are remembered
    ("RRULE:FREQ=YEARLY;INTERVAL=9999", 20),
    ("RRULE:FREQ=DAILY;BYHOUR=0,9,23;BYMINUTE=5;COUNT=10000", 2_000),
    ("RRULE:FREQ=SECONDLY;COUNT=10000", 3_000),
    ("RRULE:FREQ=HOURLY;INTERVAL=24;COUNT=10000", 3_000),
    ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", 100),
]


@pytest.mark.parametrize(("text", "most"), COSTS, ids=[text for text, _ in COSTS])
def test_a_rule_is_found_in_few_steps(text: str, most: int) -> None:
    parse(text)

    assert 0 < steps_taken() <= most


EXPENSIVE = [
    "RRULE:FREQ=HOURLY;INTERVAL=168;BYDAY=TU",
    "RRULE:FREQ=MINUTELY;INTERVAL=1440;BYHOUR=3",
    "DTSTART:00010101T000000 RRULE:FREQ=WEEKLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29;BYSETPOS=1;COUNT=10000",
    " | ".join(f"FREQ=DAILY;COUNT={9_000 + n}" for n in range(64)),
    " | ".join(f"FREQ=SECONDLY;COUNT={9_000 + n}" for n in range(64)),
    " | ".join(f"FREQ=DAILY;INTERVAL={n + 2};BYMONTH=2;BYMONTHDAY=30" for n in range(64)),
]


@pytest.mark.parametrize("text", EXPENSIVE, ids=lambda text: text[:60])
def test_what_takes_too_many_steps_is_refused_every_time(text: str) -> None:
    """Also when a part of the work is remembered from the time before: the answer must not depend on who asked."""
    taken = []
    for _ in range(3):
        with pytest.raises(InvalidSchedule) as caught:
            parse(text)
        assert caught.value.code == "never-fires"
        taken.append(steps_taken())

    assert len(set(taken)) == 1
    assert MAX_STEPS < taken[0] <= MAX_STEPS + 3_000  # it stops at the first that cannot be afforded
