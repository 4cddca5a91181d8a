"""Inline mode for many runs of a chunk handler: what is submitted together is called in chunks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring.model.chunk import answers_of
from mainspring.worker.chunk import lists_for
from mainspring.worker.chunk_middleware import ChunkMiddleware
from mainspring.worker.current_attempt import CURRENT_ATTEMPT
from mainspring.worker.handler_errors import call_carrying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.model.context import Context
    from mainspring.worker.environment import Environment, Surroundings
    from mainspring.worker.registry import Handler


class InlineChunk:
    """One call of the handler, with resources that are opened for it only."""

    def __init__(self, handler: Handler, environment: Environment, contexts: Sequence[Context]) -> None:
        self._handler = handler
        self._environment = environment
        self._contexts = contexts

    async def answers(self, payloads: Sequence[bytes], speaker: object) -> Sequence[Any]:
        """What it answers for each run. What it logs belongs to `speaker`."""
        CURRENT_ATTEMPT.set(speaker)
        items = [self._handler.arguments.decode(payload)[0][0] for payload in payloads]
        needs = self._handler.arguments.injected.values()
        answers: Sequence[Any] = await self._environment.around_one(
            needs, partial(self._call_through, items), with_hooks=False
        )
        return answers

    async def _call_through(self, items: Sequence[Any], surroundings: Surroundings) -> Sequence[Any]:
        call = partial(self._call, surroundings)
        if not surroundings.middleware:
            return await call(items, self._contexts)
        return await ChunkMiddleware(call, surroundings, items, self._contexts).answers()

    async def _call(
        self, surroundings: Surroundings, items: Sequence[Any], contexts: Sequence[Context]
    ) -> Sequence[Any]:
        assert self._handler.chunk is not None
        given = surroundings.given(self._handler.arguments.injected)
        call = partial(self._handler.chunk.function, *lists_for(self._handler, items, contexts), **given)
        # A plain function goes to a thread, as in a worker.
        result = await (call() if self._handler.is_async else asyncio.to_thread(call_carrying, call))
        return answers_of(self._handler.name, result, len(items))
