"""How far ahead runs are staged: two seconds when it is calm, and as far as a herd needs."""

from __future__ import annotations

import pytest

from mainspring.scheduler.horizon import CALM, FIRST_RATE, HURRIED, MARKS, Horizon, rest_after_batch

RATE = int(FIRST_RATE)


def announced(at: float, count: int) -> dict[float, int]:
    """So many are due at one instant, and nobody before."""
    return {mark: count if mark >= at else 0 for mark in MARKS}


@pytest.mark.parametrize(
    ("at", "count", "horizon"),
    [
        (1.0, 0, CALM),
        (60.0, 1_000, CALM),
        (60.0, 9 * RATE, CALM),  # takes 9 s, six times that is allowed for it
        (60.0, 10 * RATE, 60.0),
        (30.0, 4 * RATE, CALM),
        (30.0, 5 * RATE, 30.0),
        (4.0, RATE // 2, 4.0),
        (1.0, 1_000 * RATE, 60.0),  # far too many: as far as it goes
    ],
)
def test_a_herd_is_begun_in_time(at: float, count: int, horizon: float) -> None:
    assert Horizon().reaching(announced(at, count)) == horizon


def test_who_fires_slowly_begins_earlier() -> None:
    herd = announced(60.0, 5 * RATE)
    horizon = Horizon()
    assert horizon.reaching(herd) == CALM
    for _ in range(20):
        horizon.fired(1_000, seconds=2.0)
    assert horizon.reaching(herd) == 60.0


def test_a_few_occurrences_say_nothing_about_a_herd() -> None:
    horizon = Horizon()
    for _ in range(100):
        horizon.fired(1, seconds=1.0)
    assert horizon.reaching(announced(60.0, 5 * RATE)) == CALM


def test_what_is_due_later_is_staged_at_half_the_speed() -> None:
    assert rest_after_batch(0.03, due_in=CALM) == 0.03
    assert rest_after_batch(0.03, due_in=HURRIED) == 0.0
    assert rest_after_batch(0.03, due_in=-10.0) == 0.0
