"""What becomes of an attempt: whether it may begin, and how its end is settled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidInput, ProcessCrashed, RunCancelled
from mainspring.model.line import Delivery
from mainspring.model.steering import Steering
from mainspring.store.columns import EXPIRES_AT, SPECIAL
from mainspring.worker.finishing import not_finished
from mainspring.worker.handler_errors import HOPELESS
from mainspring.worker.isolation.remote_error import RemoteError
from mainspring.worker.time_limits import limit_of

if TYPE_CHECKING:
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Settled
    from mainspring.worker.registry import Handler
    from mainspring.worker.successes import Success
    from mainspring.worker.work import Work


def may_be_refused(work: Work, handler: Handler | None) -> bool:
    """Whether there is anything to look at before a claimed run begins. With most there is not."""
    row = work.row
    return (
        work.is_cancelled
        or handler is None
        or row[EXPIRES_AT] is not None
        or handler.is_timed
        or row[SPECIAL] is not None
    )


def refused(work: Work, handler: Handler | None, now: Micros) -> Settled | None:
    """How a claimed run is settled that may not begin; None if it may. Finds out how long it may take."""
    expires_at = work.row[EXPIRES_AT]
    if work.is_cancelled:
        return work.cancelled(now)
    if handler is None:
        return work.held(now)
    if expires_at is not None and expires_at <= now:
        return work.expired(now)
    if handler.is_timed or work.row[SPECIAL] is not None:
        return _limited(work, handler, now)
    return None


def _limited(work: Work, handler: Handler, now: Micros) -> Settled | None:
    try:
        work.limit = limit_of(handler.definition, work.special, now)
    except msgspec.ValidationError as error:
        return work.ungovernable(error, now)
    if work.limit is not None and work.limit.seconds <= 0:
        return work.out_of_time(now)
    return None


def returned(work: Work, handler: Handler, result: Any, now: Micros) -> Settled | Success:
    """The handler has returned."""
    if isinstance(result, Steering):
        return work.steered(result, now)
    if handler.definition.delivery is Delivery.TRANSACTIONAL:
        return work.failed(not_finished(result), now)  # which changes nothing if it was: see finishing.py
    try:
        data = handler.returns.encode(result)
    except InvalidInput as error:
        return work.hopeless(error, now)
    return work.awaiting_children(data, now) if work.has_children else work.success(data, now)


def raised(work: Work, error: BaseException, now: Micros) -> Settled:
    """The handler has raised something, or its own process has ended."""
    if isinstance(error, Steering):
        return work.steered(error, now)
    if work.is_over_time or (work.is_told_to_stop and isinstance(error, RunCancelled)):
        return work.stopped(now, error)
    if isinstance(error, ProcessCrashed):
        return work.crashed(error, now)
    if isinstance(error, HOPELESS) or (isinstance(error, RemoteError) and error.is_hopeless):
        return work.hopeless(error, now)
    return work.failed(error, now)


def answered(work: Work, handler: Handler, answer: Any, now: Micros) -> Settled | Success:
    """The handler has answered for this one of several runs."""
    try:
        if isinstance(answer, asyncio.CancelledError):
            return cancelled(work, answer, now)
        return raised(work, answer, now) if isinstance(answer, BaseException) else returned(work, handler, answer, now)
    except BaseException as error:  # a result that fails to be read concerns this run only
        return raised(work, error, now)


def cancelled(work: Work, error: asyncio.CancelledError, now: Micros) -> Settled:
    """The handler's task was cancelled: by someone's wish, for its time was up, by a drain, or by itself."""
    if work.is_told_to_stop:
        return work.stopped(now, error)
    return work.failed(asyncio.CancelledError("The handler cancelled itself."), now)
