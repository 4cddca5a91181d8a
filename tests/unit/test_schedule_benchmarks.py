"""The benchmarks of schedules: what they load, and what they call missing, extra, early and uneven."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from benchmarks import __main__ as command
from benchmarks import herd, schedule_filling, schedules
from benchmarks.schedule_checking import Started, expected_of_minutely, faults, lateness_ms

from mainspring.schedule.document import schedule_of

AT = datetime(2026, 11, 16, 23, 59, 50, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def started(name: str, at: datetime, late: float = 0.01) -> Started:
    return Started(name, at, at, at + timedelta(seconds=late))


def test_what_is_expected_is_what_the_loaded_schedules_say() -> None:
    plans = list(schedule_filling.minutely("even", 2, AT))
    end = AT + timedelta(seconds=90)

    expected = set(expected_of_minutely("even", 2, AT, end))

    said = {
        (plan.name, found.nominal_at)
        for plan in plans
        for found in schedule_of(msgspec.json.decode(plan.spec)).between(AT, end, job=plan.name)
    }
    assert expected == said
    assert len(expected) == 2 * 90
    assert all((plan.name, plan.nominal_at) in expected for plan in plans)


def test_a_herd_has_one_instant_whatever_its_zones_and_forms() -> None:
    plans = list(schedule_filling.herd("herd", 40, AT))

    assert {plan.due_at for plan in plans} == {AT}
    assert len({plan.spec for plan in plans}) == 4 * len(schedule_filling.ZONES)
    assert all(schedule_of(msgspec.json.decode(plan.spec)).is_due(AT, job=plan.name) for plan in plans)


def test_a_spread_herd_is_due_within_its_spread() -> None:
    plans = list(schedule_filling.herd("spread", 1_000, AT, herd.SPREAD))

    assert all(AT <= plan.due_at < AT + herd.SPREAD for plan in plans)
    assert herd.deviation([plan.due_at - AT for plan in plans], herd.SPREAD) < 0.5


def test_schedules_at_rest_are_due_no_sooner_than_in_a_day() -> None:
    plans = list(schedule_filling.resting(1_000, AT))

    assert min(plan.due_at for plan in plans) > AT + timedelta(days=1)
    for plan in plans[::50]:
        first = schedule_of(msgspec.json.decode(plan.spec)).next_after(AT, job=plan.name)
        assert first is not None
        assert first.nominal_at == plan.nominal_at


def test_nothing_is_wrong_when_each_instant_has_its_row_and_its_run() -> None:
    expected = [("a", AT), ("a", AT + SECOND), ("b", AT)]

    assert faults(expected, expected, [started(*each) for each in expected]) == {"missing": 0, "extra": 0, "early": 0}


def test_an_instant_without_row_or_without_run_is_missing() -> None:
    expected = [("a", AT), ("b", AT), ("c", AT), ("d", AT)]
    ledger = [("a", AT), ("b", AT)]
    runs = [started("a", AT), started("c", AT)]

    assert faults(expected, ledger, runs)["missing"] == 3


def test_what_nobody_expects_and_what_starts_twice_is_extra() -> None:
    expected = [("a", AT), ("b", AT)]
    ledger = [*expected, ("a", AT + SECOND)]
    runs = [started("a", AT), started("b", AT), started("b", AT), started("c", AT)]

    assert faults(expected, ledger, runs)["extra"] == 3


def test_a_run_that_starts_before_it_is_due_is_early() -> None:
    runs = [started("a", AT, late=-0.001), started("b", AT, late=0)]

    assert faults([("a", AT), ("b", AT)], [("a", AT), ("b", AT)], runs)["early"] == 1
    assert lateness_ms(runs) == [-1.0, 0.0]


def test_the_second_that_is_most_uneven_counts() -> None:
    even = [timedelta(seconds=number % 10) for number in range(100)]

    assert herd.deviation(even, herd.SPREAD) == 0
    assert herd.deviation([*even[1:], timedelta(seconds=9)], herd.SPREAD) == pytest.approx(0.1)
    assert herd.deviation([timedelta(0)] * 10, herd.SPREAD) == 9.0


def test_a_wish_for_another_benchmark_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scripts/bench", "herd", "--due", "5"])

    with pytest.raises(SystemExit):
        command.main()

    assert "--due is for schedules" in capsys.readouterr().err


def test_people_see_what_matters() -> None:
    assert "missing 1" in schedules.show(dict.fromkeys(schedules.FIELDS, 1.0))
    assert "ratio 1.00" in herd.show(dict.fromkeys(herd.FIELDS, 1.0))
