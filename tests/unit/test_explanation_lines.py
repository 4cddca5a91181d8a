"""What `mainspring run explain` prints about how many come before a run, and when it starts at the earliest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.cli.run_explain import lines_about
from mainspring.model.admission import ClosedGate, Explanation, Gate
from mainspring.model.lifecycle import State

NOW = datetime(2031, 1, 1, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)


def lines(gate: Gate, **known: Any) -> dict[str, str]:
    told: dict[str, Any] = {"earliest_at": NOW, **known}
    found = Explanation(
        run_id=UUID(int=7), job="send", queue="mail", state=State.HELD, at=NOW, says="", gate=gate, **told
    )
    return {name: str(value) for name, value in lines_about(found)}


@pytest.mark.parametrize(
    ("gate", "among"),
    [
        (Gate.LIMIT, "at its limit"),
        (Gate.RATE, "at its limit"),
        (Gate.SHARE, "of those that share its turns"),
        (Gate.BREAKER, "at its circuit breaker"),
        (Gate.OVERLAP, "of its schedule"),
        (Gate.BACKPRESSURE, "waiting for room in its line"),
        (Gate.QUEUE_PAUSED, "in its line"),
        (Gate.WORKERS_BUSY, "in its line"),
    ],
)
def test_those_before_a_run_are_said_to_be_where_they_are(gate: Gate, among: str) -> None:
    assert lines(gate, ahead=3)["ahead"] == f"3 {among}"
    assert lines(gate, ahead=3, ahead_is_exact=False)["ahead"] == f"at least 3 {among}"


def test_a_run_that_waits_at_a_gate_and_for_its_time_is_told_who_comes_before_it_at_the_gate() -> None:
    limit = ClosedGate(gate=Gate.LIMIT, says="at most 1 may execute")

    assert lines(Gate.BACK_OFF, ahead=3, then=[limit])["ahead"] == "3 at its limit"


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({}, "at once"),
        ({"earliest_at": SOON}, "2031-01-01 00:05:00.000 UTC, in 5 min"),
        ({"as_soon_as": "run 7 ends"}, "as soon as run 7 ends"),
        (
            {"as_soon_as": "run 7 ends", "earliest_at": SOON},
            "as soon as run 7 ends; not before 2031-01-01 00:05:00.000 UTC, in 5 min",
        ),
        (
            {"as_soon_as": "those before it have started", "earliest_at": SOON, "is_estimate": True},
            "as soon as those before it have started; not before 2031-01-01 00:05:00.000 UTC, in 5 min,"
            " by how fast its line moves",
        ),
    ],
)
def test_the_event_that_a_run_waits_for_is_said_with_the_instant_before_which_it_cannot_start(
    known: dict[str, Any], says: str
) -> None:
    assert lines(Gate.WORKERS_BUSY, **known)["earliest"] == says


def test_where_somebody_has_to_act_no_instant_is_said() -> None:
    assert "earliest" not in lines(Gate.QUEUE_PAUSED, earliest_at=None)
