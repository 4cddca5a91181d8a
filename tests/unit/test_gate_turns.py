"""Who passes a gate before his turn, so that nobody starves."""

from __future__ import annotations

from uuid import UUID

from mainspring.model.concurrency import Turn
from mainspring.model.gate_turns import (
    BITS_OF_RANK,
    KEPT,
    NEXT,
    OLDEST_FIRST_EVERY,
    oldest_first,
    with_oldest_first,
)


def waiting(number: int, priority: int, rank: int, gate: str = "7") -> Turn:
    return Turn((priority << BITS_OF_RANK) + rank, UUID(int=number), 0, gate)


def test_one_in_sixteen_is_whoever_waits_longest() -> None:
    chances = [number / 1_000 for number in range(1_000)]

    for wanted in (1, 5, 16, 100):
        share = sum(oldest_first(wanted, chance) for chance in chances) / (wanted * len(chances))
        assert abs(share - 1 / OLDEST_FIRST_EVERY) < 0.001


def test_whoever_waits_longest_comes_next_whatever_his_priority() -> None:
    urgent, late, long = waiting(1, 0, 50), waiting(2, 9, 60), waiting(3, 9, 10)

    found = sorted(with_oldest_first([urgent, late, long], {"7": 1}))

    assert [each.run_id for each in found] == [long.run_id, urgent.run_id, late.run_id]
    assert found[0].turn == NEXT


def test_who_kept_his_slot_still_comes_first_and_nobody_comes_twice() -> None:
    kept, urgent, long = Turn(KEPT, UUID(int=4), 0, "7"), waiting(1, 0, 50), waiting(3, 9, 10)

    found = sorted(with_oldest_first([kept, urgent, long, long, urgent], {"7": 2}))

    assert [each.run_id for each in found] == [kept.run_id, urgent.run_id, long.run_id]


def test_at_other_gates_everybody_keeps_his_turn() -> None:
    others = [waiting(1, 0, 50, "8"), waiting(2, 9, 10, "8")]

    assert with_oldest_first(others, {"7": 1}) == others
