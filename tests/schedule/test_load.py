"""How many schedules fall on each second or minute."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schedule.asking import utc
from tests.schedule.strategies import instants, plain_schedules

from mainspring.errors import InvalidSchedule
from mainspring.schedule.load import Bucket, Load
from mainspring.schedule.text import parse

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Schedule

BEGIN, SECOND, MINUTE = utc("2026-11-16"), timedelta(seconds=1), timedelta(minutes=1)


def day() -> Load:
    return Load(BEGIN, BEGIN + timedelta(days=1))


def test_equal_schedules_are_one_group_with_a_weight() -> None:
    load = day()
    load.add(parse("0 9 * * 1-5"), weight=1_000_000)
    load.add(parse("0 9 * * MON-FRI"))
    load.add(parse("30 9 * * *"), weight=5)

    assert (load.schedules, load.groups) == (1_000_006, 2)
    assert list(load) == [Bucket(utc("2026-11-16T09:00"), 1_000_001), Bucket(utc("2026-11-16T09:30"), 5)]
    assert load.fullest(1) == [Bucket(utc("2026-11-16T09:00"), 1_000_001)]


def test_a_herd_with_h_is_spread_and_its_groups_are_the_minutes() -> None:
    load = day()
    for number in range(300):
        load.add(parse("H * * * *"), job=f"job-{number}")

    assert load.groups <= 60
    assert sum(load.counts()) == 300 * 24
    assert load.fullest(1)[0].count < 20


@pytest.mark.parametrize("text", ["H * * * *", "H * * * * | H/30 9 * * *"])
def test_each_job_of_a_weight_has_an_h_of_its_own(text: str) -> None:
    load = day()
    load.add(parse(text), weight=1_000, job="report")

    assert load.schedules == 1_000
    assert len(load.counts()[:60]) == 60
    assert all(5 <= count <= 40 for count in load.counts()[:60])
    assert sum(load.counts()[:60]) == 1_000


@pytest.mark.parametrize(
    ("text", "most", "fires"),
    [
        ("H * * * *", 16_667, 24),
        ("H H * * *", 695, 1),
        ("H/20 9-10 * * *", 50_001, 6),
        ("H H(0-1) * * * zone=Asia/Tokyo", 8_334, 1),
    ],
)
def test_a_herd_too_large_to_be_counted_one_by_one_falls_evenly_on_what_h_leaves(
    text: str, most: int, fires: int
) -> None:
    load = day()
    load.add(parse(text), weight=1_000_001)

    assert (load.schedules, load.groups) == (1_000_001, 1)
    assert round(sum(load.counts())) == 1_000_001 * fires
    assert {round(count + 0.5) for count in load.counts()} <= {0, most}


@pytest.mark.parametrize("text", ["H,5 * * * *", "0 H * * * | 30 H * * *", "0 9 H * 1"])
def test_a_herd_with_another_h_is_counted_by_some_of_its_jobs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.load.MAX_SEEDS", 300)
    load, all_of_them = day(), day()
    load.add(parse(text), weight=30_000)
    all_of_them.add(parse(text), weight=300)

    assert load.schedules == 30_000
    assert load.counts() == [100 * count for count in all_of_them.counts()]


def test_who_makes_a_peak_is_known_to_the_groups() -> None:
    load = day()
    hourly, spread = load.add(parse("0 * * * *"), weight=7), load.add(parse("55 8 * * * spread=10m"), weight=5)
    herd = load.add(parse("H * * * *"), weight=600_000)
    at = utc("2026-11-16T09:00")

    assert [load.of_groups(each, at) for each in (hourly, spread, herd)] == [7, 0.5, 10_000]
    assert [load.of_groups(each, at + MINUTE) for each in (hourly, spread)] == [0, 0.5]
    assert [load.of_groups(each, utc("2026-11-16T09:05")) for each in (hourly, spread)] == [0, 0]


@pytest.mark.parametrize("count", [0, -1, 99_999_999_999])
def test_a_count_has_bounds(count: int) -> None:
    load = day()

    with pytest.raises(InvalidSchedule, match=r"count is .*; it must be 1 to 1,000,000,000") as caught:
        load.add(parse("0 9 * * *"), weight=count)
    assert (caught.value.code, caught.value.fields["field"]) == ("invalid-count", "count")
    assert load.schedules == 0


def test_no_more_is_counted_than_fits_into_a_minute() -> None:
    load = day()
    load.add(parse("0 9 * * *"), weight=1_000_000_000)
    load.add(parse("0 9 * * *"), weight=1_000_000_000)
    with pytest.raises(InvalidSchedule, match=r"at most 2,147,483,647 in a minute"):
        load.add(parse("0 9 * * *"), weight=1_000_000_000)


def test_a_spread_is_shared_out_over_its_window() -> None:
    load = day()
    load.add(parse("0 9 * * * spread=10m"), weight=1_000)

    assert [bucket.count for bucket in load] == [100] * 10
    assert next(iter(load)).at == utc("2026-11-16T09:00")


def test_a_spread_that_began_before_the_range_reaches_into_it() -> None:
    load = Load(utc("2026-11-16T09:05"), utc("2026-11-16T10:00"))
    load.add(parse("0 9 * * * spread=10m"), weight=1_000)

    assert [bucket.count for bucket in load] == [100] * 5


def test_a_spread_never_goes_past_the_next_instant() -> None:
    load = Load(BEGIN, BEGIN + timedelta(hours=1))
    load.add(parse("*/5 * * * * spread=1h"), weight=5)

    assert set(load.counts()[5:]) == {1}


def test_seconds_can_be_counted_too() -> None:
    load = Load(BEGIN, BEGIN + timedelta(minutes=1), step=SECOND)
    load.add(parse("*/20 * * * * *"))

    assert [bucket.at.second for bucket in load] == [0, 20, 40]


@pytest.mark.parametrize("length", [timedelta(0), timedelta(days=-1), timedelta(days=100)])
def test_the_range_is_bounded(length: timedelta) -> None:
    with pytest.raises(InvalidSchedule, match="must be 1 to 100,000 steps") as caught:
        Load(BEGIN, BEGIN + length)
    assert caught.value.code == "invalid-range"


def test_other_steps_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="a second or a minute"):
        Load(BEGIN, BEGIN + timedelta(days=1), step=timedelta(hours=1))


def test_what_is_remembered_is_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.load.MAX_REMEMBERED", 100)
    load = day()
    for minute in range(10):
        load.add(parse(f"{minute} * * * *"))
    for minute in range(10):
        load.add(parse(f"{minute} * * * *"))

    assert len(load._windows) == 1
    assert {bucket.count for bucket in load} == {2}


@given(st.lists(st.tuples(plain_schedules, st.integers(1, 9)), max_size=4), instants)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=25)
def test_the_histogram_is_the_count_of_all_occurrences(herd: list[tuple[Schedule, int]], begin: datetime) -> None:
    begin, wanted = begin.replace(second=0), Counter[datetime]()
    load = Load(begin, begin + timedelta(minutes=30))
    try:
        for schedule, weight in herd:
            load.add(schedule, weight=weight)
            for each in schedule.between(load.begin, load.end):
                wanted[each.nominal_at.replace(second=0, microsecond=0)] += weight
    except InvalidSchedule as error:
        if error.code != "schedule-too-sparse":
            raise
    else:
        assert {bucket.at: bucket.count for bucket in load} == dict(wanted)
