"""Turns among queues, played through without a database: in proportion to the weights, and nobody starves."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.worker.turns import ANNOUNCED_IN_A_ROW, ASKED_PER_SECOND, SHORTEST_PAUSE, StagedPairs, Turns

from .hands import HandClock

if TYPE_CHECKING:
    from mainspring.worker.turns import Pair

MAIL, REPORTS, DEFAULT = "mail", "reports", "default"
LINES = {MAIL: 1, REPORTS: 2, DEFAULT: 3}
QUEUES = {line: queue for queue, line in LINES.items()}


def anyone(pair: Pair) -> bool:
    return True


def play(turns: Turns, rounds: int, *, batch: int = 10) -> list[str]:
    """Queues that never run out, one lane each: whose turn it was, each time."""
    order = []
    for _ in range(rounds):
        pair = turns.take(anyone)
        assert pair is not None
        queue = QUEUES[pair[1]]
        turns.charge(queue, batch)
        turns.add(pair, queue)
        order.append(queue)
    return order


def busy(weights: dict[str, int], *queues: str) -> Turns:
    turns = Turns(weights)
    for queue in queues:
        turns.add((0, LINES[queue]), queue)
    return turns


def test_queues_get_turns_in_proportion_to_their_weights() -> None:
    order = play(busy({MAIL: 3, REPORTS: 1}, MAIL, REPORTS), 400)

    assert Counter(order) == {MAIL: 300, REPORTS: 100}
    assert Counter(order[:8]) == {MAIL: 6, REPORTS: 2}  # and not in long stretches


@given(some.lists(some.integers(1, 20), min_size=3, max_size=3), some.integers(1, 500))
def test_nobody_waits_longer_than_the_others_weigh(weights: list[int], batch: int) -> None:
    turns = busy(dict(zip(LINES, weights, strict=True)), *LINES)
    order = play(turns, 300, batch=batch)

    for queue, weight in zip(LINES, weights, strict=True):
        at = [number for number, each in enumerate(order) if each == queue]
        longest = max(later - earlier for earlier, later in pairwise(at))
        others = sum(weights) - weight
        assert longest <= others / weight + len(LINES)


def test_a_queue_that_gets_fewer_runs_in_its_turns_has_more_of_them() -> None:
    """What counts is what was given: small batches do not make a queue poor."""
    turns = busy({MAIL: 1, REPORTS: 1}, MAIL, REPORTS)
    given_to: Counter[str] = Counter()
    for _ in range(330):
        pair = turns.take(anyone)
        assert pair is not None
        queue = QUEUES[pair[1]]
        batch = 100 if queue == MAIL else 10
        given_to[queue] += batch
        turns.charge(queue, batch)
        turns.add(pair, queue)

    assert given_to == {MAIL: 3000, REPORTS: 3000}


def test_a_queue_that_comes_back_after_a_rest_has_saved_nothing_up() -> None:
    turns = busy({MAIL: 1, REPORTS: 1}, MAIL)
    play(turns, 1_000)
    turns.add((0, LINES[REPORTS]), REPORTS)

    assert Counter(play(turns, 10)) == {MAIL: 5, REPORTS: 5}


def test_pairs_that_nobody_speaks_of_have_turns_while_others_are_announced_during_each_claim() -> None:
    """As when claims are slow: whenever one is answered, somebody has spoken of other pairs."""
    turns = Turns({})
    unannounced = [(lane, LINES[MAIL]) for lane in range(4)]
    for pair in unannounced:
        turns.add(pair, MAIL)
    taken = []
    for claim in range(4 * (ANNOUNCED_IN_A_ROW + 1)):
        for lane in (10 + 2 * claim, 11 + 2 * claim):
            turns.add((lane, LINES[MAIL]), MAIL, announced=True)
        taken.append(turns.take(anyone))

    assert [pair for pair in taken if pair in unannounced] == unannounced
    assert taken[0] == (10, LINES[MAIL]), "announced ones come first"


def test_an_announced_pair_is_not_overtaken_by_those_announced_after_it() -> None:
    turns = Turns({})
    for lane in range(3):
        turns.add((lane, LINES[MAIL]), MAIL, announced=True)

    assert [turns.take(anyone) for _ in range(3)] == [(lane, LINES[MAIL]) for lane in range(3)]


def test_an_empty_turn_counts_too() -> None:
    turns = busy({MAIL: 1, REPORTS: 1}, MAIL, REPORTS)

    assert Counter(play(turns, 10, batch=0)) == {MAIL: 5, REPORTS: 5}


def test_lanes_of_a_queue_take_turns_among_themselves() -> None:
    turns = Turns({MAIL: 1, REPORTS: 1})
    pairs = [(lane, LINES[MAIL]) for lane in range(3)]
    for pair in pairs:
        turns.add(pair, MAIL)
    turns.add((0, LINES[REPORTS]), REPORTS)
    taken = []
    for _ in range(8):
        taken.append(turn := turns.take(anyone))
        assert turn is not None
        turns.charge(QUEUES[turn[1]], 1)
        turns.add(turn, QUEUES[turn[1]])

    assert [turn for turn in taken if turn in pairs] == [*pairs, pairs[0]]


def test_without_weights_every_pair_has_its_turn_whatever_its_queue() -> None:
    turns = Turns({})
    pairs = [(0, 1), (1, 1), (2, 1), (0, 2)]
    for pair in pairs:
        turns.add(pair, QUEUES[pair[1]])
    turns.add((1, 2), REPORTS, announced=True)
    turns.add((0, 2), REPORTS)  # it waits already

    assert [turns.take(anyone) for _ in range(6)] == [(1, 2), *pairs, None]
    assert not turns


@pytest.mark.parametrize("weights", [{}, {MAIL: 3, REPORTS: 1}])
def test_who_may_not_be_asked_keeps_its_place_and_lets_the_others_pass(weights: dict[str, int]) -> None:
    turns = busy(weights, MAIL, REPORTS)

    assert turns.take(lambda pair: pair[1] == LINES[REPORTS]) == (0, LINES[REPORTS])
    assert turns.take(lambda pair: False) is None
    assert list(turns.pairs()) == [(0, LINES[MAIL])]
    assert turns.take(anyone) == (0, LINES[MAIL])


# ── pairs whose next run is staged ──────────────────────────────────────────────────────────────────────────────


def test_a_pair_is_asked_when_its_next_run_is_due_as_a_look_has_found() -> None:
    clock = HandClock()
    staged = StagedPairs(clock)
    staged.learn({(0, 1): 0.5, (1, 1): 2.0})

    assert staged.take_due() == []
    assert staged.next_at == clock.monotonic() + 0.5
    clock.now += 0.5
    assert staged.take_due() == [(0, 1)]
    assert staged.take_due() == []


def test_a_pair_that_gave_a_staged_run_is_asked_again_before_anybody_looks() -> None:
    clock = HandClock()
    staged = StagedPairs(clock)
    staged.come_again((0, 1))

    assert staged.next_at == clock.monotonic() + SHORTEST_PAUSE
    clock.now += SHORTEST_PAUSE
    assert staged.take_due() == [(0, 1)]
    assert staged.next_at == float("inf")


def test_many_pairs_with_staged_runs_are_asked_no_more_often_in_all() -> None:
    clock, count = HandClock(), 10 * ASKED_PER_SECOND
    staged = StagedPairs(clock)
    for line in range(count):
        staged.come_again((0, line))

    clock.now += 1.0
    assert len(staged.take_due()) <= ASKED_PER_SECOND
