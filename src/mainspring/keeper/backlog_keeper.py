"""Clears backlogs with caps of entries whose runs wait no longer, and drops what callers' transactions added too much.

Whoever submits does the same for a backlog that seems full; this is for those under which nobody submits any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.keeper.look import Look, LookFor
from mainspring.store import backlog_tidying

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

EVERY = 1.0


class BacklogKeeper:
    def __init__(self, *, lanes: int, look: Look) -> None:
        self._lanes = lanes
        self._look = look

    def forget(self) -> None:
        self._look.forget()

    async def step(self, connection: Connection) -> float:
        lanes = await self._look.lanes(connection, LookFor.BACKLOGS)
        has_more = [await backlog_tidying.tidy(connection, lane, self._lanes) for lane in lanes]
        return 0.0 if any(has_more) else EVERY
