"""What keeps a run from starting: which gate is named first, which next, and when the run can start at the earliest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from mainspring.model.admission import Gate, LimitReached, Pause, WaitingRun, earliest_start, reasons
from mainspring.model.concurrency import LimitRule, LimitScope
from mainspring.model.lifecycle import State
from mainspring.model.line import Line
from mainspring.model.rate import Rate
from mainspring.model.worker import Server

NOW = datetime(2031, 1, 1, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
PAUSE = Pause(at=NOW, by="anna", reason="provider down")


def server(*, queue: str = "mail", labels: tuple[str, ...] = (), handlers: tuple[str, ...] = ("send",)) -> Server:
    return Server(frozenset({queue}), frozenset(labels), frozenset(handlers))


FREE = WaitingRun(
    id=UUID(int=7), job="send", line=Line("mail"), state=State.READY, due_at=NOW, now=NOW, servers=[server()]
)


RULE = LimitRule(7, LimitScope.JOB, "send", "customer", 1)


def limited(rule: LimitRule | None, *, holders: int = 0, ahead: int = 0) -> WaitingRun:
    held_by = [UUID(int=100 + number) for number in range(holders)]
    return replace(FREE, limit=LimitReached(rule=rule, value="acme", holders=held_by, ahead=ahead))


@pytest.mark.parametrize(
    ("run", "gate", "says", "remedy"),
    [
        (limited(RULE, holders=1), Gate.LIMIT, f"run {UUID(int=100)} holds the slot", "--job send --key customer"),
        (limited(RULE._replace(most=2), holders=2), Gate.LIMIT, "and others hold the slots", "limit show"),
        (limited(RULE, holders=1, ahead=7), Gate.LIMIT, "7 come before it", "limit show"),
        (limited(RULE), Gate.LIMIT, "a slot is free", "limit show"),
        (limited(None), Gate.LIMIT, "its limit was removed", None),
        (
            limited(RULE._replace(most=None, rate=Rate(0.5, 1))),
            Gate.RATE,
            "at most 30/minute of job send",
            "limit show",
        ),
        (limited(RULE._replace(scope=LimitScope.TENANT, name=""), holders=1), Gate.LIMIT, "of all runs", "limit show"),
        (replace(FREE, due_at=SOON), Gate.NOT_DUE, "due at 2031-01-01 00:05:00 UTC", "--at 2031-01-01T00:00:00Z"),
        (replace(FREE, due_at=SOON, attempts_spent=1), Gate.BACK_OFF, "after 1 attempt it backs off", "run change"),
        (replace(FREE, due_at=SOON, attempts_spent=2), Gate.BACK_OFF, "after 2 attempts", str(FREE.id)),
        (
            replace(FREE, pause=PAUSE),
            Gate.QUEUE_PAUSED,
            "paused by anna at 2031-01-01 00:00:00 UTC: pro",
            "resume mail",
        ),
        (replace(FREE, pause=replace(PAUSE, reason="")), Gate.QUEUE_PAUSED, "00:00:00 UTC", "queue resume mail"),
        (replace(FREE, servers=[]), Gate.NO_WORKER, "no live worker serves queue mail", "--queues mail"),
        (replace(FREE, servers=[server(queue="web")]), Gate.NO_WORKER, "queue mail", "--queues mail"),
        (replace(FREE, line=Line("mail", ("eu", "gpu"))), Gate.NO_LABELS, "labels eu, gpu", "--labels eu,gpu"),
        (replace(FREE, servers=[server(handlers=())]), Gate.NO_HANDLER, "handler for job send", "start a worker"),
        (replace(FREE, ahead=1), Gate.WORKERS_BUSY, "1 run comes before it", None),
        (replace(FREE, ahead=1_200), Gate.WORKERS_BUSY, "1,200 runs come before it", None),
        (FREE, Gate.WORKERS_BUSY, "it is next", None),
        (replace(FREE, state=State.HELD), Gate.WORKERS_BUSY, "goes back in line within seconds", None),
    ],
)
def test_the_gate_that_is_closed_is_named_with_what_opens_it(
    run: WaitingRun, gate: Gate, says: str, remedy: str | None
) -> None:
    (reason,) = reasons(run)

    assert reason.gate is gate
    assert says in reason.says
    assert (remedy is None) == (reason.remedy is None)
    assert (remedy or "") in (reason.remedy or "")


def test_all_gates_that_are_closed_are_named_in_the_order_in_which_they_are_met() -> None:
    run = replace(FREE, due_at=SOON, pause=PAUSE, servers=[server(handlers=())], ahead=7)

    assert [each.gate for each in reasons(run)] == [Gate.NOT_DUE, Gate.QUEUE_PAUSED, Gate.NO_HANDLER]


def test_a_worker_that_has_the_labels_but_not_the_handler_is_not_enough() -> None:
    run = replace(FREE, line=Line("mail", ("gpu",)), servers=[server(), server(labels=("gpu",), handlers=())])

    assert reasons(run)[0].gate is Gate.NO_HANDLER
    assert reasons(replace(run, servers=[*run.servers, server(labels=("gpu",))]))[0].gate is Gate.WORKERS_BUSY


@pytest.mark.parametrize(
    ("run", "at", "is_estimate"),
    [
        (FREE, NOW, False),
        (replace(FREE, due_at=SOON), SOON, False),
        (replace(FREE, due_at=SOON, pause=PAUSE), SOON, False),
        (replace(FREE, pause=PAUSE), None, False),  # somebody has to act first
        (replace(FREE, servers=[]), None, False),
        (replace(FREE, ahead=100, finished_per_s=10.0), NOW + timedelta(seconds=10), True),
        (replace(FREE, ahead=100, finished_per_s=0.0), None, False),
        (replace(FREE, ahead=100), None, False),
    ],
)
def test_the_earliest_start_is_told_where_anybody_can_know_it(
    run: WaitingRun, at: datetime | None, is_estimate: bool
) -> None:
    assert earliest_start(run) == (at, is_estimate)
