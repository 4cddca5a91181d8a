"""One claimed run inside a worker, and how its end is written down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mainspring.errors import AttemptTimedOut
from mainspring.model.fan_out import Children, has_children, of_transactional
from mainspring.model.lifecycle import Outcome, State
from mainspring.model.line import Delivery
from mainspring.model.steering import Cancel, Retry, Snooze, Steering
from mainspring.store.columns import ATTEMPT, BROUGHT, FENCE, HEADERS, ID, PAYLOAD, SPECIAL
from mainspring.store.instants import micros_of
from mainspring.store.leases import Fate, Settled
from mainspring.worker.fanning_out import brought_with_mark, fan_out_of
from mainspring.worker.handler_errors import error_document
from mainspring.worker.starting_again import due_again, never_again
from mainspring.worker.successes import Success
from mainspring.worker.time_limits import schedule_gate_of, special_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.actor import Tenant
    from mainspring.model.context import Context
    from mainspring.model.policy import RetryPolicy
    from mainspring.store.connection import Record
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Hold, Lease
    from mainspring.worker.registry import Handler
    from mainspring.worker.report import AttemptReport
    from mainspring.worker.time_limits import Special, TimeLimit
    from mainspring.worker.waits import Waits


class Work:
    """A claimed run: its row, its place in a lease, and what is known about its execution."""

    __slots__ = (
        "children",
        "claimed_at",
        "context",
        "delivery",
        "handler",
        "is_cancelled",
        "is_interrupted",
        "is_settled",
        "lease",
        "limit",
        "line",
        "needs_thread",
        "position",
        "report",
        "row",
        "shared_by",
        "started_at",
        "task",
        "tenant",
        "waits",
        "worker_id",
    )

    def __init__(
        self,
        row: Record,
        lease: Lease,
        position: int,
        line: int,
        worker_id: UUID,
        claimed_at: Micros,
        handler: Handler | None,
        delivery: Delivery = Delivery.AT_LEAST_ONCE,
        waits: Waits | None = None,
        tenant: Tenant | None = None,
    ) -> None:
        self.row = row
        self.lease = lease
        self.position = position
        self.line = line
        self.worker_id = worker_id
        self.claimed_at = claimed_at
        self.handler = handler
        self.delivery = delivery
        self.waits = waits
        self.tenant = tenant  # None: never to be executed here
        self.started_at: Micros | None = None
        self.task: asyncio.Future[Any] | None = None
        self.context: Context | None = None
        self.report: AttemptReport | None = None
        self.children: Children | None = None
        self.is_cancelled = False
        self.is_interrupted = False
        self.is_settled = False
        self.limit: TimeLimit | None = None
        self.shared_by = 1  # so many runs share the call of its handler
        self.needs_thread = handler is not None and handler.needs_thread

    @property
    def runs(self) -> Sequence[Work]:
        """The runs that its handler is called for: itself, unless it is a call for several (`gatherer.py`)."""
        return (self,)

    @property
    def is_in_its_task(self) -> bool:
        """Whether it is its handler's task that runs at present."""
        try:
            return asyncio.current_task() is self.task
        except RuntimeError:  # there is no event loop
            return False

    # ── what governs it ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def special(self) -> Special:
        return special_of(self.row[SPECIAL])

    @property
    def payload(self) -> bytes:
        payload: bytes = self.row[PAYLOAD]
        return payload

    @property
    def gates(self) -> str | None:
        """Of which the run holds slots, one per line."""
        return None if self.row[SPECIAL] is None else self.row[SPECIAL].partition("\n")[2] or None

    @property
    def schedule_gate(self) -> str | None:
        """Where later runs of its schedule may wait for its end; empty: nowhere. None: no schedule asks for it."""
        return None if self.row[SPECIAL] is None else schedule_gate_of(self.row[SPECIAL])

    @property
    def is_special(self) -> bool:
        """Whether more has to happen at its end than a row of history."""
        return self.row[SPECIAL] is not None and (self.gates is not None or self.schedule_gate is not None)

    @property
    def retry_policy(self) -> RetryPolicy:
        assert self.handler is not None
        overrides = self.special.overrides
        return (overrides and overrides.retry) or self.handler.definition.retry

    @property
    def has_begun(self) -> bool:
        """Whether its handler was called."""
        return self.started_at is not None

    @property
    def is_over_time(self) -> bool:
        return self.limit is not None and self.limit.exceeded is not None

    @property
    def is_told_to_stop(self) -> bool:
        return self.is_cancelled or self.is_interrupted or self.is_over_time

    def exceed_limit(self) -> None:
        """Its time is up."""
        assert self.limit is not None
        self.limit.exceed()

    def interrupt(self) -> None:
        """It is to stop, and did nothing wrong."""
        self.is_interrupted = True

    def _has_time_until(self, due: int) -> bool:
        return self.limit is None or self.limit.leaves_time_until(due)

    # ── its children ─────────────────────────────────────────────────────────────────────────────────────────

    def fan_out(self) -> Children:
        """The handler submits children; it may do so from any thread."""
        assert self.handler is not None
        if self.delivery is Delivery.TRANSACTIONAL:
            raise of_transactional(self.handler.name)
        if self.children is None:
            self.children = Children(fan_out_of(self))
        return self.children

    @property
    def has_children(self) -> bool:
        """Whether the handler has submitted children, in this attempt or in an earlier one."""
        return self.children is not None or (self.row[FENCE] > 1 and has_children(self.row[HEADERS]))

    # ── how it may end ───────────────────────────────────────────────────────────────────────────────────────

    def success(self, result: bytes | None, now: Micros) -> Success:
        """The handler has returned. Who writes that down is decided when it is settled."""
        self.is_settled = True
        if self.report is not None:
            self.report.conclude()
        return Success(self, now, result)

    def awaiting_children(self, result: bytes | None, now: Micros) -> Settled:
        """The handler has returned, and has submitted children: the run has succeeded when they have."""
        settled = self._settled(Fate.AWAIT_CHILDREN, Outcome.SUCCEEDED, State.HELD, now)
        return settled._replace(result=result)

    def succeeded(self, result: bytes | None, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.SUCCEEDED, State.SUCCEEDED, now, result=result)

    def crashed(self, error: BaseException, now: Micros) -> Settled:
        """Its own process ended without a result. Whose fault that is is known, so it counts like a failure."""
        return self.failed(error, now, Outcome.CRASHED)

    def failed(self, error: BaseException, now: Micros, outcome: Outcome = Outcome.FAILED) -> Settled:
        """A failed attempt: another one after a while, or the dead letters."""
        policy = self.retry_policy
        if not policy.is_worth_retrying(error):
            return self._settled(Fate.BURY, outcome, State.DEAD, now, error=error)
        return self._again(policy, error, now, outcome=outcome)

    def _again(
        self,
        policy: RetryPolicy,
        error: BaseException,
        now: Micros,
        *,
        outcome: Outcome = Outcome.FAILED,
        delay: float | None = None,
        at: datetime | None = None,
    ) -> Settled:
        """Another attempt, if there is one left, and time for it."""
        spent = self.row[ATTEMPT] + 1
        if delay is None:
            delay = policy.delay_after(spent, self.row[ID]).total_seconds()
        if policy.may_retry(spent) and self._has_time_until(due_again(now, delay, at)):
            return self._settled(Fate.RETRY, outcome, State.SCHEDULED, now, error=error, delay=delay, at=at)
        return self._settled(Fate.BURY, outcome, State.DEAD, now, error=error)

    def steered(self, steering: Steering, now: Micros) -> Settled:
        """The handler said itself what is to become of its run."""
        match steering:
            case Retry():
                return self._again(self.retry_policy, steering, now, delay=steering.delay, at=steering.at)
            case Snooze():
                return self._snoozed(steering, now)
            case Cancel():
                return self._settled(Fate.END, Outcome.CANCELLED, State.CANCELLED, now, error=steering)
            case _:  # Fail, or a kind of its own that says nothing we know: someone has to look at it
                return self._settled(Fate.BURY, Outcome.FAILED, State.DEAD, now, error=steering)

    def _snoozed(self, snooze: Snooze, now: Micros) -> Settled:
        if not self._has_time_until(due_again(now, snooze.delay, snooze.at)):
            error = AttemptTimedOut("The run asked to wait for longer than its time.", code="run-timed-out")
            return self._settled(Fate.BURY, Outcome.TIMED_OUT, State.DEAD, now, error=error, spent=0)
        return self._settled(
            Fate.RETRY,
            Outcome.SNOOZED,
            State.SCHEDULED,
            now,
            error=snooze,
            delay=snooze.delay,
            at=snooze.at,
            spent=0,
        )

    def stopped(self, now: Micros, cause: BaseException | None = None) -> Settled:
        """Told to stop, it did or was abandoned: because someone wished it, for it took too long, or by a drain."""
        if self.is_cancelled:
            return self.cancelled(now)
        if self.limit is not None and self.limit.exceeded is not None:
            self.limit.exceeded.__cause__ = cause
            return self._timed_out(self.limit.exceeded, now)
        return self.interrupted(now)

    def _timed_out(self, error: AttemptTimedOut, now: Micros) -> Settled:
        assert self.limit is not None
        if self.limit.is_last:
            return self._settled(Fate.BURY, Outcome.TIMED_OUT, State.DEAD, now, error=error)
        return self.failed(error, now, Outcome.TIMED_OUT)

    def out_of_time(self, now: Micros) -> Settled:
        """The run's time was up before this attempt could begin."""
        error = AttemptTimedOut("The run's time was up before it could be tried again.", code="run-timed-out")
        return self._settled(Fate.BURY, Outcome.TIMED_OUT, State.DEAD, now, error=error, spent=0)

    def ungovernable(self, error: Exception, now: Micros) -> Settled:
        """Its own policies cannot be read: someone has to look at it."""
        return self._settled(Fate.BURY, Outcome.FAILED, State.DEAD, now, error=error, spent=0)

    def hopeless(self, error: BaseException, now: Micros) -> Settled:
        """Its arguments do not fit, or what it returned cannot be stored: doing it again would not help."""
        return self._settled(Fate.BURY, Outcome.FAILED, State.DEAD, now, error=error)

    def cancelled(self, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.CANCELLED, State.CANCELLED, now)

    def expired(self, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.EXPIRED, State.EXPIRED, now)

    def interrupted(self, now: Micros) -> Settled:
        """Stopped through no fault of its own: back in line at once, no attempt spent."""
        is_traced = self.started_at is not None
        return self._settled(Fate.GIVE_BACK, Outcome.INTERRUPTED, State.READY, now, is_traced=is_traced)

    def given_back(self, now: Micros) -> Settled:
        """Never started: back in line without a trace."""
        return self._settled(Fate.GIVE_BACK, Outcome.INTERRUPTED, State.READY, now, is_traced=False)

    def held(self, now: Micros) -> Settled:
        """No handler here knows it: set aside without a trace."""
        return self._settled(Fate.HOLD, Outcome.INTERRUPTED, State.HELD, now, is_traced=False)

    def held_at(self, hold: Hold, now: Micros) -> Settled:
        """It has to pass its gates first: set aside without a trace."""
        return self.held(now)._replace(hold=hold)

    def _settled(
        self,
        fate: Fate,
        outcome: Outcome,
        state: State,
        now: Micros,
        *,
        result: bytes | None = None,
        error: BaseException | None = None,
        delay: float = 0.0,
        at: datetime | None = None,
        spent: int = 1,
        is_traced: bool = True,
    ) -> Settled:
        self.is_settled = True
        row = self.row
        started = self.started_at
        if self.delivery is Delivery.AT_MOST_ONCE and started is not None:
            fate, state = never_again(fate, state)
        payload = row[PAYLOAD]
        # In the order of AttemptRecord; plain tuples, and added, because this happens once per run.
        record = (row[:BROUGHT] if self.children is None else brought_with_mark(row)) + (
            self.lease.lane,
            row[ID],
            row[FENCE],
            row[ATTEMPT] + 1 if started is not None else 0,
            self.line,
            outcome,  # as they are: each is a str, and asking for its value takes a quarter of a microsecond
            state,
            self.claimed_at,
            started,
            now,
            self.worker_id,
            None if error is None else error_document(error),
            result,
            payload if fate is Fate.END else None,
        )
        not_before = None if at is None else micros_of(at)
        return Settled(
            self.lease,
            self.position,
            row[ID],
            row[FENCE],
            fate,
            record,
            payload,
            delay,
            is_traced,
            not_before,
            spent,
            None if self.report is None else self.report.conclude(),
            self.shared_by,
            None if row[SPECIAL] is None else self.gates,
            None,
            None if row[SPECIAL] is None else self.schedule_gate,
        )
