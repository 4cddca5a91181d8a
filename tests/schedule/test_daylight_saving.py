"""The days on which clocks jump, by name, under every policy."""

from __future__ import annotations

import pytest
from tests.schedule.asking import instants, walls, walls_before

from mainspring.schedule.text import parse
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy

SPRING = ("2026-03-28T12:00", "2026-03-29T12:00")  # Europe/Berlin: 02:00 becomes 03:00 at 01:00 UTC
AUTUMN = ("2026-10-24T12:00", "2026-10-25T12:00")  # Europe/Berlin: 03:00 becomes 02:00 at 01:00 UTC


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (GapPolicy.AS_CRON, ["2026-03-29 03:00"]),
        (GapPolicy.RUN_AFTER, ["2026-03-29 03:00"]),
        (GapPolicy.SHIFT, ["2026-03-29 03:30"]),
        (GapPolicy.SKIP, []),
    ],
)
def test_a_fixed_time_in_the_gap(gap: GapPolicy, expected: list[str]) -> None:
    assert walls(parse("30 2 * * *", zone="Europe/Berlin", gap=gap), *SPRING) == expected


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        (RepeatPolicy.AS_CRON, ["2026-10-25 00:30"]),
        (RepeatPolicy.FIRST, ["2026-10-25 00:30"]),
        (RepeatPolicy.SECOND, ["2026-10-25 01:30"]),
        (RepeatPolicy.BOTH, ["2026-10-25 00:30", "2026-10-25 01:30"]),
    ],
)
def test_a_fixed_time_that_comes_twice(repeat: RepeatPolicy, expected: list[str]) -> None:
    assert instants(parse("30 2 * * *", zone="Europe/Berlin", repeat=repeat), *AUTUMN) == expected


def test_several_fixed_times_in_the_gap_run_once_after_it() -> None:
    assert walls(parse("0,20,40 2,3 * * *", zone="Europe/Berlin"), *SPRING) == [
        "2026-03-29 03:00",
        "2026-03-29 03:20",
        "2026-03-29 03:40",
    ]


def test_shifted_times_keep_their_order_among_the_others() -> None:
    schedule = parse("10,50 2,3 * * *", zone="Europe/Berlin", gap=GapPolicy.SHIFT)

    assert walls(schedule, *SPRING) == ["2026-03-29 03:10", "2026-03-29 03:50"]


@pytest.mark.parametrize("text", ["*/30 * * * *", "30 * * * *", "0 */2 * * *"])
def test_wildcards_follow_elapsed_time_through_both_jumps(text: str) -> None:
    schedule = parse(text, zone="Europe/Berlin")
    skipping = parse(text, zone="Europe/Berlin", gap=GapPolicy.SKIP, repeat=RepeatPolicy.BOTH)

    for days in (SPRING, AUTUMN):
        assert instants(schedule, *days) == instants(skipping, *days)


def test_every_half_hour_is_every_half_hour_of_elapsed_time() -> None:
    for days in (SPRING, AUTUMN):
        assert len(instants(parse("*/30 * * * *", zone="Europe/Berlin"), *days)) == 48


def test_lord_howe_shifts_by_half_an_hour() -> None:
    # 02:00 becomes 02:30 on 4 October 2026; 02:00 becomes 01:30 on 5 April 2026.
    assert walls(parse("15 2 * * *", zone="Australia/Lord_Howe"), "2026-10-03T12:00", "2026-10-04T02:00") == [
        "2026-10-04 02:30"
    ]
    both = parse("45 1 * * *", zone="Australia/Lord_Howe", repeat=RepeatPolicy.BOTH)
    assert instants(both, "2026-04-04T12:00", "2026-04-05T02:00") == ["2026-04-04 14:45", "2026-04-04 15:15"]


def test_apia_lost_a_whole_friday() -> None:
    # Samoa went from Thursday, 29 December 2011, straight to Saturday the 31st: a gap of 24 hours.
    fixed = parse("30 9 * * *", zone="Pacific/Apia")
    assert walls(fixed, "2011-12-29T00:00", "2011-12-31T12:00") == [
        "2011-12-29 09:30",
        "2011-12-31 00:00",  # Friday's, right after the gap
        "2011-12-31 09:30",
    ]
    fridays = parse("0 0 * * 5", zone="Pacific/Apia", gap=GapPolicy.SKIP)
    assert walls(fridays, "2011-12-20T00:00", "2012-01-10T00:00") == ["2011-12-23 00:00", "2012-01-06 00:00"]


@pytest.mark.parametrize(
    ("gap", "of_the_lost_day"),
    [
        (GapPolicy.AS_CRON, ["1995-01-01 00:00"]),
        (GapPolicy.SHIFT, []),  # it runs together with the next one
        (GapPolicy.SKIP, []),
    ],
)
def test_kiritimati_lost_the_last_day_of_a_year(gap: GapPolicy, of_the_lost_day: list[str]) -> None:
    # Kiribati went from 30 December 1994 straight to 1 January 1995.
    schedule = parse("59 23 * * *", zone="Pacific/Kiritimati", gap=gap)
    expected = ["1994-12-30 23:59", *of_the_lost_day, "1995-01-01 23:59", "1995-01-02 23:59"]

    assert walls(schedule, "1994-12-30T12:00", "1995-01-02T12:00") == expected
    assert walls_before(schedule, "1995-01-02T12:00", len(expected)) == expected[::-1]


def test_casablanca_has_winter_time_in_ramadan() -> None:
    # Ramadan 2026: clocks go back on 15 February, and forward on 22 March.
    schedule = parse("30 2 * * *", zone="Africa/Casablanca")
    assert instants(schedule, "2026-02-14T00:00", "2026-02-16T12:00") == [
        "2026-02-14 01:30",
        "2026-02-15 01:30",
        "2026-02-16 02:30",
    ]
    assert walls(schedule, "2026-03-22T00:00", "2026-03-23T00:00") == ["2026-03-22 03:00"]


def test_troll_jumps_by_two_hours() -> None:
    schedule = parse("0,30 1,2 * * *", zone="Antarctica/Troll")
    assert walls(schedule, "2026-03-29T00:00", "2026-03-29T12:00") == ["2026-03-29 03:00"]
    both = parse("30 1 * * *", zone="Antarctica/Troll", repeat=RepeatPolicy.BOTH)
    assert instants(both, "2026-10-24T12:00", "2026-10-25T12:00") == ["2026-10-24 23:30", "2026-10-25 01:30"]


def test_kathmandu_is_five_hours_and_three_quarters_ahead() -> None:
    assert instants(parse("0 9 * * *", zone="Asia/Kathmandu"), "2026-01-01", "2026-01-02") == ["2026-01-01 03:15"]
    # Until 1986 it was half an hour less: the clock jumped from 00:00 to 00:15.
    assert walls(parse("10 0 * * *", zone="Asia/Kathmandu"), "1985-12-31T12:00", "1986-01-01T12:00") == [
        "1986-01-01 00:15"
    ]


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Asia/Beirut"])
def test_where_midnight_does_not_exist_the_day_begins_after_the_gap(zone: str) -> None:
    day = "2018-11-04" if zone == "America/Sao_Paulo" else "2018-03-25"

    found = [wall for wall in walls(parse("0 0 * * *", zone=zone), f"{day[:8]}01", f"{day}T12:00") if day in wall]

    assert found == [f"{day} 01:00"]


def test_a_time_that_always_falls_into_the_gap_never_fires_when_gaps_are_skipped() -> None:
    # The second Sunday of March at 02:30, in New York: since 2007 always in the gap.
    schedule = parse("30 2 * * * starts=2010-01-01 ends=2300-01-01", zone="America/New_York")
    only = parse("30 2 * 3 SUN#2", zone="America/New_York", gap=GapPolicy.SKIP)

    assert schedule.never_fires() is None
    found = only.prev_before(schedule.starts_at) if schedule.starts_at else None
    assert found is not None
    assert found.nominal_at.year == 2006
    assert schedule.starts_at is not None
    assert only.next_after(schedule.starts_at) is None
