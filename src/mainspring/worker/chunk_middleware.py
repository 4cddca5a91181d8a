"""Middleware goes around each attempt, and so around each run of a chunk; in the middle of them all is one call.

Each run goes through the middleware in a task of its own. When all have come as far as the handler, it is called for
those that did: some middleware may have refused a run, or answered for it. What the handler answers for a run, or what
it raises, is what comes back to its middleware. Where one run waits for another to come back first, as behind a
semaphore, the handler is called for those that are there, after a moment, and again for the rest.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mainspring.model.context import Context
    from mainspring.worker.environment import Surroundings

PATIENCE_SECONDS = 1.0  # for those that have not come as far as the handler


class ChunkMiddleware:
    """`call` takes items and their contexts, and answers for each."""

    def __init__(
        self,
        call: Callable[[Sequence[Any], Sequence[Context]], Awaitable[Sequence[Any]]],
        surroundings: Surroundings,
        items: Sequence[Any],
        contexts: Sequence[Context],
    ) -> None:
        self._call = call
        self._surroundings = surroundings
        self._items = items
        self._contexts = contexts
        self._arrived: dict[int, asyncio.Future[Any]] = {}  # by the place of the run in the chunk
        self._under_way = len(items)  # runs that neither wait here nor are over
        self._has_changed = asyncio.Event()

    async def answers(self) -> Sequence[Any]:
        """What comes out of the middleware for each run: a value, or an exception."""
        ways = [asyncio.create_task(self._through(place)) for place in range(len(self._items))]
        try:
            while not all(way.done() for way in ways):
                await self._until_all_arrived()
                await self._call_for_arrived()
        finally:
            for way in ways:
                way.cancel()
            answers = await asyncio.gather(*ways, return_exceptions=True)
        return answers

    async def _through(self, place: int) -> Any:
        try:
            return await self._surroundings.around(self._contexts[place], partial(self._arrive, place))
        except BaseException as error:  # a task that raises SystemExit ends the worker
            return error
        finally:
            self._leave()

    async def _arrive(self, place: int) -> Any:
        answer = self._arrived[place] = asyncio.get_running_loop().create_future()
        self._leave()
        try:
            return await answer
        finally:
            if answer.cancelled():  # its middleware has lost patience
                self._arrived.pop(place, None)
                self._under_way += 1

    def _leave(self) -> None:
        self._under_way -= 1
        self._has_changed.set()

    async def _until_all_arrived(self) -> None:
        while self._under_way:
            self._has_changed.clear()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS if self._arrived else None):
                    await self._has_changed.wait()
            except TimeoutError:
                return

    async def _call_for_arrived(self) -> None:
        arrived, self._arrived = self._arrived, {}
        if not arrived:
            return
        try:
            answers = await self._call([self._items[at] for at in arrived], [self._contexts[at] for at in arrived])
        except Exception as error:
            answers = [error] * len(arrived)
        for answer, future in zip(answers, arrived.values(), strict=True):
            if not future.done():
                self._under_way += 1
                future.set_exception(answer) if isinstance(answer, BaseException) else future.set_result(answer)
