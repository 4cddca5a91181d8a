"""Who a worker is: what nearly all of its parts have to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """Its id, the tenant it works for, how many lanes the database has, and the clock it goes by."""

    id: UUID
    tenant_id: int
    lanes: int
    clock: Clock
