"""Dead letters: runs out of attempts, kept until someone requeues or purges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection, Record


class Act(NamedTuple):
    """Who acts on dead letters, and what the audit says about it."""

    tenant_id: int
    actor: str
    detail: str  # JSON


async def requeue(
    connection: Connection,
    lane: int,
    run_ids: Sequence[UUID],
    act: Act,
    *,
    payload: bytes | None = None,
    codec: int | None = None,
    max_age: float | None = None,
) -> list[Record]:
    """Put those of these runs that are dead back in line; answers with them, their lines and priorities."""
    return await load("runs/requeue").fetch(
        connection,
        lane=lane,
        runs=list(run_ids),
        tenant=act.tenant_id,
        actor=act.actor,
        detail=act.detail,
        payload=payload,
        codec=codec,
        max_age=max_age,
    )


async def purge(connection: Connection, lane: int, run_ids: Sequence[UUID], act: Act, *, reason: str) -> list[UUID]:
    """End those of these runs that are dead; answers with them."""
    rows = await load("runs/purge").fetch(
        connection,
        lane=lane,
        runs=list(run_ids),
        tenant=act.tenant_id,
        actor=act.actor,
        detail=act.detail,
        reason=reason,
    )
    return [row["id"] for row in rows]
