"""Stored calendars in the database: named, shared by schedules. They are few, and every lane's schedules use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Connection, Record

MOST_CALENDARS = 1_000


async def find(connection: Connection, names: Sequence[str], *, tenant_id: int) -> list[Record]:
    return await load("calendars/find").fetch(connection, names=names, tenant=tenant_id)


async def hold(connection: Connection, names: Sequence[str], *, tenant_id: int) -> list[Record]:
    """Find them, and let nobody edit or delete them until the transaction ends."""
    return await load("calendars/hold").fetch(connection, names=names, tenant=tenant_id)


async def listed(connection: Connection, *, tenant_id: int) -> list[Record]:
    return await load("calendars/list").fetch(connection, tenant=tenant_id, count=MOST_CALENDARS)


async def advance_revision(connection: Connection) -> int:
    """Begin to write a calendar, inside a transaction: one at a time."""
    return int(await load("calendars/advance_revision").fetchval(connection))


async def put(connection: Connection, name: str, document: str, *, revision: int, tenant_id: int, actor: str) -> None:
    await load("calendars/put").execute(
        connection, name=name, document=document, revision=revision, tenant=tenant_id, actor=actor
    )


async def delete(connection: Connection, name: str, *, tenant_id: int) -> bool:
    """Answers whether there was one."""
    return await load("calendars/delete").fetchval(connection, name=name, tenant=tenant_id) is not None


async def edited(connection: Connection, since: int) -> dict[int, list[str]]:
    """The names of calendars that were written after a revision, by tenant."""
    found: dict[int, list[str]] = {}
    for row in await load("calendars/edited").fetch(connection, since=since):
        found.setdefault(row["tenant_id"], []).append(row["name"])
    return found


async def users(
    connection: Connection, lanes: Sequence[int], names: Sequence[str], *, tenant_id: int, after: str, count: int
) -> list[Record]:
    """Schedules that use one of these calendars, in the order of their names."""
    return await load("calendars/users").fetch(
        connection, lanes=lanes, names=names, tenant=tenant_id, after=after, count=count
    )


async def audit(connection: Connection, action: str, name: str, *, tenant_id: int, actor: str) -> None:
    """In the first lane: a calendar belongs to none."""
    await load("schedules/audit").execute(
        connection, lane=0, tenant=tenant_id, actor=actor, action=f"calendar.{action}", subject=name, detail="{}"
    )
