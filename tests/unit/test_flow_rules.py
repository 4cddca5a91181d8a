"""When a parent has ended as it should, how results become arguments, and how a flow stands and is drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from mainspring.model.dependency import Condition, Met, Otherwise, filled_in, met
from mainspring.model.flow import FlowState, FlowStatus, NodeEnd, NodeStatus, state_of
from mainspring.model.flow_drawing import MOST_DRAWN, MOST_LINES, mermaid, tree
from mainspring.model.lifecycle import ENDS, State

OVER = sorted({*ENDS, State.DEAD})
MEETS = {
    Condition.SUCCESS: {State.SUCCEEDED},
    Condition.FAILURE: {State.DEAD, State.LOST, State.EXPIRED},
    Condition.END: set(OVER),
}


@pytest.mark.parametrize("condition", Condition)
@pytest.mark.parametrize("state", OVER)
def test_a_parent_meets_its_condition_or_does_not(condition: Condition, state: State) -> None:
    is_met = state in MEETS[condition]

    assert met(condition, Otherwise.CANCEL, state) is (Met.YES if is_met else Met.NO)
    assert met(condition, Otherwise.HOLD, state) is (Met.YES if is_met else Met.NOT_YET)
    assert met(condition, Otherwise.CANCEL, None) is Met.NOT_YET


def test_results_go_where_arguments_are_still_to_come() -> None:
    payload = b'{"rows":null,"parts":[null,7,null],"note":"kept"}'

    filled = filled_in(payload, [(("rows",), b"[1]"), (("parts", 0), b'"a"'), (("parts", 2), b"null")])

    assert filled is not None
    assert msgspec.json.decode(filled) == {"rows": [1], "parts": ["a", 7, None], "note": "kept"}


@pytest.mark.parametrize("payload", [b'{"parts":[]}', b'{"parts":3}', b"{}", b"[]"])
def test_results_that_have_no_place_any_more_do_not_fit(payload: bytes) -> None:
    assert filled_in(payload, [(("parts", 2), b"1")]) is None


def test_results_that_are_too_large_do_not_fit() -> None:
    assert filled_in(b'{"rows":null}', [(("rows",), b'"' + b"x" * 300_000 + b'"')]) is None


RUNS = [UUID(int=number) for number in range(4)]


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ([NodeEnd(State.SUCCEEDED), NodeEnd(State.RUNNING), NodeEnd(State.DEAD)], FlowState.RUNNING),
        ([NodeEnd(State.SUCCEEDED), NodeEnd(None)], FlowState.SUCCEEDED),
        ([NodeEnd(State.SUCCEEDED), NodeEnd(State.CANCELLED, "parent-succeeded", RUNS[0])], FlowState.SUCCEEDED),
        ([NodeEnd(State.DEAD), NodeEnd(State.CANCELLED, "parent-failed", RUNS[0])], FlowState.FAILED),
        ([NodeEnd(State.CANCELLED, "parent-failed", RUNS[3])], FlowState.FAILED),
        ([NodeEnd(State.CANCELLED, "result-gone")], FlowState.FAILED),
        (
            [NodeEnd(State.CANCELLED, "cancelled"), NodeEnd(State.CANCELLED, "parent-failed", RUNS[0])],
            FlowState.CANCELLED,
        ),
    ],
)
def test_a_flow_stands_as_its_runs_do(ends: list[NodeEnd], state: FlowState) -> None:
    assert state_of(dict(zip(RUNS, ends, strict=False))) is state


def chain(length: int) -> FlowStatus:
    nodes = [
        NodeStatus(
            name=str(number),
            job="step",
            run_id=UUID(int=number),
            state=State.HELD,
            after=[str(number - 1)] if number else [],
        )
        for number in range(length)
    ]
    return FlowStatus(
        id=UUID(int=0),
        name="chain",
        state=FlowState.RUNNING,
        nodes=nodes,
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
        submitted_by="me",
    )


def test_a_long_chain_is_drawn_up_to_a_bound() -> None:
    flow = chain(5_000)

    lines = tree(flow)

    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == f"… and {5_000 - MOST_LINES:,} more: 4,800 held"
    assert "… and 4,500 more" in mermaid(flow)
    assert len(tree(flow, None)) == 5_000
    assert "more" not in mermaid(flow, 5_000)


def test_what_runs_or_has_failed_is_shown_however_far_behind_it_is() -> None:
    flow = chain(1_000)
    told = {300: State.DEAD, 600: State.LOST, 700: State.EXPIRED, 800: State.RUNNING, 900: State.SUCCEEDED}
    nodes = [replace(node, state=told.get(place, node.state)) for place, node in enumerate(flow.nodes)]
    nodes[300] = replace(nodes[300], after=["299", "1", "2", "3", "4"])
    flow = replace(flow, nodes=nodes)

    lines = tree(flow)

    assert lines[MOST_LINES:] == [
        "… and 800 more: 795 held, 1 dead, 1 lost, 1 expired, 1 running, 1 succeeded; of these run or failed:",
        "✗ 300  dead  (after 299, 1, 2 and 2 more)",
        "✗ 600  lost  (after 599)",
        "✗ 700  expired  (after 699)",
        "▶ 800  running  (after 799)",
    ]
    drawing = mermaid(flow)
    assert [f"{name}<br/>" in drawing for name in (300, 600, 700, 800, 900)] == [True, True, True, True, False]
    assert drawing.count("<br/>") == MOST_DRAWN
