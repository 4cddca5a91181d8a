"""What an application may do about queues and workers: `app.queues.pause("mail")`, `app.workers.drain(id)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring.model.capacity import Queue
    from mainspring.wiring import Services


class QueueActs:
    def __init__(self, services: Callable[[], Awaitable[Services]], actor: str) -> None:
        self._services = services
        self._actor = actor

    async def list(self) -> list[Queue]:
        """Every queue: what waits, since when, how fast it moves, how many slots it wants."""
        return await (await self._services()).queues.list()

    async def pause(self, name: str, *, reason: str = "") -> bool:
        """Nothing of this queue is claimed any more; what runs goes on. False when it was paused before."""
        return await (await self._services()).queues.pause(name, actor=self._actor, reason=reason)

    async def resume(self, name: str, *, reason: str = "") -> bool:
        """What waits there is claimed again, at once. False when it was not paused."""
        return await (await self._services()).queues.resume(name, actor=self._actor, reason=reason)


class WorkerActs:
    def __init__(self, services: Callable[[], Awaitable[Services]], actor: str) -> None:
        self._services = services
        self._actor = actor

    async def drain(self, worker_id: UUID | str, *, reason: str = "") -> None:
        """Ask a worker to claim nothing more, finish what it runs within its grace, and end for good."""
        await (await self._services()).workers.drain(worker_id, actor=self._actor, reason=reason)
