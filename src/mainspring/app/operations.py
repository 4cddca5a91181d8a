"""Acts on many runs: `app.operations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.operation import kind_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import timedelta
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.model.filter import RunFilter
    from mainspring.model.operation import Operation, OperationKind


class OperationCollection:
    """Start an operation, work it off, resume it elsewhere."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app

    async def start(
        self,
        kind: OperationKind | str,
        wanted: RunFilter,
        *,
        priority: int | None = None,
        queue: str | None = None,
        max_age: timedelta | float | None = None,
        reason: str = "",
    ) -> Operation:
        """Write down what is to be done to all runs that match: cancel, change, requeue, purge or retry them."""
        operations = (await self._app.services()).operations
        return await operations.start(
            kind_of(kind),
            wanted,
            priority=priority,
            queue=queue,
            max_age=max_age,
            reason=reason,
            actor=self._app.submitted_by,
        )

    async def work(self, operation_id: UUID | str, *, batch: int = 500) -> AsyncIterator[Operation]:
        """Work an operation off from where it is, in batches; tells how far it got after each of them."""
        async for operation in (await self._app.services()).operations.work(operation_id, batch=batch):
            yield operation

    async def find(self, operation_id: UUID | str) -> Operation:
        """An operation by its id, and how far it got."""
        return await (await self._app.services()).operations.find(operation_id)

    async def latest(self, count: int = 20) -> list[Operation]:
        """The operations that were started last, newest first."""
        return await (await self._app.services()).operations.latest(count)
