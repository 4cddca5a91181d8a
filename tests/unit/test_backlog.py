"""Backlog caps as values: what may be said, and where runs are counted."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring import Backlog
from mainspring.errors import InvalidInput
from mainspring.model.backlog import (
    BacklogNotice,
    CapRule,
    FullBacklog,
    WhenFull,
    backlog_gates_of,
    checked_backlogs,
    fullest,
)
from mainspring.model.concurrency import LimitScope, RuleBook
from mainspring.model.job import JobDefinition, definition_of


def cap(number: int, key: str = "", scope: LimitScope = LimitScope.JOB, name: str = "send") -> CapRule:
    return CapRule(number, scope, name, key)


def notice(waiting: int, most: int = 10) -> BacklogNotice:
    return BacklogNotice(cap="job send", value=None, waiting=waiting, most=most)


@pytest.mark.parametrize("most", [0, -1, 1_000_001, 1.5, True, "many", None])
def test_a_cap_is_a_whole_number_in_bounds(most: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a whole number from 1 to 1,000,000") as refused:
        Backlog(most)

    assert (refused.value.code, refused.value.fields["field"]) == ("invalid-backlog", "backlog")


def test_an_unknown_policy_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="must be one of refuse, drop_oldest, replace") as refused:
        Backlog(1, when_full="explode")

    assert refused.value.code == "invalid-when-full"


@pytest.mark.parametrize("key", ["", "a b", "{a", "__import__('os')", "x" * 201, 7])
def test_a_key_is_a_path_into_the_arguments(key: Any) -> None:
    with pytest.raises(InvalidInput, match="The key of a backlog cap is") as refused:
        Backlog(1, key=key)

    assert refused.value.code == "invalid-backlog-key"


def test_a_job_names_each_key_once_and_has_few_caps() -> None:
    assert checked_backlogs(None) == ()
    assert checked_backlogs(Backlog(1)) == (Backlog(1),)
    with pytest.raises(InvalidInput, match="must name each key once"):
        checked_backlogs([Backlog(1), Backlog(2)])
    with pytest.raises(InvalidInput, match="must be at most 5"):
        checked_backlogs([Backlog(1, key=f"a{number}") for number in range(6)])
    with pytest.raises(InvalidInput, match="must be a Backlog, or a list of some"):
        checked_backlogs(3)


def test_a_definition_keeps_its_caps_and_one_without_is_as_before() -> None:
    definition = JobDefinition(name="send", backlog=(Backlog(5, key="to", when_full="replace"),))

    assert definition_of(definition.as_document()) == definition
    assert definition.backlog[0].when_full is WhenFull.REPLACE
    assert "backlog" not in JobDefinition(name="send").as_document()


def test_runs_are_counted_at_a_gate_of_each_cap() -> None:
    caps = [cap(3, "to"), cap(5)]

    assert backlog_gates_of(caps, b'{"to": "ada"}') == "3:ada\n5"
    assert backlog_gates_of(caps, b"{}", is_complete=False) == "5"
    assert backlog_gates_of([], b"{}") is None
    with pytest.raises(InvalidInput, match="counts by to"):
        backlog_gates_of(caps, b"{}")


def test_caps_are_for_a_job_a_queue_or_all_runs() -> None:
    caps = [cap(1), cap(2, name="pack"), cap(3, scope=LimitScope.QUEUE, name="mail")]
    caps += [cap(4, scope=LimitScope.TENANT, name="")]

    assert [each.id for each in RuleBook(caps=caps).caps_of("send", "mail")] == [1, 3, 4]


def test_a_cap_is_near_from_four_fifths_on() -> None:
    assert [notice(waiting).is_near for waiting in (8, 9, 10)] == [False, True, True]
    assert fullest("1\n2", {"1": notice(9), "2": notice(10)}) == notice(10)
    assert fullest("3", {"1": notice(9)}) is None
    assert fullest(None, {}) is None


def test_whoever_is_refused_is_told_how_full_it_is() -> None:
    error = FullBacklog(BacklogNotice(cap="job send by to", value="ada", waiting=3, most=3), 2, 0).error()

    assert error.message == (
        "The backlog of job send by to=ada is full: 3 of at most 3 runs wait,"
        " and 2 more were submitted: none of them was accepted."
    )
