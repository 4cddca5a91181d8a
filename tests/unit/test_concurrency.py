"""Limits as values: what may be said, at which gates a run waits, and whose turn it is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring.errors import InvalidInput
from mainspring.model.concurrency import (
    MAX_LIMIT,
    MAX_LIMITS_PER_JOB,
    Limit,
    LimitRule,
    LimitScope,
    RuleBook,
    Turn,
    checked_limits,
    covers,
    free_slots,
    gates_of,
    home_of_gate,
    next_in_turn,
    rule_id,
)
from mainspring.model.job import JobDefinition, definition_of
from mainspring.model.limit_key import UNKNOWN_KEY

OF_JOB = LimitRule(1, LimitScope.JOB, "send", "", 3)
BY_CUSTOMER = LimitRule(2, LimitScope.JOB, "send", "customer", 1, is_strict=True)
OF_QUEUE = LimitRule(3, LimitScope.QUEUE, "mail", "", 10)
OF_TENANT = LimitRule(4, LimitScope.TENANT, "", "", 50)
OF_OTHERS = LimitRule(5, LimitScope.JOB, "mail", "", 1)
BOOK = RuleBook([OF_TENANT, OF_QUEUE, OF_JOB, BY_CUSTOMER, OF_OTHERS])


def turn(number: int, gate: str = "1") -> Turn:
    return Turn(number, UUID(int=number), 0, gate)


# ── what may be said ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"most": 0}, "invalid-limit"),
        ({"most": -1}, "invalid-limit"),
        ({"most": MAX_LIMIT + 1}, "invalid-limit"),
        ({"most": True}, "invalid-limit"),
        ({"most": 1.5}, "invalid-limit"),
        ({"most": "3"}, "invalid-limit"),
        ({"most": 1, "key": "a()"}, "invalid-limit-key"),
        ({"most": 1, "order": "random"}, "invalid-order"),
        ({"most": 1, "order": None}, "invalid-order"),
        ({"most": 1, "on_dead": "panic"}, "invalid-on-dead"),
        ({"most": 1, "on_dead": "halt"}, "halt-without-order"),
        ({}, "limit-of-nothing"),
        ({"rate": "1/s", "order": "strict"}, "order-without-number"),
        ({"rate": "fast"}, "invalid-rate"),
        ({"most": 1, "burst": 5}, "burst-without-rate"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(values: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Limit(**values)

    assert refusal.value.code == code


@pytest.mark.parametrize(
    "limits",
    ["3", 3, [3], [Limit(1), 2], [Limit(1), Limit(2)], [Limit(1, key=f"a{n}") for n in range(MAX_LIMITS_PER_JOB + 1)]],
)
def test_several_limits_of_a_job_are_few_and_have_keys_of_their_own(limits: Any) -> None:
    with pytest.raises(InvalidInput):
        checked_limits(limits)


def test_one_limit_or_some_may_be_given() -> None:
    assert checked_limits(None) == ()
    assert checked_limits(Limit(1)) == (Limit(1),)
    assert checked_limits([Limit(1), Limit(2, key="a")]) == (Limit(1), Limit(2, key="a"))


def test_limits_are_part_of_the_definition_of_a_job_and_of_no_other() -> None:
    limited = JobDefinition(name="send", limit=(Limit(1, key="customer", order="strict", on_dead="halt"),))

    assert definition_of(msgspec.json.decode(msgspec.json.encode(limited.as_document()))) == limited
    assert "limit" not in JobDefinition(name="send").as_document(), "jobs of before would get a new version for nothing"


# ── gates ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_under_the_limits_of_its_job_queue_and_tenant_narrowest_first() -> None:
    assert BOOK.of("send", "mail") == (BY_CUSTOMER, OF_JOB, OF_QUEUE, OF_TENANT)
    assert BOOK.of("other", "default") == (OF_TENANT,)
    assert RuleBook().of("send", "mail") == ()


def test_the_gates_of_a_run_follow_from_its_arguments() -> None:
    assert gates_of(BOOK.of("send", "mail"), b'{"customer": "Acme"}') == "2!:Acme\n1\n3\n4"
    assert gates_of((), b"{}") is None


def test_a_run_without_the_key_is_refused_unless_it_was_accepted_before() -> None:
    with pytest.raises(InvalidInput, match="customer"):
        gates_of((BY_CUSTOMER,), b"{}")

    assert gates_of((BY_CUSTOMER,), b"{}", is_accepted=True) == f"2!:{UNKNOWN_KEY}"


@pytest.mark.parametrize(
    ("held", "wanted", "answer"),
    [
        ("1", "1", True),
        ("1\n2:a", "2:a\n1", True),
        ("1", "1\n2:a", False),
        (None, "1", False),
        ("2:b\n1", "2:a", False),
    ],
)
def test_a_run_may_start_if_it_holds_a_slot_of_all_its_gates(held: str | None, wanted: str, answer: bool) -> None:
    assert covers(held, wanted) is answer


def test_a_gate_names_its_limit_and_lives_in_one_lane() -> None:
    assert [rule_id(gate) for gate in ("7", "7!", "7:a:b", "7!:a!")] == [7] * 4
    assert {home_of_gate(f"7:{n}", 8) for n in range(100)} == set(range(8))


# ── whose turn it is ────────────────────────────────────────────────────────────────────────────────────────────


def test_as_many_pass_as_the_limit_leaves_and_any_number_where_it_is_gone() -> None:
    rules = {1: OF_JOB, 3: OF_QUEUE}

    assert free_slots(["1", "3", "9"], rules, {"1": 5, "3": 4}) == {"1": 0, "3": 6, "9": MAX_LIMIT}


def passing(waiting: list[Turn], free: dict[str, int], most: int) -> list[Turn]:
    """Where nobody has kept a slot."""
    return next_in_turn(waiting, free, most, without_slot=free)


def test_those_who_came_first_pass_as_many_as_there_are_slots() -> None:
    waiting = [turn(3), turn(1), turn(2), turn(7, "2"), turn(5, "2")]

    assert [each.turn for each in passing(waiting, {"1": 2, "2": 1}, 10)] == [1, 5, 2]


def test_where_not_all_fit_gates_take_turns() -> None:
    """One customer's many do not keep another customer's first waiting."""
    waiting = [*(turn(number) for number in range(100)), turn(1_000, "2")]

    assert turn(1_000, "2") in passing(waiting, {"1": 100, "2": 1}, 2)


def test_whoever_kept_its_slot_passes_and_if_it_has_left_with_it_nobody_else_does() -> None:
    free, without_slot = {"1": 1}, {"1": 0}

    assert next_in_turn([turn(0), turn(5)], free, 10, without_slot=without_slot) == [turn(0)]
    assert next_in_turn([turn(5), turn(6)], free, 10, without_slot=without_slot) == []
