"""How many runs will be due in each minute, who makes the peaks, and what would flatten them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.schedule.asking import utc

from mainspring.schedule.cron import Cron
from mainspring.schedule.forecast import MAX_SPECS, Forecast, SpecCount, busiest_second, forecast
from mainspring.schedule.interval import Interval
from mainspring.schedule.load import MAX_SEEDS
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Except
from mainspring.schedule.text import parse

BEGIN, DAY, MINUTE = utc("2026-11-16"), timedelta(days=1), timedelta(minutes=1)

TOO_SPARSE = Schedule(when=Except(Cron.parse("* * * * * *"), Interval(elapsed=timedelta(seconds=1))))


def said(text: str, count: int = 1, *names: str) -> SpecCount:
    return SpecCount(schedule=parse(text), count=count, names=names)


def of_a_day(*specs: SpecCount, share: float = 1.0, peaks: int = 5) -> Forecast:
    return forecast(specs, BEGIN, BEGIN + DAY, share=share, peaks=peaks)


def at(found: Forecast, clock: str) -> float:
    return found.counts[(utc(f"2026-11-16T{clock}") - found.begin) // found.step]


def test_every_minute_has_the_runs_that_are_due_in_it() -> None:
    found = of_a_day(said("0 9 * * *", 40, "a"), said("*/30 * * * *", 2, "b"), said("15 9 * * * spread=10m", 5, "c"))

    assert (found.schedules, found.is_estimate, found.left_out, len(found.counts)) == (47, False, 0, 1440)
    assert [at(found, clock) for clock in ("09:00", "09:30", "09:15", "09:24", "09:25")] == [42, 2, 0.5, 0.5, 0]
    assert found.total == 40 + 2 * 48 + 5


def test_h_goes_by_the_names_of_the_schedules() -> None:
    names = [f"name-{number}" for number in range(5)]
    found = of_a_day(said("H 9 * * *", 5, *names))

    minutes = sorted(parse("H 9 * * *").next_after(BEGIN, job=name).nominal_at for name in names)  # type: ignore[union-attr]
    fired = [found.begin + place * MINUTE for place, count in enumerate(found.counts) for _ in range(int(count))]
    assert fired == minutes


def test_a_large_herd_with_h_is_even() -> None:
    count = MAX_SEEDS + 1
    found = of_a_day(said("H 9 * * *", count, *(f"name-{number}" for number in range(count))))

    assert {round(each, 2) for each in found.counts} == {0, round(count / 60, 2)}


def test_a_sample_stands_for_all() -> None:
    found = of_a_day(said("0 9 * * *", 30, "a"), said("H H * * *", 3, "b", "c", "d"), share=0.01)

    assert (found.schedules, found.is_estimate, at(found, "09:00")) == (3_300, True, 3_000)
    assert found.peaks[0].makers[0].schedules == 3_000
    assert found.total == pytest.approx(3_300)


# ── bounded work ────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_many_different_ones_some_are_walked_each_by_its_weight() -> None:
    clocks = [f"{minute} {hour} * * *" for minute in range(60) for hour in range(24)]
    different = [said(f"{clock} ends={year}-01-01T00:00:00Z") for year in range(2030, 2034) for clock in clocks]
    different = different[: 3 * MAX_SPECS]
    found = of_a_day(*different, said("30 12 * * *", 3 * MAX_SPECS, "many"))

    assert (found.schedules, found.is_estimate) == (6 * MAX_SPECS, True)
    assert found.total == pytest.approx(6 * MAX_SPECS)
    assert at(found, "12:30") == pytest.approx(3 * MAX_SPECS, rel=0.02)
    assert found.peaks[0].makers[0].name == "many"


def test_when_enough_occurrences_were_looked_at_these_stand_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.forecast.MAX_WALKED", 3_000)
    monkeypatch.setattr("mainspring.schedule.forecast.LEAST_SPECS", 0)
    rare = [said(f"* * * * * ends={year}-01-01T00:00:00Z") for year in range(2030, 2040)]
    found = of_a_day(*rare, said("0 9 * * *", 100, "frequent"))

    assert (found.schedules, found.is_estimate) == (110, True)
    assert (set(found.counts), at(found, "09:00")) == ({10, 110}, 110)


def test_rare_intervals_come_last_and_fall_evenly_on_all_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.forecast.MAX_WALKED", 0)
    intervals = [said(f"PT1M30S/2026-11-16T00:00:{second:02}Z", 10) for second in range(60)]
    found = of_a_day(*intervals, said("30 9 * * *", 5, "daily"))

    assert found.is_estimate
    assert {round(count, 2) for count in found.counts} == {400, 405}, "two thirds of them in each"
    assert round(at(found, "09:30"), 2) == 405


def test_a_frequent_interval_is_walked_and_does_not_keep_others_from_being_counted() -> None:
    found = of_a_day(said("PT1S", 100, "often"), said("PT30M/2026-11-16T00:00:00Z", 50, "half"), said("15 9 * * *", 2))

    assert [at(found, clock) for clock in ("09:00", "09:01", "09:15")] == [6_050, 6_000, 6_002]


def test_what_cannot_be_decided_is_left_out() -> None:
    found = of_a_day(SpecCount(schedule=TOO_SPARSE, count=3, names=["nothing"]), said("0 9 * * *", 2, "a"))

    assert (found.schedules, found.left_out, found.total) == (5, 3, 2)


def test_nothing_is_forecast_of_nothing() -> None:
    found = of_a_day()

    assert (found.schedules, found.total, found.peaks, found.is_estimate) == (0, 0, (), False)


# ── peaks ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_peak_says_who_makes_it_and_what_would_flatten_it() -> None:
    found = of_a_day(
        said("0 9 * * *", 14_400, "daily"), said("0 * * * *", 60, "hourly"), said("0 9 * * 1", 1, "weekly")
    )
    peak = found.peaks[0]

    assert (peak.at, peak.count, len(found.peaks)) == (utc("2026-11-16T09:00"), 14_461, 5)
    assert [(maker.when, maker.name, maker.count) for maker in peak.makers] == [
        ("0 9 * * *", "daily", 14_400),
        ("0 * * * *", "hourly", 60),
        ("0 9 * * 1", "weekly", 1),
    ]
    daily, hourly, weekly = peak.makers
    assert (daily.spread, daily.flattened_to) == (timedelta(hours=8), 61 + 30), "eleven in a minute would be usual"
    assert (hourly.spread, hourly.flattened_to) == (timedelta(minutes=10), 14_401 + 6)
    assert weekly.spread is None, "one run needs no spread"


@pytest.mark.parametrize(("text", "spread"), [("*/5 * * * *", 5), ("*/1 * * * *", None), ("0 9 * * * spread=5m", None)])
def test_a_spread_never_reaches_the_next_instant(text: str, spread: int | None) -> None:
    found = of_a_day(said(text, 1_000_000, "a"), peaks=1)

    assert found.peaks[0].makers[0].spread == (None if spread is None else spread * MINUTE)


# ── one more schedule ───────────────────────────────────────────────────────────────────────────────────────────


def by_the_second(*specs: SpecCount) -> Forecast:
    return forecast(specs, BEGIN, BEGIN + DAY, step=timedelta(seconds=1), peaks=0)


@pytest.mark.parametrize(
    ("text", "clock", "before"), [("*/30 * * * *", "09:00", 40), ("30 * * * *", "08:30", 2), ("5 4 * * *", "04:05", 0)]
)
def test_one_more_schedule_meets_the_most_runs_in_its_busiest_second(text: str, clock: str, before: int) -> None:
    found = by_the_second(said("0 9 * * *", 40), said("30 8 * * *", 2))
    load = busiest_second(found, parse(text), name="new")

    assert load is not None
    assert (load.at, load.before, load.added) == (utc(f"2026-11-16T{clock}"), before, 1)


def test_the_second_of_one_schedule_with_a_spread_is_known() -> None:
    schedule = parse("0 9 * * * spread=10m")
    occurrence = schedule.next_after(BEGIN, job="new")
    assert occurrence is not None
    begin = occurrence.nominal_at + MINUTE
    found = forecast((), begin, begin + DAY / 2, step=timedelta(seconds=1))
    load = busiest_second(found, schedule, name="new")

    assert load is not None
    assert load.at == occurrence.due_at.replace(microsecond=0) > begin, "it began to be due before"


def test_what_does_not_fire_in_that_time_adds_nothing() -> None:
    assert busiest_second(by_the_second(said("0 9 * * *")), parse("0 9 1 1 *"), name="new") is None
