"""Executes runs in children of their own, and turns how a child ended into what became of the run."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import ProcessCrashed
from mainspring.model.headers import read_headers
from mainspring.model.line import Delivery
from mainspring.model.steering import steering_of
from mainspring.store.columns import ATTEMPT, FENCE, HEADERS, ID, PAYLOAD, SPECIAL
from mainspring.worker.command import result_of
from mainspring.worker.fanning_out import fan_out_of
from mainspring.worker.finishing import finishing_of
from mainspring.worker.isolation.remote_error import crash_of, remote_error_of
from mainspring.worker.isolation.wire import Done, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.worker.isolation.pool import ChildPool
    from mainspring.worker.isolation.process import IsolatedProcess, MessageReceiver
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work


class Isolation:
    def __init__(self, pool: ChildPool) -> None:
        self._pool = pool
        self._children: dict[Work, IsolatedProcess | None] = {}  # None while it waits for a child

    def start(self) -> None:
        self._pool.start()

    def is_for(self, work: Work, handler: Handler) -> bool:
        """Whether a run needs a process of its own: its job says so, or it was there when a worker crashed."""
        return handler.definition.isolated or (work.row[SPECIAL] is not None and work.special.crashes > 0)

    def holds(self, work: Work) -> bool:
        return work in self._children

    async def perform(
        self,
        work: Work,
        handler: Handler,
        begins: Callable[[Work], None],
        receiver: MessageReceiver,
        checkpointed: Any = None,
    ) -> Any:
        """`begins` hears of a limited run when its handler begins: waiting for a child is not counted.

        `receiver` gets what the child sends and prints.
        """
        self._children[work] = None
        child = None
        try:
            child = self._children[work] = await self._pool.take()
            if work.limit is not None:
                begins(work)
            word = await child.execute(start_of(work, handler, checkpointed), receiver)
            return _result_of(word, child, handler)
        finally:
            del self._children[work]
            if child is not None:
                self._let_go(child)

    def _let_go(self, child: IsolatedProcess) -> None:
        if child.fault is not None:
            self._pool.kill(child)
        else:
            self._pool.release(child)

    def tell(self, work: Work) -> None:
        child = self._children[work]
        if child is not None:
            self._pool.tell(child)
        elif work.task is not None:
            work.task.cancel()  # nothing has begun

    def kill(self, work: Work) -> None:
        child = self._children[work]
        if child is not None:
            self._pool.kill(child)

    def close(self) -> None:
        self._pool.close()


def start_of(work: Work, handler: Handler, checkpointed: Any) -> Start:
    row, definition = work.row, handler.definition
    return Start(
        run_id=row[ID],
        job=handler.name,
        attempt=row[ATTEMPT] + 1,
        fence=row[FENCE],
        payload=msgspec.Raw(row[PAYLOAD]),
        memory=definition.memory,
        cpu=None if definition.cpu is None else definition.cpu.total_seconds(),
        finishing=finishing_of(work, handler),
        headers=read_headers(row[HEADERS]),
        checkpointed=checkpointed,
        fan_out=None if work.delivery is Delivery.TRANSACTIONAL else fan_out_of(work),
        tenant=work.tenant,
    )


def _result_of(word: Any, child: IsolatedProcess, handler: Handler) -> Any:
    """What the handler returned, or why it did not."""
    if isinstance(word, Done):
        return word.result
    if word is not None and word.steering is not None:
        raise steering_of(word.steering)
    if child.is_killed or (child.is_asked_to_stop and (word is None or word.is_cancelled)):
        raise asyncio.CancelledError
    if word is not None:
        raise remote_error_of(word)
    if child.fault is not None:
        raise ProcessCrashed(f"The process of this run was ended because of what it sent. {child.fault}")
    if handler.command is not None and child.status is not None and os.WIFEXITED(child.status):
        return result_of(handler.command, os.WEXITSTATUS(child.status), child.tail)
    raise crash_of(child.status, handler.definition)
