"""Operations on many runs: what is to be done, and how far it got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.store.statements import load

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from mainspring.store.connection import Connection, Record


async def start(
    connection: Connection,
    *,
    operation_id: UUID,
    tenant_id: int,
    kind: str,
    wanted: dict[str, Any],
    change: dict[str, Any],
    actor: str,
    reason: str,
    expected: int | None,
) -> None:
    await load("operations/start").fetchval(
        connection,
        id=operation_id,
        tenant=tenant_id,
        kind=kind,
        filter=msgspec.json.encode(wanted).decode(),
        change=msgspec.json.encode(change).decode(),
        actor=actor,
        reason=reason,
        expected=expected,
    )


async def find(connection: Connection, operation_id: UUID, *, tenant_id: int) -> Record | None:
    return await load("operations/find").fetchrow(connection, tenant=tenant_id, id=operation_id)


async def latest(connection: Connection, count: int, *, tenant_id: int) -> list[Record]:
    return await load("operations/list").fetch(connection, tenant=tenant_id, count=count)


async def lock_if_at(connection: Connection, operation_id: UUID, cursor: str | None, *, tenant_id: int) -> bool:
    """Take an operation for a batch, unless someone else has moved it meanwhile."""
    found = await load("operations/lock_if_at").fetchval(connection, tenant=tenant_id, id=operation_id, cursor=cursor)
    return found is not None


async def advance(
    connection: Connection,
    operation_id: UUID,
    *,
    tenant_id: int,
    cursor: str | None,
    done: int,
    skipped: int,
    is_over: bool,
) -> None:
    await load("operations/advance").execute(
        connection,
        tenant=tenant_id,
        id=operation_id,
        cursor=cursor,
        done=done,
        skipped=skipped,
        is_over=is_over,
    )


async def prune(connection: Connection, older_than: timedelta, count: int) -> int:
    """Forget up to `count` operations that ended longer ago; answers how many."""
    return len(await load("operations/prune").fetch(connection, older_than=older_than, count=count))
