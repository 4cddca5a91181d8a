"""How a transactional handler finishes its run: one call on the handler's own connection, in its own transaction.

Whether that transaction committed only the database knows. So the worker settles every attempt of such a handler as
one that was not finished: if it was, the lease is gone and its attempt is in history, and the settlement changes
nothing (`leases/recorded_before`); a COMMIT that is still under way is waited for, because it holds the lease's row.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec reads the annotations of Finishing
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from mainspring.errors import NotFinished
from mainspring.model.line import Delivery
from mainspring.store.callers import callers_connection
from mainspring.store.columns import FENCE, ID
from mainspring.store.instants import instant_of

if TYPE_CHECKING:
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work


class Finishing(msgspec.Struct, frozen=True):
    """Everything that the database has to be told; it travels into isolated processes too."""

    run_id: UUID
    fence: int
    lane: int
    lease_id: UUID
    position: int
    worker_id: UUID
    started_at: datetime

    async def finish(self, connection: object, result: str | None) -> None:
        await callers_connection(connection).finish(*self._arguments(result))

    def finish_sync(self, connection: object, result: str | None) -> None:
        callers_connection(connection).finish_sync(*self._arguments(result))

    def _arguments(self, result: str | None) -> tuple[str | None, ...]:
        """In the order of `mainspring.finish_run`, each as text."""
        return (
            str(self.run_id),
            str(self.fence),
            str(self.lane),
            str(self.lease_id),
            str(self.position),
            str(self.worker_id),
            self.started_at.isoformat(),
            result,
        )


def finishing_of(work: Work, handler: Handler) -> Finishing | None:
    """What a transactional handler finishes its run with; None for others."""
    if handler.definition.delivery is not Delivery.TRANSACTIONAL:
        return None
    assert work.started_at is not None
    return Finishing(
        run_id=UUID(int=work.row[ID].int),
        fence=work.row[FENCE],
        lane=work.lease.lane,
        lease_id=UUID(int=work.lease.id.int),
        position=work.position,
        worker_id=UUID(int=work.worker_id.int),
        started_at=instant_of(work.started_at),
    )


def not_finished(result: Any) -> NotFinished:
    unused = " What it returned is not used." if result is not None else ""
    return NotFinished(
        f"The handler returned, but no transaction that finished its run was committed.{unused}",
        hint="Call `await context.finish(connection, result)` in the transaction that does the work, and commit it.",
    )
