"""Works an operation off in a process of its own, and dies in the middle of its third batch, after it has acted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mainspring import Mainspring
from mainspring.control.acting import Acting
from mainspring.store import operations
from mainspring.store.database import Database

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

BATCHES = 3


def die_before_advancing() -> None:
    advance, calls = operations.advance, iter(range(1, 1_000))

    async def advance_or_die(*arguments: Any, **values: Any) -> None:
        if next(calls) == BATCHES:
            os.kill(os.getpid(), signal.SIGKILL)
        await advance(*arguments, **values)

    operations.advance = advance_or_die


def act_apart(url: str) -> None:
    """The sabotage: what is done to the runs is committed apart from the cursor."""
    act = Acting.act

    async def act_at_once(self: Acting, connection: Connection, *arguments: Any) -> int:
        own = await Database(url).connect("apart")
        try:
            return await act(self, own, *arguments)
        finally:
            await own.close()

    Acting.act = act_at_once  # type: ignore[method-assign, assignment]


async def work(url: str, operation_id: str) -> None:
    async with Mainspring(url) as app:
        async for _ in app.operations.work(UUID(operation_id), batch=7):
            pass


if __name__ == "__main__":
    die_before_advancing()
    if sys.argv[3:] == ["apart"]:
        act_apart(sys.argv[1])
    asyncio.run(work(sys.argv[1], sys.argv[2]))
