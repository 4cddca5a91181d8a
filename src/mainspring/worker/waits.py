"""Handlers that wait for other runs give up their slots meanwhile, and take one again before they go on.

Else a run that waits for one it has submitted keeps it from starting where no other slot is free, and both wait for
ever. A handler may wait for several runs at once: it is without a slot for as long as it waits for any of them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol

from mainspring.errors import Conflict
from mainspring.worker.current_attempt import CURRENT_ATTEMPT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Container

    from mainspring.worker.work import Work

MOST_PER_SLOT = 10  # so many handlers may wait for each slot: each keeps what it has in memory, and maybe a thread


class SlotOwner(Protocol):
    """Who has to be told that an attempt waits: its executor, or for an isolated one, its worker."""

    pid: int

    async def leave(self, attempt: Any) -> None: ...

    async def come_back(self, attempt: Any) -> None: ...


@asynccontextmanager
async def without_slot() -> AsyncIterator[None]:
    """While this lasts, the handler that the present code belongs to, if any, only waits for another run."""
    attempt = CURRENT_ATTEMPT.get()
    owner: SlotOwner | None = None if attempt is None else attempt.waits
    if owner is None or owner.pid != os.getpid():  # or the handler forked, and this is its child
        yield
        return
    try:
        await owner.leave(attempt)
        yield
    finally:
        await owner.come_back(attempt)


class Waits:
    """The handlers of one executor that are without a slot. May be used from any thread and event loop."""

    def __init__(
        self,
        *,
        most: int,
        running: Container[Work],
        has_slot_for: Callable[[Work], bool],
        slot_is_free: Callable[[], None],
    ) -> None:
        self.pid = os.getpid()
        self.without_slot = 0
        self.without_thread = 0  # those of them that are in a thread, which is not counted meanwhile
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()  # a run that gets the slot begins in it, not in that of the handler that waits
        self._most = most
        self._running = running
        self._has_slot_for = has_slot_for
        self._slot_is_free = slot_is_free
        self._waiting: dict[Work, int] = {}  # for how many runs each waits
        self._returning: dict[Work, asyncio.Future[None]] = {}  # who wants a slot again, the first first

    # ── from the handler ────────────────────────────────────────────────────────────────────────────────────

    async def leave(self, work: Work) -> None:
        """Begin to wait. Refused if too many do: they could not all be kept."""
        if asyncio.get_running_loop() is self._loop:
            self._leave(work)
        else:
            # Shielded, so that whoever is cancelled meanwhile comes back after it has left, and not before.
            await asyncio.shield(self._in_our_loop(self.leave(work)))

    async def come_back(self, work: Work) -> None:
        """The wait is over: go on as soon as there is a slot, unless there is another wait, or it is told to stop."""
        if asyncio.get_running_loop() is not self._loop:
            await self._in_our_loop(self.come_back(work))
            return
        count = self._waiting.get(work, 0)
        if count > 1:
            self._waiting[work] = count - 1
        elif count and not work.is_told_to_stop:
            del self._waiting[work]
            await self._slot_for(work)

    def _in_our_loop(self, call: Any) -> asyncio.Future[None]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def _leave(self, work: Work) -> None:
        if work not in self._running:
            return  # it was abandoned: its slot is not used for others
        if work not in self._waiting and work not in self._returning:
            if self.without_slot >= self._most:
                raise _too_many(self._most)
            self._count(work, 1)
        self._waiting[work] = self._waiting.get(work, 0) + 1
        self._let_go(self._returning.pop(work, None))
        self._context.run(self._slot_is_free)

    async def _slot_for(self, work: Work) -> None:
        has_slot = self._returning[work] = self._loop.create_future()
        self.grant()
        try:
            await has_slot
        except asyncio.CancelledError:
            self.stop_queueing(work)  # whoever is cancelled is about to end
            raise

    # ── from the executor ───────────────────────────────────────────────────────────────────────────────────

    def grant(self) -> None:
        """Give slots that are free to those who came back, in their order; new runs get what is left."""
        for work in list(self._returning):
            if self._has_slot_for(work):
                self._count(work, -1)
                self._let_go(self._returning.pop(work))

    def stop_queueing(self, work: Work) -> None:
        """It is to stop, and needs no slot for that."""
        if (has_slot := self._returning.pop(work, None)) is not None:
            self._waiting[work] = 1
            self._let_go(has_slot)

    def forget(self, work: Work) -> None:
        """It has ended, or was abandoned."""
        has_slot = self._returning.pop(work, None)
        if self._waiting.pop(work, None) is not None or has_slot is not None:
            self._count(work, -1)
        self._let_go(has_slot)

    def _count(self, work: Work, change: int) -> None:
        self.without_slot += change
        self.without_thread += change * work.needs_thread

    def _let_go(self, has_slot: asyncio.Future[None] | None) -> None:
        if has_slot is not None and not has_slot.done():
            has_slot.set_result(None)


def _too_many(most: int) -> Conflict:
    return Conflict(
        f"{most:,} handlers of this worker process wait for other runs already; this one may not.",
        code="too-many-waiting",
        hint="Give the worker more slots, or let fewer runs wait: submit the next step at the end of each run instead.",
        most=most,
    )
