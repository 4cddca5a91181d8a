"""Remembers now and then what every queue looks like, so that rates can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import queues

if TYPE_CHECKING:
    from mainspring.store.connection import Connection


TIDY_EVERY = 40  # samples


class Sampler:
    def __init__(self) -> None:
        self._taken = 0

    def forget(self) -> None:
        """A sample more or less does no harm."""

    async def step(self, connection: Connection) -> float:
        if await queues.take_samples(connection):
            self._taken += 1
            if self._taken % TIDY_EVERY == 1:
                await queues.tidy(connection)
        return queues.SAMPLE_SECONDS
