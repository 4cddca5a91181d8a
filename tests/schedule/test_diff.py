"""Two versions of a schedule: what appears, vanishes and moves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from tests.schedule.asking import utc
from tests.schedule.strategies import instants, plain_schedules

from mainspring.errors import InvalidSchedule
from mainspring.schedule.diff import Diff, diff
from mainspring.schedule.text import parse

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Schedule


def between(old: str, new: str, begin: str = "2026-11-16", end: str = "2026-11-30") -> Diff:
    return diff(parse(old), parse(new), utc(begin), utc(end))


def test_equal_schedules_do_not_differ() -> None:
    found = between("0 9 * * 1-5", "0 9 * * MON-FRI")

    assert (found.changes, found.kept, found.compared_until) == ((), 10, None)


def test_days_that_are_added_appear_and_days_that_are_left_out_vanish() -> None:
    added, removed = between("0 9 * * 1-5", "0 9 * * 1-6"), between("0 9 * * 1-6", "0 9 * * 1-5")

    assert added.appeared == removed.vanished == [utc("2026-11-21T09:00"), utc("2026-11-28T09:00")]
    assert added.vanished == removed.appeared == []
    assert added.kept == removed.kept == 10


def test_another_time_on_the_same_day_is_a_move() -> None:
    found = between("0 9 * * 1", "30 9 * * 1")

    assert found.moved == [
        (utc("2026-11-16T09:00"), utc("2026-11-16T09:30")),
        (utc("2026-11-23T09:00"), utc("2026-11-23T09:30")),
    ]
    assert found.kept == 0


def test_another_zone_moves_the_days_on_which_it_differs() -> None:
    found = between("0 9 * * * zone=Europe/Berlin", "0 9 * * * zone=Europe/London", "2026-03-27", "2026-03-28")

    assert found.moved == [(utc("2026-03-27T08:00"), utc("2026-03-27T09:00"))]


def test_of_several_on_a_day_the_rest_appears_or_vanishes() -> None:
    found = between("0 9,12 * * *", "0 10,13,15 * * *", "2026-11-16", "2026-11-17")

    assert found.moved == [
        (utc("2026-11-16T09:00"), utc("2026-11-16T10:00")),
        (utc("2026-11-16T12:00"), utc("2026-11-16T13:00")),
    ]
    assert found.appeared == [utc("2026-11-16T15:00")]


def test_comparing_stops_somewhere_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedule.diff.MAX_COMPARED", 100)

    found = between("* * * * *", "* * * * *")

    assert (found.kept, found.compared_until) == (100, utc("2026-11-16T01:40"))


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="must be after") as caught:
        between("* * * * *", "* * * * *", "2026-11-16", "2026-11-16")
    assert caught.value.code == "invalid-range"


@given(plain_schedules, plain_schedules, instants)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=25)
def test_the_changes_turn_the_old_instants_into_the_new(old: Schedule, new: Schedule, begin: datetime) -> None:
    end = begin + timedelta(minutes=30)
    try:
        before = {each.nominal_at for each in old.between(begin, end)}
        after = {each.nominal_at for each in new.between(begin, end)}
        found = diff(old, new, begin, end)
    except InvalidSchedule as error:
        if error.code != "schedule-too-sparse":
            raise
        return
    if found.compared_until is None:
        gone = {each.old_at for each in found.changes if each.old_at is not None}
        come = {each.new_at for each in found.changes if each.new_at is not None}
        assert (before - gone) | come == after
        assert found.kept == len(before & after)
