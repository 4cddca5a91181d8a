"""Executes runs in children of their own, and turns how a child ended into what became of the run."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import ProcessCrashed
from mainspring.model.steering import steering_of
from mainspring.store.columns import ATTEMPT, FENCE, HEADERS, ID, PAYLOAD, SPECIAL
from mainspring.worker.command import result_of
from mainspring.worker.finishing import finishing_of
from mainspring.worker.isolation.echo import crash_of, echo_of
from mainspring.worker.isolation.wire import Done, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.worker.isolation.conversation import Conversation, Listener
    from mainspring.worker.isolation.starter import Starter
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work


class Isolation:
    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._children: dict[Work, Conversation | None] = {}  # None while it waits for a child

    def start(self) -> None:
        self._starter.start()

    def is_for(self, work: Work, handler: Handler) -> bool:
        """Whether a run needs a process of its own: its job says so, or it was there when a worker crashed."""
        return handler.definition.isolated or (work.row[SPECIAL] is not None and work.special.crashes > 0)

    def holds(self, work: Work) -> bool:
        return work in self._children

    async def perform(
        self, work: Work, handler: Handler, begins: Callable[[Work], None], listener: Listener, checkpointed: Any = None
    ) -> Any:
        """`begins` hears of a limited run when its handler begins: waiting for a child is not counted.

        `listener` hears what the child says and prints.
        """
        self._children[work] = None
        child = None
        try:
            child = self._children[work] = await self._starter.take()
            if work.limit is not None:
                begins(work)
            word = await child.hold(start_of(work, handler, checkpointed), listener)
            return _result_of(word, child, handler)
        finally:
            del self._children[work]
            if child is not None:
                self._let_go(child)

    def _let_go(self, child: Conversation) -> None:
        if child.fault is not None:
            self._starter.kill(child)
        else:
            self._starter.release(child)

    def tell(self, work: Work) -> None:
        child = self._children[work]
        if child is not None:
            self._starter.tell(child)
        elif work.task is not None:
            work.task.cancel()  # nothing has begun

    def kill(self, work: Work) -> None:
        child = self._children[work]
        if child is not None:
            self._starter.kill(child)

    def close(self) -> None:
        self._starter.close()


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
        headers=None if row[HEADERS] is None else msgspec.json.decode(row[HEADERS]),
        checkpointed=checkpointed,
    )


def _result_of(word: Any, child: Conversation, handler: Handler) -> Any:
    """What the handler returned, or why it did not."""
    if isinstance(word, Done):
        return word.result
    if word is not None and word.steering is not None:
        raise steering_of(word.steering)
    if child.is_killed or (child.is_told and (word is None or word.is_cancelled)):
        raise asyncio.CancelledError
    if word is not None:
        raise echo_of(word)
    if child.fault is not None:
        raise ProcessCrashed(f"The process of this run was ended because of what it sent. {child.fault}")
    if handler.command is not None and child.status is not None and os.WIFEXITED(child.status):
        return result_of(handler.command, os.WEXITSTATUS(child.status), child.tail)
    raise crash_of(child.status, handler.definition)
