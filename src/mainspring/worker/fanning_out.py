"""Which run the present code would be submitting children of: said by the attempt that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from mainspring.model.fan_out import Children, FanOut, above, marked, outside_handler
from mainspring.store.columns import BROUGHT, HEADERS, ID
from mainspring.worker.current_attempt import CURRENT_ATTEMPT

if TYPE_CHECKING:
    from mainspring.store.connection import Record
    from mainspring.worker.work import Work


class MayFanOut(Protocol):
    """An attempt whose handler may submit children."""

    def fan_out(self) -> Children: ...


def children_here() -> Children:
    """The children of the run whose handler the present code belongs to."""
    attempt: MayFanOut | None = CURRENT_ATTEMPT.get()
    if attempt is None:
        raise outside_handler()
    return attempt.fan_out()


def brought_with_mark(row: Record) -> tuple[Any, ...]:
    """What a claimed run brings into history, with the mark that it has children: it has them since it was claimed."""
    return (*row[:HEADERS], marked(row[HEADERS]), *row[HEADERS + 1 : BROUGHT])


def fan_out_of(work: Work) -> FanOut:
    """Of plain values: it travels into isolated processes."""
    return FanOut(
        run_id=UUID(int=work.row[ID].int),
        lease_id=UUID(int=work.lease.id.int),
        position=work.position,
        worker_id=UUID(int=work.worker_id.int),
        above=above(work.row[HEADERS]),
    )
