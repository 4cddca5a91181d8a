"""How submissions are cut up, the same for every peer: into batches where it has them, else many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

BATCH = 500
AT_ONCE = 100


def batches(count: int) -> Iterator[int]:
    """The sizes of the batches that make up so many jobs."""
    for start in range(0, count, BATCH):
        yield min(BATCH, count - start)


async def many_at_once(submit_one: Callable[[], Awaitable[object]], count: int) -> None:
    """Submit one by one, with many of them on their way at any moment."""
    left = iter(range(count))

    async def keep_submitting() -> None:
        for _ in left:
            await submit_one()

    await asyncio.gather(*(keep_submitting() for _ in range(AT_ONCE)))
