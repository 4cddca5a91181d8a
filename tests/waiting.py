"""Waiting for what happens elsewhere: by asking whether it has, never for a while in the hope that it has by then."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 100.0  # of somebody on a machine that has much else to do; it ends a test that hangs, and nothing else
PAUSE_SECONDS = 0.005
HANGS = "select pg_sleep(86400)"  # a statement that is not answered before somebody ends it
# Whether somebody waits for a lock in this database: tests beside this one have databases, and locks, of their own.
SOMEBODY_WAITS = (
    "select exists (select from pg_locks join pg_stat_activity using (pid)"
    " where not granted and datname = current_database())"
)


async def until(look: Callable[[], Any], pause: float = PAUSE_SECONDS) -> Any:
    """Ask until the answer is neither nothing nor false, and pass it on."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await _answer(look)):
            await asyncio.sleep(pause)
    return found


async def _answer(look: Callable[[], Any]) -> Any:
    found = look()
    return await found if inspect.isawaitable(found) else found


def eventually(condition: Callable[[], bool]) -> bool:
    """The same for tests without a loop; False when patience is at its end."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


class Calls:
    """Counts the calls of a function that it stands in for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.count = 0
        self._function = function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.count += 1
        return self._function(*arguments, **options)

    async def more(self, count: int = 2) -> None:
        """Wait until so many more have begun: of two, one is over and began after this was asked."""
        wanted = self.count + count
        await until(lambda: self.count >= wanted)
