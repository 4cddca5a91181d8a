"""What keeps a run from starting: which gate is named first, which next, and when the run can start at the earliest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from mainspring.model.admission import (
    Gate,
    LimitReached,
    ParentStatus,
    Pause,
    WaitingRun,
    earliest_start,
    reasons,
)
from mainspring.model.concurrency import HIGH_MARK, ONE_AT_A_TIME, LimitRule, LimitScope
from mainspring.model.dependency import Condition
from mainspring.model.fan_out import ChildStatus
from mainspring.model.lifecycle import State
from mainspring.model.line import Line
from mainspring.model.rate import Rate, TokenBucket
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
SHARE = LimitRule(9, LimitScope.JOB, "send", "", None, share="customer")


def limited(rule: LimitRule | None, *, holders: int = 0, ahead: int = 0) -> WaitingRun:
    held_by = [UUID(int=100 + number) for number in range(holders)]
    return replace(FREE, limit=LimitReached(rule=rule, value="acme", holders=held_by, ahead=ahead))


def halted(*, most: int, holders: int, dead: int) -> WaitingRun:
    run = limited(RULE._replace(most=most, is_strict=True, halts_on_dead=True), holders=holders)
    assert run.limit is not None
    return replace(run, limit=replace(run.limit, dead=run.limit.holders[-dead:]))


def rated(bucket: TokenBucket, *, ahead: int) -> WaitingRun:
    """Of two a second."""
    run = limited(RULE._replace(most=None, rate=Rate(2.0, 1)), ahead=ahead)
    assert run.limit is not None
    return replace(run, limit=replace(run.limit, bucket=bucket))


def waits_for(*parents: tuple[Condition, State | None]) -> WaitingRun:
    """Those that are scheduled are due soon."""
    statuses = [
        ParentStatus(
            run_id=UUID(int=200 + number),
            condition=condition,
            state=state,
            due_at=SOON if state is State.SCHEDULED else None,
        )
        for number, (condition, state) in enumerate(parents)
    ]
    return replace(FREE, state=State.HELD, parents=statuses)


def has_children(*states: State) -> WaitingRun:
    children = [
        ChildStatus(name=f"part-{number}", run_id=UUID(int=300 + number), state=state)
        for number, state in enumerate(states)
    ]
    return replace(FREE, state=State.HELD, children=children)


@pytest.mark.parametrize(
    ("run", "gate", "says", "remedy"),
    [
        (limited(RULE, holders=1), Gate.LIMIT, f"run {UUID(int=100)} holds the slot", "--job send --key customer"),
        (limited(RULE._replace(most=2), holders=2), Gate.LIMIT, "and others hold the slots", "limit show"),
        (limited(RULE, holders=1, ahead=7), Gate.LIMIT, "7 come before it", "limit show"),
        (limited(RULE), Gate.LIMIT, "a slot is free", "limit show"),
        (
            halted(most=1, holders=1, dead=1),
            Gate.LIMIT,
            f"run {UUID(int=100)}, which is a dead letter, holds the slot until it is requeued or purged",
            f"mainspring dead-letter requeue {UUID(int=100)}",
        ),
        (
            halted(most=2, holders=2, dead=1),
            Gate.LIMIT,
            f"run {UUID(int=101)}, which is a dead letter, and others hold the slots",
            f"mainspring dead-letter requeue {UUID(int=101)}",
        ),
        (
            waits_for((Condition.SUCCESS, State.RUNNING)),
            Gate.PARENT,
            f"it waits until run {UUID(int=200)} succeeds, which is running",
            f"mainspring run explain {UUID(int=200)}",
        ),
        (
            waits_for((Condition.SUCCESS, State.RUNNING), (Condition.SUCCESS, State.DEAD)),
            Gate.PARENT,
            f"run {UUID(int=201)} succeeds, which is a dead letter, and for 1 other",
            f"mainspring dead-letter requeue {UUID(int=201)}",
        ),
        (
            waits_for((Condition.SUCCESS, State.CANCELLED)),
            Gate.PARENT,
            "which was cancelled and does not run again; cancel this one, or retry the flow that both belong to",
            f"mainspring run cancel {FREE.id}",
        ),
        (
            waits_for((Condition.FAILURE, State.SUCCEEDED)),
            Gate.PARENT,
            "which succeeded and does not run again; cancel this one",
            f"mainspring run cancel {FREE.id}",
        ),
        (limited(None), Gate.LIMIT, "its limit was removed", None),
        (
            limited(RULE._replace(most=None, rate=Rate(0.5, 1))),
            Gate.RATE,
            "at most 30/minute of job send",
            "limit show",
        ),
        (
            limited(RULE._replace(scope=LimitScope.TENANT, name=""), holders=1),
            Gate.LIMIT,
            "of all runs",
            "limit show --all-runs --key customer",
        ),
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
        (replace(FREE, ahead=100, starts_per_s=10.0), NOW + timedelta(seconds=10), True),
        (replace(FREE, ahead=100, prefetched=20, starts_per_s=10.0), NOW + timedelta(seconds=12), True),
        (replace(FREE, ahead=100, starts_per_s=0.0), NOW, False),
        (replace(FREE, ahead=100), NOW, False),
        (limited(RULE, holders=1), NOW, False),
        (limited(RULE, holders=1, ahead=7), NOW, False),
        (replace(limited(RULE, holders=1), due_at=SOON), SOON, False),
        (halted(most=1, holders=1, dead=1), None, False),  # somebody has to decide about the dead letter
        (replace(halted(most=1, holders=1, dead=1), due_at=SOON), SOON, False),
        (halted(most=2, holders=2, dead=1), NOW, False),
        (halted(most=2, holders=2, dead=2), None, False),
        (limited(ONE_AT_A_TIME, holders=1), NOW, False),
        (limited(HIGH_MARK, ahead=3), NOW, False),
        (limited(SHARE, ahead=3), NOW, False),
        (rated(TokenBucket(0.0, 0.0), ahead=0), NOW + timedelta(seconds=0.5), True),
        (rated(TokenBucket(0.5, 0.0), ahead=9), NOW + timedelta(seconds=4.75), True),
        (rated(TokenBucket(20.0, 0.0), ahead=9), NOW, True),
        (waits_for((Condition.SUCCESS, State.RUNNING)), NOW, False),
        (waits_for((Condition.SUCCESS, None)), NOW, False),
        (waits_for((Condition.SUCCESS, State.RUNNING), (Condition.END, State.SCHEDULED)), SOON, False),
        (replace(waits_for((Condition.SUCCESS, State.RUNNING)), due_at=SOON), SOON, False),
        (waits_for((Condition.SUCCESS, State.SCHEDULED), (Condition.SUCCESS, State.DEAD)), None, False),
        (waits_for((Condition.SUCCESS, State.CANCELLED)), None, False),
        (waits_for((Condition.FAILURE, State.SUCCEEDED)), None, False),
        (has_children(State.RUNNING), NOW, False),
        (replace(has_children(State.SCHEDULED), children_due_at=SOON), SOON, False),
    ],
)
def test_the_earliest_start_is_told_where_anybody_can_know_it(
    run: WaitingRun, at: datetime | None, is_estimate: bool
) -> None:
    assert earliest_start(run) == (at, is_estimate)


@pytest.mark.parametrize(
    ("run", "event"),
    [
        (limited(RULE, holders=1), f"run {UUID(int=100)} ends"),
        (limited(RULE, holders=1, ahead=2), "a slot is free for it"),
        (limited(RULE._replace(most=2), holders=2), "a slot is free for it"),
        (limited(SHARE), "it is the turn of customer acme"),
        (limited(ONE_AT_A_TIME, holders=1), f"run {UUID(int=100)} ends"),
        (limited(ONE_AT_A_TIME, holders=1, ahead=1), "the earlier runs of its schedule have ended"),
        (limited(HIGH_MARK), "workers have taken enough of its line"),
        (waits_for((Condition.SUCCESS, State.READY)), f"run {UUID(int=200)} succeeds"),
        (
            waits_for((Condition.END, State.READY), (Condition.END, State.READY)),
            f"run {UUID(int=200)} ends, and the others have ended as they should",
        ),
        (has_children(State.READY), f"run {UUID(int=300)} ends"),
        (has_children(State.READY, State.SUCCEEDED), "its children have ended"),
        (replace(FREE, ahead=1), "those before it have started"),
        (FREE, "a worker has a free slot"),
        (replace(FREE, due_at=SOON), None),  # an instant, which is told
        (replace(FREE, pause=PAUSE), None),  # somebody's act
        (halted(most=1, holders=1, dead=1), None),
        (waits_for((Condition.SUCCESS, State.DEAD)), None),
    ],
)
def test_the_event_that_a_run_waits_for_is_named(run: WaitingRun, event: str | None) -> None:
    assert reasons(run)[0].as_soon_as == event


def test_a_limit_that_is_met_later_is_named_if_nobody_can_pass_there() -> None:
    broad = RULE._replace(id=8, key="", most=3)
    three = [UUID(int=400 + number) for number in range(3)]
    full = LimitReached(rule=broad, value=None, holders=three, ahead=0)
    without_tokens = LimitReached(
        rule=broad._replace(most=None, rate=Rate(1.0, 1)), value=None, holders=(), ahead=0, bucket=TokenBucket(0.9, 0.0)
    )
    with_tokens = replace(without_tokens, bucket=TokenBucket(1.0, 0.0))
    run = replace(limited(RULE, holders=1), pause=PAUSE)

    def gates(*limits: LimitReached) -> list[Gate]:
        return [each.gate for each in reasons(replace(run, next_limits=limits))]

    assert gates(full) == [Gate.LIMIT, Gate.LIMIT, Gate.QUEUE_PAUSED]
    assert gates(without_tokens) == [Gate.LIMIT, Gate.RATE, Gate.QUEUE_PAUSED]
    assert gates(replace(full, holders=three[1:]), with_tokens) == [Gate.LIMIT, Gate.QUEUE_PAUSED]
    assert "at most 3 of job send may execute at once, and run" in reasons(replace(run, next_limits=[full]))[1].says
