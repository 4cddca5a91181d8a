"""Tenants: whose jobs and runs something is. Workers serve all of them, in turns by weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mainspring.model.invalid import invalid

if TYPE_CHECKING:
    from datetime import datetime

MAX_WEIGHT = 1_000


class TenantRow(NamedTuple):
    """A tenant as it is stored."""

    id: int
    name: str
    weight: int
    created_at: datetime
    changed_at: datetime
    changed_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStatus:
    """A tenant as people see it: its weight, who set it, what waits in its lines and what workers hold of it."""

    name: str
    weight: int
    depth: int
    holding: int
    created_at: datetime
    changed_at: datetime
    changed_by: str
    reason: str


def checked_weight(weight: object) -> int:
    if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
        raise invalid(
            "weight",
            weight,
            f"must be a whole number from 1 to {MAX_WEIGHT}",
            "While both have runs waiting, a tenant of weight 2 gets twice as many executed as one of weight 1.",
        )
    return weight
