"""Calls chunk handlers, and settles each run of a call by its own answer.

A run that may not begin, or whose arguments cannot be read, is settled by itself and the others are called without it.
What the handler raises counts for each of its runs. A run that is cancelled while its call is under way learns it by
its context, and the call goes on for the others; if it has no answer after the grace, it is cancelled without one. Once
all its runs are cancelled, a call is stopped like that of any run.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from mainspring.store.columns import PAYLOAD
from mainspring.worker import outcomes
from mainspring.worker.handler_errors import described_once, unpacked
from mainspring.worker.performer import check_codec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mainspring.store.instants import Micros
    from mainspring.store.leases import Settled
    from mainspring.worker.capacity import Capacity
    from mainspring.worker.gatherer import ChunkCall
    from mainspring.worker.performer import Performer
    from mainspring.worker.registry import Handler
    from mainspring.worker.successes import Success
    from mainspring.worker.time_limits import Timekeeper
    from mainspring.worker.work import Work


class ChunkRunner:
    def __init__(
        self,
        *,
        capacity: Capacity,
        timekeeper: Timekeeper,
        performer: Performer,
        settle: Callable[[Settled | Success], None],
        now: Callable[[], Micros],
        cancel_grace: float,
    ) -> None:
        self._capacity = capacity
        self._timekeeper = timekeeper
        self._performer = performer
        self._settle = settle
        self._now = now
        self._cancel_grace = cancel_grace
        self._context = copy_context()  # what every call begins with: nothing of other runs
        self._calls: dict[Work, ChunkCall] = {}  # of each run whose handler is called

    def start(self, call: ChunkCall) -> bool:
        """Begin those of its runs that may begin; answers whether any does, and so takes a slot."""
        handler = call.handler
        assert handler is not None
        self._capacity.share(call, -1)
        begun = [(run, item) for run in call.runs for item in self._begin(run, handler)]
        if not begun:
            return False
        call.begin([run for run, _ in begun], [item for _, item in begun])
        self._capacity.share(call, 1)
        self._calls |= dict.fromkeys(call.runs, call)
        call.task = asyncio.Task(self._execute(call, handler), name=handler.name, context=self._context.copy())
        self._capacity.begin(call)
        return True

    def _begin(self, run: Work, handler: Handler) -> Sequence[Any]:
        """The run's item; nothing if it was settled instead."""
        now = self._now()
        if run.is_settled:
            return ()
        refusal = outcomes.refused(run, handler, now)
        if refusal is not None:
            self._settle(refusal)
            return ()
        run.started_at = now
        try:
            return _items_of(run, handler)
        except Exception as error:
            self._settle(outcomes.raised(run, error, now))
            return ()

    async def _execute(self, call: ChunkCall, handler: Handler) -> None:
        answers: Sequence[Any]
        call.started_at = self._now()
        try:
            if call.is_told_to_stop:
                raise asyncio.CancelledError  # before it began
            answers = await self._performer.perform_call(call, handler, self._timekeeper.watch)
        except BaseException as error:  # whatever a handler raises ends the attempts of its runs, and only these
            if isinstance(error, GeneratorExit) and not call.is_in_its_task:
                raise  # as for any run: the event loop is gone
            answers = [unpacked(error)] * len(call.runs)
        self._finish(call, handler, answers)

    def _finish(self, call: ChunkCall, handler: Handler, answers: Sequence[Any]) -> None:
        call.task = None
        if call.limit is not None:
            self._timekeeper.forget(call)
        for run in call.runs:
            del self._calls[run]
        if self._capacity.finish(call):
            self._capacity.finish_sharing(call)
            with described_once(answers[0]):  # in case it is that of all
                self._settle_each(call, handler, answers)
        self._capacity.refill(call)

    def _settle_each(self, call: ChunkCall, handler: Handler, answers: Sequence[Any]) -> None:
        now = self._now()
        for run, answer in zip(call.runs, answers, strict=True):
            if not run.is_settled:  # else it was cancelled, and could not wait for the others
                self._settle(outcomes.answered(run, handler, answer, now))

    def cancel(self, run: Work) -> Work | None:
        """Someone wants this run to stop; answers with what is to be stopped for that, if there is something."""
        if self._capacity.gatherer.withdraw(run):
            self._settle(run.cancelled(self._now()))
            return None
        call = self._calls.get(run)
        if call is None:
            return run
        if all(each.is_cancelled for each in call.runs):
            call.is_cancelled = True
            return call
        if run.context is not None:
            run.context.request_cancel()
        asyncio.get_running_loop().call_later(self._cancel_grace, self._leave_behind, run)
        return None

    def _leave_behind(self, run: Work) -> None:
        """Its call goes on for the others, and whatever the handler answers for this one is passed over."""
        if not run.is_settled:
            self._settle(run.cancelled(self._now()))


def _items_of(run: Work, handler: Handler) -> tuple[Any, ...]:
    check_codec(run)
    items, _ = handler.arguments.decode(run.row[PAYLOAD])
    return items
