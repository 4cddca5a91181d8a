"""Tenants as people handle them: make them, weigh them, see what each has waiting."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mainspring.errors import RowExists
from mainspring.model.job import checked_name, checked_reason
from mainspring.model.tenant import TenantStatus, checked_weight
from mainspring.store import queues
from mainspring.store import tenants as store
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from mainspring.model.actor import Actor
    from mainspring.model.tenant import TenantRow
    from mainspring.store.database import Database


class Tenants:
    """Shows tenants, makes them and changes their weights."""

    # Not by tenant: whoever may operate the installation sees all of them. What is written down is the actor's.

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def list(self, actor: Actor) -> list[TenantStatus]:
        """Every tenant: its weight, what waits in its lines, and what workers hold of it."""
        async with self._database.acquire() as connection:
            rows = await store.listed(connection)
            loads = await queues.loads_by_tenant(connection)
        return [_status(row, *loads.get(row.id, (0, 0))) for row in rows]

    async def find(self, actor: Actor, name: str) -> TenantStatus:
        """One tenant by its name."""
        async with self._database.acquire() as connection:
            row = await store.find(connection, checked_name(name, "tenant"))
            loads = await queues.loads_by_tenant(connection, row.id)
        return _status(row, *loads.get(row.id, (0, 0)))

    async def create(self, actor: Actor, name: str, *, weight: int = 1, reason: str = "") -> TenantStatus:
        """Make a tenant: applications can act for it at once, and workers serve it within a second.

        While tenants have runs waiting, they get as many executed as their weights say: one of weight 2 gets twice as
        many as one of weight 1.
        """
        checked_name(name, "tenant")
        await uncancelled(self._create(actor, name, checked_weight(weight), checked_reason(reason)))
        return await self.find(actor, name)

    async def _create(self, actor: Actor, name: str, weight: int, reason: str) -> None:
        while True:
            with suppress(RowExists):  # somebody has the number that was drawn: draw another one
                async with self._database.acquire() as connection, transaction(connection):
                    await store.create(connection, name, weight, actor=actor, reason=reason)
                return

    async def set_weight(self, actor: Actor, name: str, weight: int, *, reason: str = "") -> TenantStatus:
        """Give a tenant another share of the workers, within a second; what is running goes on."""
        checked_name(name, "tenant")
        await uncancelled(self._set_weight(actor, name, checked_weight(weight), checked_reason(reason)))
        return await self.find(actor, name)

    async def _set_weight(self, actor: Actor, name: str, weight: int, reason: str) -> None:
        async with self._database.acquire() as connection, transaction(connection):
            await store.set_weight(connection, name, weight, actor=actor, reason=reason)


def _status(row: TenantRow, depth: int, holding: int) -> TenantStatus:
    return TenantStatus(
        name=row.name,
        weight=row.weight,
        depth=depth,
        holding=holding,
        created_at=row.created_at,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        reason=row.reason,
    )
