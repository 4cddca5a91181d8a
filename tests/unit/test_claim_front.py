"""What a claimer remembers about one line: where it begins, and how often to look at the very front."""

from __future__ import annotations

from typing import Any

from mainspring.model.run import PRIORITIES
from mainspring.store.columns import PRIORITY, RANK
from mainspring.worker.claim_front import (
    LOOK_AT_LEAST_EVERY,
    LOOK_AT_MOST_EVERY,
    LOOK_SHARE,
    OLDEST_FIRST_EVERY,
    ClaimFront,
)


def row(*, priority: int, rank: int) -> Any:
    return {PRIORITY: priority, RANK: rank}


def learned(
    front: ClaimFront, *rows: Any, from_the_front: bool = False, began: float = 0.0, now: float = 0.0
) -> ClaimFront:
    front.learn(rows, from_the_front=from_the_front, began=began, now=now)
    return front


def test_each_priority_begins_where_the_last_claim_ended() -> None:
    front = learned(ClaimFront(), row(priority=2, rank=10), row(priority=2, rank=30), row(priority=5, rank=20))

    assert [front.ranks[priority] for priority in (0, 2, 5)] == [0, 30, 20]


def test_a_line_never_begins_earlier_than_it_did() -> None:
    front = learned(learned(ClaimFront(), row(priority=2, rank=30)), row(priority=2, rank=10))

    assert front.ranks[2] == 30


def test_the_most_urgent_are_served_first_and_now_and_then_whoever_waits_longest() -> None:
    front = learned(ClaimFront(), *(row(priority=priority, rank=100 - priority) for priority in PRIORITIES))
    orders = [list(front.order()) for _ in range(2 * OLDEST_FIRST_EVERY)]

    assert orders.count(list(PRIORITIES)) == 2 * OLDEST_FIRST_EVERY - 2
    assert orders[OLDEST_FIRST_EVERY - 1] == orders[-1] == list(reversed(PRIORITIES))


def test_a_new_line_is_looked_at_from_the_front_at_once() -> None:
    assert ClaimFront().is_look_due(now=0.0)


def test_cheap_looks_are_frequent_but_not_constant() -> None:
    front = learned(ClaimFront(), from_the_front=True, began=99.999, now=100.0)

    assert not front.is_look_due(100.0 + LOOK_AT_MOST_EVERY * 0.9)
    assert front.is_look_due(100.0 + LOOK_AT_MOST_EVERY * 1.1)


def test_dear_looks_take_only_a_small_share_of_the_time() -> None:
    front = learned(ClaimFront(), began=0.0, now=0.001)
    cost = 0.051
    learned(front, from_the_front=True, began=100.0, now=100.0 + cost)
    pause = (cost - 0.001) / LOOK_SHARE

    assert not front.is_look_due(100.0 + cost + pause * 0.99)
    assert front.is_look_due(100.0 + cost + pause * 1.01)


def test_even_the_dearest_look_is_due_after_a_while() -> None:
    front = learned(ClaimFront(), from_the_front=True, began=100.0, now=160.0)

    assert not front.is_look_due(160.0 + LOOK_AT_LEAST_EVERY * 0.99)
    assert front.is_look_due(160.0 + LOOK_AT_LEAST_EVERY)
