"""Turns among tenants, played through without a database: by weight, whatever the others have waiting."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.model.actor import Tenant
from mainspring.model.line import Line
from mainspring.worker.lines import Lines
from mainspring.worker.turns import FEW_TENANTS, MOST_AHEAD, TenantTurns

from .hands import tenant_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.worker.turns import Pair

LANES = 8


def anyone(pair: Pair) -> bool:
    return True


def known(weights: Mapping[int, int]) -> Lines:
    """Tenants by number, each with one line of its own number."""
    lines = Lines(queues=["default"], labels=[])
    for number, weight in weights.items():
        lines.learn(tenant_lines({Line("default"): number}, Tenant(number, f"tenant {number}"), weight))
    return lines


def busy(weights: Mapping[int, int], lanes: int = 1) -> TenantTurns:
    turns = TenantTurns({}, known(weights))
    for lane in range(lanes):
        for number in weights:
            turns.add((lane, number))
    return turns


def play(turns: TenantTurns, rounds: int, *, batch: int = 10) -> list[int]:
    """Nobody runs out: whose turn it was, each time."""
    order = []
    for _ in range(rounds):
        pair = turns.take(anyone)
        assert pair is not None
        turns.charge(pair, batch)
        turns.add(pair)
        order.append(pair[1])
    return order


def test_tenants_get_turns_in_proportion_to_their_weights() -> None:
    order = play(busy({1: 3, 2: 1}), 400)

    assert Counter(order) == {1: 300, 2: 100}
    assert Counter(order[:8]) == {1: 6, 2: 2}  # and not in long stretches


def test_many_lanes_and_lines_give_a_tenant_no_larger_share() -> None:
    turns = busy({1: 1, 2: 1})
    for lane in range(1, LANES):
        turns.add((lane, 1))

    assert Counter(play(turns, 100)) == {1: 50, 2: 50}


@given(some.lists(some.integers(1, 50), min_size=2, max_size=6), some.integers(1, 500))
def test_nobody_is_behind_by_more_than_a_batch_of_each(weights: list[int], batch: int) -> None:
    shares = dict(enumerate(weights, 1))
    got = Counter(play(busy(shares), 300, batch=batch))
    even = [got[number] / weight for number, weight in shares.items()]

    assert max(even) - min(even) <= 1.0 + 1e-9


def test_who_comes_back_after_a_rest_has_nothing_saved_up() -> None:
    turns = busy({1: 1})
    play(turns, 1_000)
    turns._lines.learn(tenant_lines({Line("default"): 2}, Tenant(2, "late")))
    turns.add((0, 2))

    assert Counter(play(turns, 10)) == {1: 5, 2: 5}


def test_a_weight_counts_from_when_it_is_known() -> None:
    turns = busy({1: 1, 2: 1})
    play(turns, 100)
    turns._lines.learn(tenant_lines({Line("default"): 2}, Tenant(2, "tenant 2"), weight=9))

    assert Counter(play(turns, 100)) == {1: 10, 2: 90}


def learn_weight(turns: TenantTurns, number: int, weight: int) -> None:
    turns._lines.learn(tenant_lines({Line("default"): number}, Tenant(number, f"tenant {number}"), weight))


@pytest.mark.parametrize("weight", [10, 1_000])
def test_what_a_tenant_was_given_at_a_small_weight_is_no_debt_at_a_large_one(weight: int) -> None:
    turns = busy({1: weight, 2: 1})
    while play(turns, 1) != [2]:
        pass
    learn_weight(turns, 2, weight)

    assert Counter(play(turns, 100)) == {1: 50, 2: 50}


def test_who_comes_back_with_another_weight_has_no_debt_of_the_old_one() -> None:
    turns = busy({1: 1_000, 2: 1})
    while (pair := turns.take(anyone)) != (0, 2):
        assert pair is not None
        turns.charge(pair, 10)
        turns.add(pair)
    turns.charge((0, 2), 10)  # it has nothing for a while
    learn_weight(turns, 2, 1_000)
    turns.add((0, 2))

    assert Counter(play(turns, 100)) == {1: 50, 2: 50}


def test_who_may_not_be_asked_is_passed_over_and_keeps_its_turn() -> None:
    turns = busy({1: 1, 2: 1})

    assert turns.take(lambda pair: pair[1] == 2) == (0, 2)
    assert turns.take(anyone) == (0, 1)
    assert turns.take(anyone) is None
    assert not turns


def test_nobody_jumps_the_queue_for_ever_while_others_wait() -> None:
    turns = busy({1: 1, 2: 1})
    assert turns.may_jump((0, 1))

    turns.charge((0, 1), MOST_AHEAD + 1)

    assert not turns.may_jump((0, 1))
    assert turns.may_jump((0, 2))
    turns.take(lambda pair: pair[1] == 2)
    assert turns.may_jump((0, 1)), "nobody else waits"


def test_tenants_that_have_nothing_are_forgotten() -> None:
    """Ten thousand customers come by in a day, and a few have something at any time."""
    turns = TenantTurns({}, known(dict.fromkeys(range(1, 10_001), 1)))
    for number in range(1, 10_001):
        turns.add((0, number))
        assert turns.take(anyone) == (0, number)
        turns.charge((0, number), 1)

    assert len(turns._passes) <= 2 * FEW_TENANTS


def test_a_pair_waits_once() -> None:
    turns = busy({1: 1})
    turns.add((0, 1))

    assert list(turns.pairs()) == [(0, 1)]
