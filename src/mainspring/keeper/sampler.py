"""Remembers now and then what every queue looks like, and what was promoted, so that rates can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import queues

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.connection import Connection


TIDY_EVERY = 40  # samples


def nothing_promoted() -> dict[int, int]:
    """For a sampler without a promoter beside it."""
    return {}


class Sampler:
    def __init__(self, take_promoted: Callable[[], dict[int, int]] = nothing_promoted) -> None:
        self._take_promoted = take_promoted
        self._taken = 0

    def forget(self) -> None:
        """A sample more or less does no harm."""

    async def step(self, connection: Connection) -> float:
        await queues.add_promotions(connection, self._take_promoted())
        if await queues.take_samples(connection):
            self._taken += 1
            if self._taken % TIDY_EVERY == 1:
                await queues.tidy(connection)
        return queues.SAMPLE_SECONDS
