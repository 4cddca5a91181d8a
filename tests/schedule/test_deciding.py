"""What becomes of an instant: it fires, or is skipped for a reason, by the rule for catching up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import InvalidSchedule
from mainspring.schedule.deciding import (
    ON_TIME,
    CatchUp,
    CatchUpRule,
    Decision,
    Skipped,
    SkipReason,
    decide,
    skip_until,
)
from mainspring.schedule.schedule import Occurrence, Schedule
from mainspring.schedule.zones import TZDATA_VERSION

HOURLY = Schedule.parse("0 * * * *")
NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at(hours: float) -> datetime:
    return NOON + hours * HOUR


def due(hours: float) -> Occurrence:
    return Occurrence(at(hours), at(hours), TZDATA_VERSION)


def decided(rule: CatchUpRule, now: datetime, *, window: timedelta = DAY, first: float = 0) -> Decision:
    return decide(HOURLY, "job", CatchUp(rule=rule, window=window), due(first), now)


@pytest.mark.parametrize("rule", CatchUpRule)
@pytest.mark.parametrize("late", [timedelta(seconds=-2), timedelta(0), ON_TIME])
def test_what_is_on_time_fires_whatever_the_rule(rule: CatchUpRule, late: timedelta) -> None:
    assert decided(rule, NOON + late) == Decision(due(0), due(1))


def test_the_latest_of_those_missed_fires_for_all_of_them() -> None:
    decision = decided(CatchUpRule.LATEST, at(5.5))
    assert decision == Decision(due(5), due(6), (Skipped(at(0), at(4), SkipReason.COLLAPSED),))


def test_the_earliest_of_those_missed_fires_for_all_of_them() -> None:
    decision = decided(CatchUpRule.EARLIEST, at(5.5))
    assert decision == Decision(due(0), due(6), (Skipped(at(1), at(5), SkipReason.COLLAPSED),))


def test_all_of_those_missed_fire_one_after_another() -> None:
    fired, instant = [], due(0)
    while instant.due_at <= at(5.5):
        decision = decide(HOURLY, "job", CatchUp(rule=CatchUpRule.ALL), instant, at(5.5))
        assert decision.skipped == ()
        assert decision.fired is not None
        assert decision.following is not None
        fired.append(decision.fired)
        instant = decision.following
    assert fired == [due(hours) for hours in range(6)]


def test_none_of_those_missed_fires_by_the_rule_none() -> None:
    decision = decided(CatchUpRule.NONE, at(5.5))
    assert decision == Decision(None, due(6), (Skipped(at(0), at(5), SkipReason.MISSED),))


@pytest.mark.parametrize("rule", [CatchUpRule.LATEST, CatchUpRule.EARLIEST, CatchUpRule.ALL])
def test_nothing_older_than_the_window_fires(rule: CatchUpRule) -> None:
    daily = Schedule.parse("0 12 * * *")
    decision = decide(daily, "job", CatchUp(rule=rule, window=HOUR), due(0), at(5.5))
    assert decision == Decision(None, due(24), (Skipped(at(0), at(0), SkipReason.OUTSIDE_WINDOW),))


def test_catching_up_begins_where_the_window_does() -> None:
    outside = Skipped(at(0), at(2), SkipReason.OUTSIDE_WINDOW)
    assert decided(CatchUpRule.ALL, at(5.5), window=3 * HOUR) == Decision(due(3), due(4), (outside,))
    collapsed = Skipped(at(4), at(5), SkipReason.COLLAPSED)
    assert decided(CatchUpRule.EARLIEST, at(5.5), window=3 * HOUR) == Decision(due(3), due(6), (outside, collapsed))


def test_one_that_was_missed_alone_fires_alone() -> None:
    assert decided(CatchUpRule.LATEST, at(0.5)) == Decision(due(0), due(1))
    assert decided(CatchUpRule.EARLIEST, at(0.5)) == Decision(due(0), due(1))


def test_a_spread_that_is_still_to_come_is_not_missed() -> None:
    spread = Schedule.parse("0 * * * *", spread=timedelta(minutes=59))
    first, last = spread.next_after(at(-0.5), job="job"), spread.prev_before(at(5) + timedelta(seconds=1), job="job")
    assert first is not None
    assert last is not None
    assert last.due_at > at(5) + timedelta(seconds=1)
    decision = decide(spread, "job", CatchUp(), first, at(5) + timedelta(seconds=1))
    assert decision.fired is not None
    assert decision.fired.nominal_at == at(4)
    assert decision.following == last


def test_the_last_instant_of_all_is_followed_by_none() -> None:
    once = Schedule.parse("2031-01-01T12:00:00Z")
    assert decide(once, "job", CatchUp(), due(0), at(3)) == Decision(due(0), None)


def test_nothing_fires_during_a_pause() -> None:
    paused = Skipped(at(0), at(5), SkipReason.PAUSED)
    assert skip_until(HOURLY, "job", at(0), at(5.5), SkipReason.PAUSED) == Decision(None, due(6), (paused,))
    assert skip_until(HOURLY, "job", at(6), at(5.5), SkipReason.PAUSED) == Decision(None, due(6))
    assert skip_until(HOURLY, "job", at(5), at(5), SkipReason.PAUSED) == Decision(None, due(5))


def test_what_is_due_only_after_a_pause_is_not_skipped_by_it() -> None:
    spread = Schedule.parse("0 * * * *", spread=timedelta(minutes=59))
    third = spread.prev_before(at(3.5), job="job")
    assert third is not None
    assert third.nominal_at == at(3)
    before = skip_until(spread, "job", at(0), third.due_at, SkipReason.PAUSED)
    assert before == Decision(None, third, (Skipped(at(0), at(2), SkipReason.PAUSED),))
    after = skip_until(spread, "job", at(0), third.due_at + timedelta(seconds=1), SkipReason.PAUSED)
    assert after.skipped == (Skipped(at(0), at(3), SkipReason.PAUSED),)
    assert skip_until(spread, "job", at(3), third.due_at, SkipReason.PAUSED) == Decision(None, third)


@pytest.mark.parametrize(("rule", "window"), [("soon", DAY), ("latest", timedelta(0)), ("latest", 400 * DAY)])
def test_a_rule_or_a_window_that_there_is_not_is_refused(rule: str, window: timedelta) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        CatchUp(rule=rule, window=window)  # type: ignore[arg-type]
    assert caught.value.code == "invalid-catch-up"
