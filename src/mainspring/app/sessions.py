"""What an application has open: one session per event loop, closed with it at the latest."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from mainspring import wiring


@dataclass
class Session:
    """What an application has open within one event loop."""

    services: wiring.Services
    farewell: AsyncGenerator[None, None]  # closing it closes everything


class Sessions:
    def __init__(self, open_services: Callable[[], Awaitable[wiring.Services]]) -> None:
        self._open_services = open_services
        self._opening: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Session]] = (
            weakref.WeakKeyDictionary()
        )

    async def get(self) -> wiring.Services:
        """The services of the running event loop, opened when first asked for."""
        loop = asyncio.get_running_loop()
        opening = self._opening.get(loop)
        if opening is None or _has_failed(opening):
            opening = self._opening[loop] = loop.create_task(self._open())
        if opening.done():
            return opening.result().services
        return (await asyncio.shield(opening)).services

    @property
    def is_open(self) -> bool:
        """Whether something is open within the running event loop, or being opened."""
        opening = self._opening.get(asyncio.get_running_loop())
        return opening is not None and not _has_failed(opening)

    async def _open(self) -> Session:
        session = Session(await self._open_services(), self._farewell())
        await anext(session.farewell)
        return session

    async def _farewell(self) -> AsyncGenerator[None, None]:
        """An ending event loop closes its asynchronous generators, and us with them if nobody did before."""
        try:
            yield
        finally:
            opening = self._opening.pop(asyncio.get_running_loop(), None)
            if opening is not None:
                await (await opening).services.close()

    async def close(self) -> None:
        """Close what is open within the running event loop."""
        opening = self._opening.get(asyncio.get_running_loop())
        if opening is not None and not _has_failed(opening):
            await (await opening).farewell.aclose()


def _has_failed(opening: asyncio.Task[Session]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)
