"""Wake-ups are sent sparingly: one per line and urgency in a short while."""

from __future__ import annotations

from uuid import UUID

import pytest

from mainspring.store import notify
from mainspring.store.notify import QUIET_SECONDS, Quietener

from .hands import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def quietener(clock: HandClock) -> Quietener:
    return Quietener(clock)


def test_the_first_wake_up_is_passed_on(quietener: Quietener) -> None:
    assert quietener.pass_on([notify.ready(0, 7, 5)]) == [notify.ready(0, 7, 5)]


def test_the_next_one_is_not_until_some_time_has_passed(quietener: Quietener, clock: HandClock) -> None:
    wake_ups = [notify.ready(0, 7, 5)]
    quietener.pass_on(wake_ups)

    clock.now += QUIET_SECONDS * 0.99
    assert quietener.pass_on(wake_ups) == []
    clock.now += QUIET_SECONDS * 0.02
    assert quietener.pass_on(wake_ups) == wake_ups


def test_silence_is_counted_from_what_was_passed_on_and_not_from_what_was_held_back(
    quietener: Quietener, clock: HandClock
) -> None:
    passed = []
    for _ in range(20):
        passed += quietener.pass_on([notify.later()])
        clock.now += QUIET_SECONDS * 0.6

    assert len(passed) == 10


def test_other_lanes_of_a_line_do_not_count_and_other_priorities_do(quietener: Quietener) -> None:
    passed = quietener.pass_on([notify.ready(0, 7, 5), notify.ready(1, 7, 5), notify.ready(1, 7, 0)])

    assert passed == [notify.ready(0, 7, 5), notify.ready(1, 7, 0)]


def test_each_line_and_each_kind_is_heard(quietener: Quietener) -> None:
    wake_ups = [notify.ready(0, 7, 5), notify.ready(0, 8, 5), notify.later(), notify.cancel(UUID(int=1))]

    assert quietener.pass_on(wake_ups) == wake_ups


def test_it_forgets_what_no_longer_matters(quietener: Quietener, clock: HandClock) -> None:
    quietener.pass_on([notify.ready(0, line, 5) for line in range(10_001)])
    clock.now += 1
    quietener.pass_on([notify.later()])

    assert len(quietener._last) == 1


def test_a_wake_up_is_read_as_it_was_written() -> None:
    assert notify.parse_ready(notify.ready(3, 7, 9).payload) == (3, 7, 9)
