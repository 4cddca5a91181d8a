"""Unique keys: which run was accepted last under one. They are taken where runs are accepted (`submissions.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.statements import load

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.connection import Connection


async def holder_of(connection: Connection, lane: int, job_id: int, key: str, *, tenant_id: int) -> UUID | None:
    """The run that was accepted last under a key; None if the key was forgotten."""
    found: UUID | None = await load("unique_keys/holder").fetchval(
        connection, lane=lane, tenant=tenant_id, job=job_id, key=key
    )
    return found
