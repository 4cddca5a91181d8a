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
from mainspring.model.dependency import ENDED_WORDS, Condition, Met, Otherwise, met
from mainspring.model.lifecycle import WAITING, State
from mainspring.model.payload import printable
from mainspring.model.rate import rate_text, whole_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.breaker import Opening, ProbeProgress
    from mainspring.model.concurrency import LimitRule
    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.line import Line
    from mainspring.model.rate import TokenBucket
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
    as_soon_as: str | None = None  # the event that opens it, as a clause; None: an instant does, or an act


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
    dead: Collection[UUID] = ()  # holders that are dead letters and keep their slots until somebody has decided
    bucket: TokenBucket | None = None  # where it has a rate
    probes: ProbeProgress | None = None  # where it is a circuit breaker


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentStatus:
    """A run that has to end before another one may start."""

    run_id: UUID
    condition: Condition
    state: State | None  # None: it was taken back, or history has forgotten it
    due_at: datetime | None = None  # if it waits for its time

    @property
    def is_over(self) -> bool:
        """Whether it has ended otherwise than it should, so that its child waits until somebody acts."""
        return self.state in ENDED_WORDS and met(self.condition, Otherwise.CANCEL, self.state) is Met.NO


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
    children_due_at: datetime | None = None  # if one of these waits for its time, the latest
    limit: LimitReached | None = None
    next_limits: Sequence[LimitReached] = ()  # at whose gates it waits after that
    pause: Pause | None = None
    servers: Sequence[Server] = ()
    ahead: int = 0  # so many runs of its line come before it
    prefetched: int = 0  # so many more were claimed, and wait inside workers for a slot
    starts_per_s: float | None = None  # of its line


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
    ahead: int | None = None  # so many runs come before it: at its gate, or in its line
    ahead_is_exact: bool = True
    holders: list[Holder] = field(default_factory=list)
    as_soon_as: str | None = None  # what it waits for, as a clause: "run … ends"
    earliest_at: datetime | None = None  # it cannot start before; None: not before somebody has acted
    is_estimate: bool = False  # of that instant, from how fast its line moves


def reasons(run: WaitingRun) -> list[ClosedGate]:
    """Everything that keeps a waiting run from starting, in the order in which it is met. Never empty."""
    if run.children is not None:
        return [_children(run.children)]  # nothing else is left to be done
    asked = (
        _parents(run),
        _time(run),
        _limit(run.limit, run),
        *(_next_limit(limit, run) for limit in run.next_limits),
        _pause(run),
        objection_of_workers(run.job, run.line, run.servers),
    )
    return [each for each in asked if each is not None] or [_turn(run)]


def earliest_start(run: WaitingRun) -> tuple[datetime | None, bool]:
    """Before when the run cannot start, and whether that is an estimate. None where somebody has to act first."""
    gate = reasons(run)[0].gate
    if gate in _OPENED_BY_SOMEBODY or _is_stuck(run):
        return None, False
    if gate is Gate.RATE:
        return max(run.due_at, _token_at(run)), True
    if gate is Gate.BREAKER and run.limit is not None and not run.limit.holders:
        return _next_probe_at(run.limit, run.now), False
    if gate is Gate.WORKERS_BUSY and run.starts_per_s and (before := run.ahead + run.prefetched):
        return run.now + timedelta(seconds=before / run.starts_per_s), True
    due = [run.due_at, run.children_due_at, *(parent.due_at for parent in run.parents)]
    return max([run.now, *(each for each in due if each is not None)]), False


_OPENED_BY_SOMEBODY = (Gate.QUEUE_PAUSED, Gate.NO_WORKER, Gate.NO_LABELS, Gate.NO_HANDLER)


def _is_stuck(run: WaitingRun) -> bool:
    """Whether what has to end first has ended, and not as it should, or keeps its slot as a dead letter."""
    if run.parents:
        return any(parent.is_over for parent in run.parents)
    return run.due_at <= run.now and run.limit is not None and _is_halted(run.limit)


def _is_halted(limit: LimitReached) -> bool:
    """Whether all slots are those of dead letters."""
    return limit.rule is not None and limit.rule.most is not None and len(limit.dead) >= limit.rule.most


def _token_at(run: WaitingRun) -> datetime:
    """When there is a token for it, behind those that come before it at its gate."""
    limit = run.limit
    if limit is None or limit.rule is None or limit.rule.rate is None or limit.bucket is None:
        return run.now
    return run.now + timedelta(seconds=limit.rule.rate.seconds_until(limit.ahead + 1, limit.bucket))


_SHOULD = {Condition.SUCCESS: "succeeds", Condition.FAILURE: "fails", Condition.END: "ends"}


def _parents(run: WaitingRun) -> ClosedGate | None:
    if not run.parents:
        return None
    first = next((parent for parent in run.parents if parent.is_over), run.parents[0])
    others = len(run.parents) - 1
    more = "" if not others else f", and for {others:,} other{'s' if others > 1 else ''}"
    should = f"run {first.run_id} {_SHOULD[first.condition]}"
    if first.is_over and first.state is not None:
        return _parent_that_is_over(run, first, first.state, more)
    state = "" if first.state is None else f", which is {first.state}"
    return ClosedGate(
        gate=Gate.PARENT,
        says=f"it waits until {should}{state}{more}",
        remedy=f"mainspring run explain {first.run_id}",
        as_soon_as=f"{should}, and the others have ended as they should" if others else should,
    )


def _parent_that_is_over(run: WaitingRun, parent: ParentStatus, state: State, more: str) -> ClosedGate:
    says = f"it waits until run {parent.run_id} {_SHOULD[parent.condition]}, which {ENDED_WORDS[state]}"
    if state is State.DEAD:
        return ClosedGate(gate=Gate.PARENT, says=says + more, remedy=f"mainspring dead-letter requeue {parent.run_id}")
    # What has succeeded stays as it is, also when its flow is retried.
    retry = "" if state is State.SUCCEEDED else ", or retry the flow that both belong to"
    return ClosedGate(
        gate=Gate.PARENT,
        says=f"{says} and does not run again{more}; cancel this one{retry}",
        remedy=f"mainspring run cancel {run.id}",
    )


def _children(children: Sequence[ChildStatus]) -> ClosedGate:
    going_on = [each for each in children if each.state in (*WAITING, State.RUNNING)]
    if not going_on:
        return ClosedGate(gate=Gate.CHILDREN, says="its children have ended, and it ends within a second")
    first, others = going_on[0], len(going_on) - 1
    more = "" if not others else f", and {others:,} other{'s' if others > 1 else ''}"
    of = f"{len(going_on):,} of its {len(children):,} children" if len(children) > 1 else "its child"
    return ClosedGate(
        gate=Gate.CHILDREN,
        says=f"it waits for {of}: run {first.run_id}, which is {first.state}{more}",
        remedy=f"mainspring run explain {first.run_id}",
        as_soon_as="its children have ended" if len(children) > 1 else f"run {first.run_id} ends",
    )


def _time(run: WaitingRun) -> ClosedGate | None:
    if run.due_at <= run.now:
        return None
    if run.attempts_spent:
        tried = f"{run.attempts_spent} attempt{'s' if run.attempts_spent > 1 else ''}"
        gate, says = Gate.BACK_OFF, f"after {tried} it backs off until {_at(run.due_at)}"
    else:
        gate, says = Gate.NOT_DUE, f"it is due at {_at(run.due_at)}"
    return ClosedGate(gate=gate, says=says, remedy=f"mainspring run change {run.id} --at {run.now:%Y-%m-%dT%H:%M:%SZ}")


def _limit(limit: LimitReached | None, run: WaitingRun) -> ClosedGate | None:
    if limit is None:
        return None
    rule = limit.rule
    if rule is None:
        return ClosedGate(gate=Gate.LIMIT, says="its limit was removed, and it goes in line within a second")
    if rule is ONE_AT_A_TIME:
        return _earlier(limit)
    if rule is HIGH_MARK:
        return _too_many_in_line(limit, run.line)
    if rule.opening is not None:
        return _breaker(limit, rule.opening, run.now)
    if rule.is_share_of_workers:
        return _share(limit, rule)
    whose = "" if limit.value is None else f"{rule.told_apart_by} {printable(limit.value, SHOWN_LENGTH)}"
    by = f" for {whose}" if whose and not rule.share else ""
    of = "all runs" if rule.scope is LimitScope.TENANT else f"{rule.scope} {rule.name}"
    remedy = " ".join(["mainspring limit show", *_options(rule)])
    before = _before(limit, f" of {whose}" if rule.share else "")
    if rule.most is not None and len(limit.holders) >= rule.most:
        says = f"at most {rule.most:,} of {of} may execute at once{by}, and {_holding(limit, rule.most)}{before}"
        return _slots_taken(limit, says, remedy)
    if rule.rate is not None:
        says = f"at most {rate_text(rule.rate)} of {of} may start{by}{before}"
        return ClosedGate(gate=Gate.RATE, says=says, remedy=remedy)
    says = f"at most {rule.most:,} of {of} may execute at once{by}; a slot is free, and it is released within a second"
    return ClosedGate(gate=Gate.LIMIT, says=says, remedy=remedy)


def _next_limit(limit: LimitReached, run: WaitingRun) -> ClosedGate | None:
    """What the run meets after the gate at which it waits, if nobody can pass there as things are."""
    rule = limit.rule
    if rule is None:
        return None
    has_no_slot = rule.most is not None and len(limit.holders) >= rule.most
    has_no_token = limit.bucket is not None and not whole_tokens(limit.bucket)
    return _limit(limit, run) if has_no_slot or has_no_token else None


def _holding(limit: LimitReached, most: int) -> str:
    """Who holds the slots: a dead letter first, since somebody has to decide about it."""
    first = next(iter(limit.dead), limit.holders[0])
    what = f"run {first}, which is a dead letter," if limit.dead else f"run {first}"
    if most == 1:
        until = " until it is requeued or purged" if limit.dead else ""
        return f"{what} holds the slot{until}"
    return f"{what} and others hold the slots"


def _slots_taken(limit: LimitReached, says: str, remedy: str) -> ClosedGate:
    if limit.dead:
        requeue = f"mainspring dead-letter requeue {next(iter(limit.dead))}"
        free = None if _is_halted(limit) else "a slot is free for it"
        return ClosedGate(gate=Gate.LIMIT, says=says, remedy=requeue, as_soon_as=free)
    is_next = len(limit.holders) == 1 and not limit.ahead
    ends = f"run {limit.holders[0]} ends" if is_next else "a slot is free for it"
    return ClosedGate(gate=Gate.LIMIT, says=says, remedy=remedy, as_soon_as=ends)


def _share(limit: LimitReached, rule: LimitRule) -> ClosedGate:
    of = "all runs" if rule.scope is LimitScope.TENANT else f"runs of {rule.scope} {rule.name}"
    whose = f"{rule.share} {printable(limit.value or '', SHOWN_LENGTH)}"
    says = f"{of} take turns by {rule.share}, and it is not yet the turn of {whose}{_before(limit, f' of {whose}')}"
    remedy = " ".join(["mainspring limit show", *_options(rule)])
    return ClosedGate(gate=Gate.SHARE, says=says, remedy=remedy, as_soon_as=f"it is the turn of {whose}")


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
    return ClosedGate(
        gate=Gate.BREAKER,
        says=says,
        remedy=f"mainspring breaker close --job {opening.job}{value}",
        as_soon_as=f"run {limit.holders[0]} has ended" if limit.holders else None,
    )


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
        is_next = len(limit.holders) == 1 and not limit.ahead
        ends = f"run {limit.holders[0]} ends" if is_next else "the earlier runs of its schedule have ended"
    else:
        says, remedy = "earlier runs of its schedule have ended, and it is released within a second", None
        ends = None
    if limit.ahead:
        says += f"; {limit.ahead:,} come{'s' if limit.ahead == 1 else ''} before it"
    return ClosedGate(gate=Gate.OVERLAP, says=says, remedy=remedy, as_soon_as=ends)


def _too_many_in_line(limit: LimitReached, line: Line) -> ClosedGate:
    says = f"queue {line.queue} has as many runs in line as its high mark says; it follows when workers have taken some"
    return ClosedGate(
        gate=Gate.BACKPRESSURE,
        says=says + _before(limit),
        remedy=f"mainspring queue pressure {line.queue}",
        as_soon_as="workers have taken enough of its line",
    )


def _options(rule: LimitRule) -> list[str]:
    named = ["--all-runs"] if rule.scope is LimitScope.TENANT else [f"--{rule.scope}", rule.name]
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
        return ClosedGate(gate=Gate.WORKERS_BUSY, says=says)
    if run.ahead:
        says = f"its workers are busy; {run.ahead:,} run{'s come' if run.ahead > 1 else ' comes'} before it"
        return ClosedGate(gate=Gate.WORKERS_BUSY, says=says, as_soon_as="those before it have started")
    says = "it is next, and starts as soon as a worker has a free slot"
    return ClosedGate(gate=Gate.WORKERS_BUSY, says=says, as_soon_as="a worker has a free slot")


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
