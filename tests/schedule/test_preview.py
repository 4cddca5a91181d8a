"""Previews: the next occurrences, and notes where daylight saving, a calendar or a bound changed something."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schedule.asking import utc
from tests.schedule.strategies import instants, schedules

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.cron import Cron
from mainspring.schedule.preview import preview
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse
from mainspring.schedule.year import LEVELS, Year, heat_map, year_of
from mainspring.schedule.zones import TZDATA_VERSION

CALENDARS = {
    "holidays": Calendar(name="holidays", dates=frozenset({date(2026, 12, 25)}), yearly=frozenset({(1, 1)})),
    "freeze": Calendar(name="freeze", ranges=((date(2026, 12, 20), date(2027, 1, 3)),)),
    "office": Calendar(name="office", weekdays=frozenset(range(5))),
}
BERLIN = "zone=Europe/Berlin"
LAST_OF_MARCH, LAST_OF_OCTOBER = "2026-03-27T12:00", "2026-10-24T12:00"  # two days before clocks jump


def lines(text: str, after: str, count: int = 3, job: str = "") -> list[str]:
    """The entries as a person reads them: those that do not fire in brackets."""
    shown = []
    for entry in preview(parse(text, calendars=CALENDARS), after=utc(after), count=count, job=job).entries:
        line = f"{entry.local_at:%m-%d %H:%M} {'; '.join(entry.notes)}".rstrip()
        shown.append(line if entry.fires else f"({line})")
    return shown


# ── daylight saving ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("gap", "shown"),
    [
        ("as-cron", "03-29 03:00 02:30 does not exist on 29 March; runs at 03:00"),
        ("run-after", "03-29 03:00 02:30 does not exist on 29 March; runs at 03:00"),
        ("shift", "03-29 03:30 02:30 does not exist on 29 March; runs at 03:30"),
        ("skip", "(03-29 02:30 02:30 does not exist on 29 March; skipped)"),
    ],
)
def test_a_time_that_does_not_exist_is_told(gap: str, shown: str) -> None:
    assert lines(f"30 2 * * * {BERLIN} gap={gap}", LAST_OF_MARCH)[:2] == ["03-28 02:30", shown]


def test_several_times_in_a_gap_run_once() -> None:
    assert lines(f"0,30 2 * * * {BERLIN}", "2026-03-28T12:00", 2) == [
        "03-29 03:00 02:00 and 02:30 do not exist on 29 March; run once, at 03:00",
        "03-30 02:00",
    ]


@pytest.mark.parametrize(
    ("repeat", "shown"),
    [
        ("as-cron", ["10-25 02:30 02:30 comes twice on 25 October; runs the first time only"]),
        ("first", ["10-25 02:30 02:30 comes twice on 25 October; runs the first time only"]),
        ("second", ["10-25 02:30 02:30 comes twice on 25 October; runs the second time only"]),
        (
            "both",
            [
                "10-25 02:30 02:30 comes twice on 25 October; this is the first",
                "10-25 02:30 02:30 comes twice on 25 October; this is the second",
            ],
        ),
    ],
)
def test_a_time_that_comes_twice_is_told(repeat: str, shown: list[str]) -> None:
    found = lines(f"30 2 * * * {BERLIN} repeat={repeat}", LAST_OF_OCTOBER)

    assert [line.removesuffix("; clocks went back by 1 hour") for line in found[: len(shown)]] == shown


def test_wildcards_follow_elapsed_time_and_say_only_that_clocks_jumped() -> None:
    assert lines(f"*/30 * * * * {BERLIN}", "2026-03-29T00:10", 3) == [
        "03-29 01:30",
        "03-29 03:00 clocks went forward by 1 hour",
        "03-29 03:30",
    ]


def test_the_first_occurrence_after_a_jump_says_so() -> None:
    assert lines(f"0 9 * * * {BERLIN}", LAST_OF_OCTOBER, 2)[0] == "10-25 09:00"
    assert lines(f"0 9 * * * {BERLIN}", "2026-10-23T12:00", 2)[1] == "10-25 09:00 clocks went back by 1 hour"


def test_a_day_that_was_left_out() -> None:
    assert lines("0 9 * * * zone=Pacific/Apia", "2011-12-29T12:00", 3) == [
        "12-29 09:00",
        "12-31 00:00 09:00 does not exist on 30 December; runs at 00:00 on 31 December",
        "12-31 09:00",
    ]


# ── calendars, bounds, spread, short months ─────────────────────────────────────────────────────────────────


def test_what_a_calendar_drops_is_shown_with_its_reason() -> None:
    assert lines(f"0 9 * * 1-5 not=holidays {BERLIN}", "2026-12-24T12:00", 1) == [
        "(12-25 09:00 dropped: within the calendar holidays)",
        "12-28 09:00",
    ]
    assert lines("0 9 * * * only=office", "2026-11-20T12:00", 1) == [
        "(11-21 09:00 dropped, and 1 after it: not within the calendar office)",
        "11-23 09:00",
    ]


def test_what_a_blackout_drops_or_moves_is_shown() -> None:
    assert lines("0 9 * * 1-5 blackout=freeze", "2026-12-18T12:00", 1) == [
        "(12-21 09:00 dropped, and 9 after it: within the blackout freeze)",
        "01-04 09:00",
    ]
    assert lines("0 9 * * 1-5 blackout=freeze:move", "2026-12-18T12:00", 2) == [
        "01-04 00:00 moved from 21 December 2026 at 09:00 by the blackout freeze",
        "01-04 09:00",
    ]


def test_a_month_that_is_too_short_is_told() -> None:
    assert lines("P1M/2026-01-31T12:00", "2026-02-01T00:00", 2) == ["02-28 12:00 February has no 31st", "03-31 12:00"]


def test_a_delay_by_the_spread_is_told() -> None:
    (entry,) = preview(parse("0 9 * * * spread=10m"), after=utc("2026-11-16"), count=1, job="a-job").entries

    assert entry.nominal_at == utc("2026-11-16T09:00")
    assert entry.nominal_at < entry.due_at < utc("2026-11-16T09:10")
    assert entry.notes[0].startswith("delayed by ")


@pytest.mark.parametrize(
    ("settings", "remarks"),
    [
        ("starts=2026-12-01T00:00", ["Nothing before 1 December 2026 at 00:00, where it starts."]),
        ("ends=2026-11-18T00:00", ["Nothing from 18 November 2026 at 00:00 on, where it ends."]),
        (
            "starts=2026-12-01T00:00 runs=2",
            [
                "Nothing before 1 December 2026 at 00:00, where it starts.",
                "Nothing after that: it runs 2 times at most.",
            ],
        ),
    ],
)
def test_bounds_are_told(settings: str, remarks: list[str]) -> None:
    found = preview(parse(f"0 9 * * * {settings}"), after=utc("2026-11-16"), count=5)

    assert list(found.remarks) == remarks


def test_what_never_fires_says_so() -> None:
    found = preview(Schedule(when=Cron.parse("0 0 30 2 *")), after=utc("2026-11-16"))

    assert found.entries == ()
    assert found.remarks[0].startswith("It never fires: ")


def test_a_schedule_previews_itself() -> None:
    schedule = parse("0 9 * * *")

    assert schedule.preview(utc("2026-11-16"), count=3) == preview(schedule, after=utc("2026-11-16"), count=3)


def test_the_answer_names_its_tzdata() -> None:
    assert preview(parse("0 9 * * *"), after=utc("2026-11-16")).tzdata == TZDATA_VERSION


@pytest.mark.parametrize("count", [0, -1, 1_001])
def test_the_count_is_bounded(count: int) -> None:
    with pytest.raises(InvalidSchedule, match="must be from 1 to 1,000"):
        preview(parse("0 9 * * *"), after=utc("2026-11-16"), count=count)


@given(schedules, instants, st.integers(1, 5))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=25)
def test_a_preview_fires_when_the_schedule_does(schedule: Schedule, after: datetime, count: int) -> None:
    try:
        wanted: list[tuple[datetime, datetime]] = []
        at = schedule.next_after(after)
        while at is not None and len(wanted) < count:
            wanted.append((at.nominal_at, at.due_at))
            at = schedule.next_after(at.nominal_at)
        found = preview(schedule, after=after, count=count)
    except InvalidSchedule as error:
        if error.code != "schedule-too-sparse":
            raise
    else:
        assert [(each.nominal_at, each.due_at) for each in found.entries if each.fires] == wanted


# ── a year at a glance ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "total", "most_in_a_day", "most_in_a_minute"),
    [
        ("0 9 * * 1-5", 261, 1, 1),
        ("* * * * *", 365 * 1440, 1440, 1),
        ("* * * * * *", 365 * 86_400, 86_400, 60),
        (f"* * * * * {BERLIN}", 365 * 1440, 1500, 1),
        (f"*/20 * * * * * {BERLIN}", 365 * 4320, 4500, 3),
        (f"30 2 * * * {BERLIN} gap=skip", 364, 1, 1),
        (f"30 2 * * * {BERLIN} repeat=both", 366, 2, 1),
        ("0 9 * * * | 0 9 * * 1-5 | 30 9 1 * *", 365 + 12, 2, 1),
        ("0 9 * * * not=holidays", 363, 1, 1),
        ("*/10 * * * * starts=2026-12-31T12:00", 72, 72, 1),
        ("* * * * * * starts=2026-12-31T23:59:30", 30, 30, 30),
        ("* * * * * | 0 0 29 2 *", 365 * 1440, 1440, 1),
        (f"*/10 * * * * * | 5 0 3 * * * {BERLIN}", 365 * 8640 + 365, 9001, 7),
        ("PT1H", 8760, 24, 1),
        ("H H * * *", 365, 1, 1),
    ],
)
def test_a_year_is_counted_by_local_days(text: str, total: int, most_in_a_day: int, most_in_a_minute: int) -> None:
    year = year_of(parse(text, calendars=CALENDARS), 2026)

    assert (year.total, year.most_in_a_day, year.most_in_a_minute) == (total, most_in_a_day, most_in_a_minute)
    assert year.counted_until is None


def test_too_many_to_count_says_until_when_it_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.year.MAX_COUNTED", 100)
    year = year_of(parse("PT1H | 30 12 * * *"), 2026)

    assert year.counted_until == date(2026, 1, 4)
    assert set(year.counts) == {date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)}
    assert year.busiest_minute == datetime(2026, 1, 1, tzinfo=UTC)


def test_years_are_bounded() -> None:
    with pytest.raises(InvalidSchedule, match="must be from 1970 to 2100"):
        year_of(parse("0 9 * * *"), 3000)


def test_the_heat_map_has_a_row_for_each_weekday_and_a_column_for_each_week() -> None:
    drawn = heat_map(year_of(parse("0 9 * * 1-5 | 0 10-12 * * 3"), 2026))

    assert [name for name, _ in drawn.rows] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert {len(row) for _, row in drawn.rows} == {53}
    assert [row[10] for _, row in drawn.rows] == [1, 1, LEVELS, 1, 1, 0, 0]
    assert [row[0] for _, row in drawn.rows] == [None, None, None, 1, 1, 0, 0], "2026 begins on a Thursday"
    assert drawn.months[:3] == ((0, "Jan"), (4, "Feb"), (8, "Mar"))


def test_the_heat_map_of_an_empty_year_is_empty() -> None:
    year = Year(
        year=2026, counts={}, busiest_minute=None, most_in_a_minute=0, counted_until=None, tzdata=TZDATA_VERSION
    )

    assert {level for _, row in heat_map(year).rows for level in row} == {0, None}
