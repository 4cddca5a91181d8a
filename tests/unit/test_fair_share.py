"""Fair share as values: whose turn it is, and how many are kept in line."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from mainspring.model.concurrency import Limit, LimitRule, LimitScope, RuleBook, Turn, gates_of, home_of_gate, rule_id
from mainspring.model.fair_share import LEAST_IN_LINE, MOST_IN_LINE, Window, in_turns

SHARED = LimitRule(7, LimitScope.QUEUE, "mail", "", None, share="customer")
OF_JOB = LimitRule(8, LimitScope.JOB, "send", "", 3)


def waiting(gate: str, count: int, first: int = 0) -> list[Turn]:
    return [Turn(first + number, UUID(int=number), 0, gate) for number in range(count)]


def gates(turns: list[Turn]) -> Counter[str]:
    return Counter(turn.gate for turn in turns)


def test_everybody_gets_the_same_whoever_came_first() -> None:
    assert gates(in_turns(waiting("big", 100) + waiting("small", 100, 500), {}, 10)) == {"big": 5, "small": 5}


def test_what_one_does_not_need_goes_to_the_others() -> None:
    assert gates(in_turns(waiting("big", 100) + waiting("small", 2), {}, 10)) == {"big": 8, "small": 2}


def test_whoever_has_least_comes_first() -> None:
    passed = in_turns(waiting("big", 100) + waiting("small", 100), {"big": 6, "small": 1}, 5)
    assert gates(passed) == {"small": 5}


def test_each_keeps_its_own_order() -> None:
    passed = in_turns(reversed(waiting("big", 5) + waiting("small", 5)), {}, 6)
    for gate in ("big", "small"):
        turns = [each.turn for each in passed if each.gate == gate]
        assert turns == sorted(turns)


def test_between_equals_chance_decides_so_that_nobody_is_passed_over() -> None:
    first = {in_turns(waiting("big", 1) + waiting("small", 1, 500), {}, 1)[0].gate for _ in range(200)}
    assert first == {"big", "small"}


@pytest.mark.parametrize(
    ("window", "depth", "elapsed", "size"),
    [
        (Window(100, 100, 0), 0, 0.1, 200),  # it ran dry
        (Window(100, 20, 0), 0, 0.1, 100),  # there were no more
        (Window(100, 100, 0), 50, 0.1, 100),  # half of it was taken
        (Window(100, 100, 0), 100, 0.1, 50),  # nothing was
        (Window(100, 100, 0), 80, 0.01, 110),  # quickly
        (Window(100, 100, 0), 60, 0.0, 100),  # the clock was set back
        (Window(LEAST_IN_LINE, LEAST_IN_LINE, 0), LEAST_IN_LINE, 0.1, LEAST_IN_LINE),
        (Window(MOST_IN_LINE, MOST_IN_LINE, 0), 0, 0.1, MOST_IN_LINE),
    ],
)
def test_the_line_holds_twice_what_workers_take_between_two_looks(
    window: Window, depth: int, elapsed: float, size: float
) -> None:
    assert window.next_size(depth, elapsed) == size


def test_gates_of_those_who_share_belong_together_and_come_last() -> None:
    found = gates_of(RuleBook([SHARED, OF_JOB]).of("send", "mail"), b'{"customer": "acme"}')
    assert found == "8\n7=:acme"
    assert rule_id("7=:acme") == 7
    assert home_of_gate("7=:acme", 8) == home_of_gate("7=:bolt", 8) == home_of_gate("7=", 8)


def test_a_share_is_a_limit_of_its_own() -> None:
    assert Limit(share="customer").share == "customer"
    assert Limit(5, rate="2/s", share="{customer|lower}").most == 5
