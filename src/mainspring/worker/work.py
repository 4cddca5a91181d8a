"""One claimed run inside a worker, and how its end is written down."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import MainspringError
from mainspring.model.lifecycle import Outcome, State
from mainspring.model.line import Delivery
from mainspring.model.payload import printable
from mainspring.store.leases import Fate, Settled
from mainspring.worker.isolation.echo import EchoedError

if TYPE_CHECKING:
    import asyncio
    from uuid import UUID

    from asyncpg import Record

    from mainspring.model.context import Context
    from mainspring.store.history import Micros
    from mainspring.store.leases import Lease
    from mainspring.worker.registry import Handler

MAX_ERROR_LENGTH = 2_000
MAX_TRACEBACK_LENGTH = 8_000

# The columns of a claimed row, by position: a row is read once per run, and names would cost a look-up each.
ID, TENANT, JOB, VERSION, PRIORITY, RANK, ATTEMPT, FENCE, DUE_AT, READY_AT, EXPIRES_AT, CODEC, PAYLOAD = range(13)
HEADERS, TAGS, KEY, SUBMITTED_BY, SUBMITTED_AT, SPECIAL = range(13, 19)


class Work:
    """A claimed run: its row, its place in a lease, and what is known about its execution."""

    __slots__ = (
        "claimed_at",
        "context",
        "delivery",
        "handler",
        "is_cancelled",
        "is_interrupted",
        "is_settled",
        "lease",
        "line",
        "position",
        "row",
        "started_at",
        "task",
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
    ) -> None:
        self.row = row
        self.lease = lease
        self.position = position
        self.line = line
        self.worker_id = worker_id
        self.claimed_at = claimed_at
        self.handler = handler
        self.delivery = delivery
        self.started_at: Micros | None = None
        self.task: asyncio.Future[Any] | None = None
        self.context: Context | None = None
        self.is_cancelled = False
        self.is_interrupted = False
        self.is_settled = False

    # ── how it may end ───────────────────────────────────────────────────────────────────────────────────────

    def succeeded(self, result: bytes | None, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.SUCCEEDED, State.SUCCEEDED, now, result=result)

    def crashed(self, error: BaseException, now: Micros) -> Settled:
        """Its own process ended without a result. Whose fault that is is known, so it counts like a failure."""
        return self.failed(error, now, Outcome.CRASHED)

    def failed(self, error: BaseException, now: Micros, outcome: Outcome = Outcome.FAILED) -> Settled:
        """A failed attempt: another one after a while, or the dead letters."""
        assert self.handler is not None
        spent = self.row[ATTEMPT] + 1
        policy = self.handler.definition.retry
        if policy.may_retry(spent):
            delay = policy.delay_after(spent).total_seconds()
            return self._settled(Fate.RETRY, outcome, State.SCHEDULED, now, error=error, delay=delay)
        return self._settled(Fate.BURY, outcome, State.DEAD, now, error=error)

    def unkeepable(self, error: BaseException, now: Micros) -> Settled:
        """The handler did its work and returned what cannot be stored: doing it again would not help."""
        return self._settled(Fate.BURY, Outcome.FAILED, State.DEAD, now, error=error)

    def cancelled(self, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.CANCELLED, State.CANCELLED, now)

    def expired(self, now: Micros) -> Settled:
        return self._settled(Fate.END, Outcome.EXPIRED, State.EXPIRED, now)

    def interrupted(self, now: Micros) -> Settled:
        """Stopped through no fault of its own: back in line at once, no attempt spent."""
        return self._settled(Fate.GIVE_BACK, Outcome.INTERRUPTED, State.READY, now)

    def given_back(self, now: Micros) -> Settled:
        """Never started: back in line without a trace."""
        return self._settled(Fate.GIVE_BACK, Outcome.INTERRUPTED, State.READY, now, is_traced=False)

    def held(self, now: Micros) -> Settled:
        """No handler here knows it: set aside without a trace."""
        return self._settled(Fate.HOLD, Outcome.INTERRUPTED, State.HELD, now, is_traced=False)

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
        is_traced: bool = True,
    ) -> Settled:
        self.is_settled = True
        row = self.row
        started = self.started_at
        if self.delivery is Delivery.AT_MOST_ONCE and started is not None:
            fate, state = _never_again(fate, state)
        payload = row[PAYLOAD]
        # In the order of AttemptRecord; a plain tuple, because this happens once per run.
        record = (
            self.lease.lane,
            row[ID],
            row[FENCE],
            row[ATTEMPT] + 1 if started is not None else 0,
            row[TENANT],
            row[JOB],
            row[VERSION],
            self.line,
            row[PRIORITY],
            outcome.value,
            state.value,
            row[DUE_AT],
            row[READY_AT],
            self.claimed_at,
            started,
            now,
            self.worker_id,
            None if error is None else error_document(error),
            result,
            row[CODEC],
            payload if fate is Fate.END else None,
            row[HEADERS],
            row[TAGS],
            row[KEY],
            row[SUBMITTED_BY],
            row[SUBMITTED_AT],
        )
        return Settled(self.lease, self.position, row[ID], row[FENCE], fate, record, payload, delay, is_traced)


def _never_again(fate: Fate, state: State) -> tuple[Fate, State]:
    """The rule of at-most-once: a run that has started goes nowhere from where it could start again.

    What would be retried is dead; what was stopped through no fault of its own (a drain, a lost connection) is lost.
    """
    match fate:
        case Fate.END | Fate.BURY:
            return fate, state
        case Fate.RETRY:
            return Fate.BURY, State.DEAD
        case Fate.GIVE_BACK | Fate.HOLD:
            return Fate.END, State.LOST


def error_document(error: BaseException) -> str:
    """An error as history keeps it: cleaned, bounded, as JSON text."""
    echoed = error.traceback_text if isinstance(error, EchoedError) else None
    trace = echoed or "".join(traceback.format_exception(error))
    document = {
        "type": printable(type(error).__qualname__, 200),
        "message": printable(message_of(error), MAX_ERROR_LENGTH),
        "traceback": printable(trace[-MAX_TRACEBACK_LENGTH:], MAX_TRACEBACK_LENGTH),
    }
    if isinstance(error, (MainspringError, EchoedError)) and error.code is not None:
        document["code"] = printable(error.code, 100)
    return msgspec.json.encode(document).decode()


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a hostile __str__ must not fail the worker
        return "(the error's text cannot be had)"
