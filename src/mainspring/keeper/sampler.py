"""Remembers now and then what every queue looks like, so that rates can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store import queues

if TYPE_CHECKING:
    import asyncpg


class Sampler:
    def forget(self) -> None:
        """Nothing is remembered here."""

    async def step(self, connection: asyncpg.Connection[asyncpg.Record]) -> float:
        await queues.take_samples(connection)
        return queues.SAMPLE_SECONDS
