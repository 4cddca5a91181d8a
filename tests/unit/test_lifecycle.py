"""The table of moves, checked for what every table of moves must be."""

from __future__ import annotations

import pytest

from mainspring.model.lifecycle import ENDS, MOVES, PLACES, VERBS, WAITING, State
from mainspring.model.operation import ALLOWED, OperationKind


def test_each_verb_is_written_once() -> None:
    assert len(VERBS) == len(MOVES)


def test_a_state_either_has_a_place_or_is_an_end() -> None:
    assert set(PLACES) | ENDS == set(State)
    assert not set(PLACES) & ENDS
    assert len(set(PLACES.values())) == len(PLACES)


@pytest.mark.parametrize("end", sorted(ENDS))
def test_nothing_leaves_an_end(end: State) -> None:
    assert not [verb for verb in VERBS if end in VERBS[verb].sources]


def test_every_state_can_be_reached() -> None:
    assert {target for move in MOVES for target in move.targets} == set(State)


def test_every_run_that_waits_or_runs_can_go_on_and_can_end() -> None:
    for state in WAITING | {State.RUNNING}:
        targets = {target for move in MOVES if state in move.sources for target in move.targets}
        assert targets & ENDS
        assert targets - ENDS - {state}


def test_only_what_waits_can_be_changed() -> None:
    assert VERBS["change"].sources == WAITING


def test_an_operation_acts_on_the_runs_that_its_move_takes() -> None:
    assert {kind: ALLOWED[kind] for kind in OperationKind} == {
        OperationKind.CANCEL: WAITING | {State.RUNNING},
        OperationKind.CHANGE: WAITING,
        OperationKind.REQUEUE: {State.DEAD},
        OperationKind.PURGE: {State.DEAD},
        OperationKind.RERUN: ENDS | {State.DEAD},
        OperationKind.BACKFILL: set(),  # it is about occurrences
    }


def test_only_submit_makes_runs_out_of_nothing() -> None:
    assert [move.verb for move in MOVES if not move.sources] == ["submit"]
    assert [move.verb for move in MOVES for source, _ in move.paths if source is None] == ["submit"] * 3


def test_only_withdraw_leaves_nothing_of_a_run_and_only_of_one_that_has_not_been_ready() -> None:
    assert [(move.verb, source) for move in MOVES for source, target in move.paths if target is None] == [
        ("withdraw", State.SCHEDULED)
    ]


@pytest.mark.parametrize(
    ("verb", "state", "allowed"),
    [
        ("claim", State.READY, True),
        ("claim", State.RUNNING, False),
        ("claim", State.SCHEDULED, False),
        ("cancel", State.RUNNING, True),
        ("cancel", State.DEAD, False),
        ("promote", State.SCHEDULED, True),
        ("promote", State.HELD, False),
    ],
)
def test_a_verb_acts_only_on_its_sources(verb: str, state: State, allowed: bool) -> None:
    assert (state in VERBS[verb].sources) is allowed
