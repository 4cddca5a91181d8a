"""Tenants: whose jobs and runs something is, and how large a share of the workers each has."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import ForeignDatabase, TenantExists, TenantNotFound, did_you_mean, shortened
from mainspring.model.tenant import TenantRow
from mainspring.store import notify
from mainspring.store.declaring import revision_locked
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection

MOST_TENANTS = 100_000  # are listed
MOST_SUGGESTED = 1_000  # are compared with a name that nobody has


async def listed(
    connection: Connection, names: Sequence[str] | None = None, count: int = MOST_TENANTS
) -> list[TenantRow]:
    """Every tenant, or those with these names, by name."""
    rows = await load("tenants/list").fetch(connection, names=names, count=count)
    return [TenantRow(**row) for row in rows]


async def find(connection: Connection, name: str) -> TenantRow:
    found = await listed(connection, [name])
    if not found:
        raise await _not_found(connection, name)
    return found[0]


async def check(connection: Connection, actor: Actor) -> None:
    """That the actor's tenant has in this database the number under which it was found."""
    if (await find(connection, actor.tenant_name)).id != actor.tenant:
        raise ForeignDatabase(
            f"Tenant {actor.tenant_name!r} has another number in this database than where it was looked up.",
            hint="Ask again: it is looked up anew.",
        )


async def create(connection: Connection, name: str, weight: int, *, actor: Actor, reason: str) -> None:
    """Make a tenant, inside a transaction. Workers hear of it.

    Its number is drawn at random: a program that knows one of a database that was replaced since finds nobody's things.
    """
    await revision_locked(connection)
    made = await load("tenants/create").fetchval(
        connection,
        id=random.randrange(1 << 30, (1 << 31) - 1),
        name=name,
        weight=weight,
        **_said(actor, weight, reason),
    )
    if made is None:
        raise TenantExists(
            f"There is a tenant named {name!r} already.",
            hint=f"To change its weight: mainspring tenant set {name} --weight {weight}",
            field="tenant",
            value=name,
        )
    notify.send(connection, [notify.limits()])


async def set_weight(connection: Connection, name: str, weight: int, *, actor: Actor, reason: str) -> None:
    """In force within a second of COMMIT: workers look at weights when a limit was written."""
    await revision_locked(connection)
    changed = await load("tenants/set_weight").fetchval(
        connection, name=name, weight=weight, **_said(actor, weight, reason)
    )
    if changed is None:
        raise await _not_found(connection, name)
    notify.send(connection, [notify.limits()])


def _said(actor: Actor, weight: int, reason: str) -> dict[str, object]:
    detail = msgspec.json.encode({"weight": weight, "reason": reason}).decode()
    return {"tenant": actor.tenant, "actor": actor.name, "reason": reason, "detail": detail}


async def _not_found(connection: Connection, name: str) -> TenantNotFound:
    known = [each.name for each in await listed(connection, count=MOST_SUGGESTED)]
    return TenantNotFound(
        f"There is no tenant named {shortened(name)}.",
        hint=did_you_mean(name, known) or f"Make it: mainspring tenant create {shortened(name)}",
        field="tenant",
        value=name,
    )
