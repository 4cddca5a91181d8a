"""What keeps a run from starting: decided here and nowhere else. What is known goes in, reasons come out.

The first reason is the one that blocks now; those after it would block next.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from mainspring.model.concurrency import HIGH_MARK, ONE_AT_A_TIME, LimitScope
from mainspring.model.dependency import Condition
from mainspring.model.lifecycle import WAITING, State
from mainspring.model.payload import printable
from mainspring.model.rate import rate_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.breaker import Opening, ProbeProgress
    from mainspring.model.concurrency import LimitRule
    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.line import Line
    from mainspring.model.worker import Server

SHOWN_LENGTH = 200


class Gate(StrEnum):
    """What may stand between a run and its start."""

    PARENT = "parent"
    CHILDREN = "children"
    NOT_DUE = "not-due"
    BACK_OFF = "back-off"
    LIMIT = "limit"
    RATE = "rate"
    SHARE = "share"
    BREAKER = "breaker"
    OVERLAP = "overlap"
    BACKPRESSURE = "backpressure"
    QUEUE_PAUSED = "queue-paused"
    NO_WORKER = "no-worker"
    NO_LABELS = "no-labels"
    NO_HANDLER = "no-handler"
    WORKERS_BUSY = "workers-busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedGate:
    """One gate that is closed, said as a clause, and what opens it: a command, or what to do."""

    gate: Gate
    says: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Somebody has paused a queue."""

    at: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A worker that serves the run's line, and how many runs of that line it holds."""

    worker_id: UUID
    host: str
    pid: int
    slots: int
    holding: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The limit at whose gate a run waits, if it was not removed meanwhile."""

    rule: LimitRule | None
    value: str | None  # of its key
    holders: Sequence[UUID]  # of its slots, the first few
    ahead: int  # so many runs come before it there
    probes: ProbeProgress | None = None  # where it is a circuit breaker


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentStatus:
    """A run that has to end before another one may start."""

    run_id: UUID
    condition: Condition
    state: State | None  # None: it was taken back, or history has forgotten it


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A run that waits, and all that decides when it may start."""

    id: UUID
    job: str
    line: Line
    state: State
    due_at: datetime
    attempts_spent: int = 0
    now: datetime
    parents: Sequence[ParentStatus] = ()  # those that it waits for, the first few
    children: Sequence[ChildStatus] | None = None  # its handler has returned, and it waits for these
    limit: LimitReached | None = None
    pause: Pause | None = None
    servers: Sequence[Server] = ()
    ahead: int = 0  # so many runs of its line come before it
    finished_per_s: float | None = None  # of its line, lately


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a run is not running, or what it is doing instead of waiting."""

    run_id: UUID
    job: str
    queue: str
    state: State
    at: datetime
    says: str
    remedy: str | None = None
    gate: Gate | None = None  # none: nothing keeps it, it was claimed or has ended
    then: list[ClosedGate] = field(default_factory=list)  # what would keep it next
    ahead: int | None = None  # so many runs of its line come before it
    ahead_is_exact: bool = True
    holders: list[Holder] = field(default_factory=list)
    earliest_at: datetime | None = None  # it cannot start before; None: nobody knows
    is_estimate: bool = False  # of that instant, from how fast its line moves


def reasons(run: WaitingRun) -> list[ClosedGate]:
    """Everything that keeps a waiting run from starting, in the order in which it is met. Never empty."""
    if run.children is not None:
        return [_children(run.children)]  # nothing else is left to be done
    asked = (_parents(run), _time(run), _limit(run), _pause(run), objection_of_workers(run.job, run.line, run.servers))
    return [each for each in asked if each is not None] or [_turn(run)]


def earliest_start(run: WaitingRun) -> tuple[datetime | None, bool]:
    """Before when the run cannot start, and whether that is an estimate. None where somebody has to act first."""
    gate = reasons(run)[0].gate
    if gate in (Gate.PARENT, Gate.CHILDREN):
        return None, False
    if run.due_at > run.now:
        return run.due_at, False
    if gate is Gate.RATE and run.limit is not None and run.limit.rule is not None and run.limit.rule.rate is not None:
        return run.now + timedelta(seconds=(run.limit.ahead + 1) / run.limit.rule.rate.per_second), True
    if gate is Gate.BREAKER and run.limit is not None:
        return _next_probe_at(run.limit, run.now), False
    if gate is not Gate.WORKERS_BUSY:
        return None, False
    if not run.ahead:
        return run.now, False
    if not run.finished_per_s:
        return None, False
    return run.now + timedelta(seconds=run.ahead / run.finished_per_s), True


_SHOULD = {Condition.SUCCESS: "succeeds", Condition.FAILURE: "fails", Condition.END: "ends"}


def _parents(run: WaitingRun) -> ClosedGate | None:
    if not run.parents:
        return None
    first, others = run.parents[0], len(run.parents) - 1
    more = "" if not others else f", and for {others:,} other{'s' if others > 1 else ''}"
    if first.state is State.DEAD:
        says = f"it waits until run {first.run_id} {_SHOULD[first.condition]}, which is a dead letter{more}"
        return ClosedGate(gate=Gate.PARENT, says=says, remedy=f"mainspring dead-letter requeue {first.run_id}")
    state = "" if first.state is None else f", which is {first.state}"
    says = f"it waits until run {first.run_id} {_SHOULD[first.condition]}{state}{more}"
    return ClosedGate(gate=Gate.PARENT, says=says, remedy=f"mainspring run explain {first.run_id}")


def _children(children: Sequence[ChildStatus]) -> ClosedGate:
    going_on = [each for each in children if each.state in (*WAITING, State.RUNNING)]
    if not going_on:
        return ClosedGate(gate=Gate.CHILDREN, says="its children have ended, and it ends within a second")
    first, others = going_on[0], len(going_on) - 1
    more = "" if not others else f", and {others:,} other{'s' if others > 1 else ''}"
    of = f"{len(going_on):,} of its {len(children):,} children" if len(children) > 1 else "its child"
    says = f"it waits for {of}: run {first.run_id}, which is {first.state}{more}"
    return ClosedGate(gate=Gate.CHILDREN, says=says, remedy=f"mainspring run explain {first.run_id}")


def _time(run: WaitingRun) -> ClosedGate | None:
    if run.due_at <= run.now:
        return None
    if run.attempts_spent:
        tried = f"{run.attempts_spent} attempt{'s' if run.attempts_spent > 1 else ''}"
        gate, says = Gate.BACK_OFF, f"after {tried} it backs off until {_at(run.due_at)}"
    else:
        gate, says = Gate.NOT_DUE, f"it is due at {_at(run.due_at)}"
    return ClosedGate(gate=gate, says=says, remedy=f"mainspring run change {run.id} --at {run.now:%Y-%m-%dT%H:%M:%SZ}")


def _limit(run: WaitingRun) -> ClosedGate | None:
    if run.limit is None:
        return None
    rule = run.limit.rule
    if rule is None:
        return ClosedGate(gate=Gate.LIMIT, says="its limit was removed, and it goes in line within a second")
    if rule is ONE_AT_A_TIME:
        return _earlier(run.limit)
    if rule is HIGH_MARK:
        return _too_many_in_line(run.limit, run.line)
    if rule.opening is not None:
        return _breaker(run.limit, rule.opening, run.now)
    if rule.is_share_of_workers:
        return _share(run.limit, rule)
    whose = "" if run.limit.value is None else f"{rule.told_apart_by} {printable(run.limit.value, SHOWN_LENGTH)}"
    by = f" for {whose}" if whose and not rule.share else ""
    of = "all runs" if rule.scope is LimitScope.TENANT else f"{rule.scope} {rule.name}"
    remedy = " ".join(["mainspring limit show", *_options(rule)])
    before = _before(run.limit, f" of {whose}" if rule.share else "")
    if rule.most is not None and len(run.limit.holders) >= rule.most:
        first = f"run {run.limit.holders[0]}"
        held = f"{first} holds the slot" if rule.most == 1 else f"{first} and others hold the slots"
        says = f"at most {rule.most:,} of {of} may execute at once{by}, and {held}{before}"
        return ClosedGate(gate=Gate.LIMIT, says=says, remedy=remedy)
    if rule.rate is not None:
        says = f"at most {rate_text(rule.rate)} of {of} may start{by}{before}"
        return ClosedGate(gate=Gate.RATE, says=says, remedy=remedy)
    says = f"at most {rule.most:,} of {of} may execute at once{by}; a slot is free, and it is released within a second"
    return ClosedGate(gate=Gate.LIMIT, says=says, remedy=remedy)


def _share(limit: LimitReached, rule: LimitRule) -> ClosedGate:
    of = "all runs" if rule.scope is LimitScope.TENANT else f"runs of {rule.scope} {rule.name}"
    whose = f"{rule.share} {printable(limit.value or '', SHOWN_LENGTH)}"
    says = f"{of} take turns by {rule.share}, and it is not yet the turn of {whose}{_before(limit, f' of {whose}')}"
    return ClosedGate(gate=Gate.SHARE, says=says, remedy=" ".join(["mainspring limit show", *_options(rule)]))


def _before(limit: LimitReached, whose: str = "") -> str:
    return f"; {limit.ahead:,}{whose} come{'s' if limit.ahead == 1 else ''} before it" if limit.ahead else ""


def _breaker(limit: LimitReached, opening: Opening, now: datetime) -> ClosedGate:
    by = "" if not opening.value else f" for {opening.key} {printable(opening.value, SHOWN_LENGTH)}"
    if limit.holders:
        then = f"run {limit.holders[0]} is being tried"
    elif (probe_at := _next_probe_at(limit, now)) is None:
        then = "it stays open until somebody closes it"
    else:
        then = (
            "the next probe goes out within a second"
            if probe_at <= now
            else f"the next probe goes out at {_at(probe_at)}"
        )
    says = f"the circuit breaker of job {opening.job}{by} {_opened(opening)}; {then}{_before(limit, '')}"
    value = f" --value {shlex.quote(opening.value)}" if opening.value else ""
    return ClosedGate(gate=Gate.BREAKER, says=says, remedy=f"mainspring breaker close --job {opening.job}{value}")


def _opened(opening: Opening) -> str:
    if opening.failures is None:
        why = f": {printable(opening.reason, SHOWN_LENGTH)}" if opening.reason else ""
        return f"was opened by {printable(opening.opened_by, SHOWN_LENGTH)} at {_at(opening.opened_at)}{why}"
    of = "" if opening.attempts is None else f" of {opening.attempts:,} attempts"
    last = f" (last: {printable(opening.error, SHOWN_LENGTH)})" if opening.error else ""
    failures = f"{opening.failures:,} failure{'' if opening.failures == 1 else 's'}"
    return f"opened at {_at(opening.opened_at)} after {failures}{of} in {opening.within.total_seconds():g} s{last}"


def _next_probe_at(limit: LimitReached, now: datetime) -> datetime | None:
    """When a run may be tried next; None: one is, or none is before somebody has acted."""
    if limit.rule is None or limit.rule.opening is None or limit.holders:
        return None
    return limit.rule.opening.next_probe_at(limit.probes, now)


def _earlier(limit: LimitReached) -> ClosedGate:
    if limit.holders:
        says = f"it waits for the earlier run {limit.holders[0]} of its schedule"
        remedy = f"mainspring run explain {limit.holders[0]}"
    else:
        says, remedy = "earlier runs of its schedule have ended, and it is released within a second", None
    if limit.ahead:
        says += f"; {limit.ahead:,} come{'s' if limit.ahead == 1 else ''} before it"
    return ClosedGate(gate=Gate.OVERLAP, says=says, remedy=remedy)


def _too_many_in_line(limit: LimitReached, line: Line) -> ClosedGate:
    says = f"queue {line.queue} has as many runs in line as its high mark says; it follows when workers have taken some"
    return ClosedGate(
        gate=Gate.BACKPRESSURE, says=says + _before(limit), remedy=f"mainspring queue pressure {line.queue}"
    )


def _options(rule: LimitRule) -> list[str]:
    named = [] if rule.scope is LimitScope.TENANT else [f"--{rule.scope}", rule.name]
    return [*named, *(["--key", shlex.quote(rule.key)] if rule.key else [])]


def _pause(run: WaitingRun) -> ClosedGate | None:
    if run.pause is None:
        return None
    why = f": {printable(run.pause.reason, SHOWN_LENGTH)}" if run.pause.reason else ""
    return ClosedGate(
        gate=Gate.QUEUE_PAUSED,
        says=f"queue {run.line.queue} was paused by {run.pause.by} at {_at(run.pause.at)}{why}",
        remedy=f"mainspring queue resume {run.line.queue}",
    )


def objection_of_workers(job: str, line: Line, servers: Sequence[Server]) -> ClosedGate | None:
    """Why none of these workers starts runs of a job in a line."""
    serving = [each for each in servers if line.queue in each.queues]
    if not serving:
        return ClosedGate(
            gate=Gate.NO_WORKER,
            says=f"no live worker serves queue {line.queue}",
            remedy=f"mainspring worker --app MODULE:APP --queues {line.queue}",
        )
    able = [each for each in serving if line.is_served_by(each.queues, each.labels)]
    if not able:
        return ClosedGate(
            gate=Gate.NO_LABELS,
            says=f"no live worker of queue {line.queue} has labels {', '.join(line.labels)}",
            remedy=f"mainspring worker --app MODULE:APP --queues {line.queue} --labels {','.join(line.labels)}",
        )
    if not any(job in each.handlers for each in able):
        return ClosedGate(
            gate=Gate.NO_HANDLER,
            says=f"no live worker of queue {line.queue} has a handler for job {job}",
            remedy="start a worker with the application that defines it",
        )
    return None


def _turn(run: WaitingRun) -> ClosedGate:
    if run.state is State.HELD:
        says = "a worker knows its job by now, and it goes back in line within seconds"
    elif run.ahead:
        says = f"its workers are busy; {run.ahead:,} run{'s come' if run.ahead > 1 else ' comes'} before it"
    else:
        says = "it is next, and starts as soon as a worker has a free slot"
    return ClosedGate(gate=Gate.WORKERS_BUSY, says=says)


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
