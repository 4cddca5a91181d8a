"""What people may not do to a run because of its unique key: bring it back beside another one, or change the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import InvalidInput, UniqueConflict
from mainspring.model.ids import lane_of
from mainspring.model.unique import key_after_change, shown, unique_key_in
from mainspring.store import unique_keys

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection, Record


def check_same_key(run_id: UUID, row: Record, payload: bytes | None) -> None:
    """Refuse arguments with which a run would have another unique key: that key may be another run's."""
    key = unique_key_in(row["headers"])
    if key is None or payload is None:
        return
    changed = key_after_change(key, payload)
    if changed != key:
        raise InvalidInput(
            f"Run {run_id} is unique by {shown(key)}; with these arguments it would be another run.",
            code="unique-key-changes",
            hint="Cancel it and submit another one, or leave those arguments as they are.",
            field="arguments",
            value=shown(changed),
            run_id=str(run_id),
        )


async def conflict_of_dead(connection: Connection, actor: Actor, run_id: UUID, row: Record) -> UniqueConflict | None:
    """Why a dead letter could not come back, if another run holds its unique key."""
    key = unique_key_in(row["headers"])
    if key is None:
        return None
    lane, tenant_id = lane_of(run_id), actor.tenant
    holder = await unique_keys.holder_of(connection, lane, row["job_id"], key, tenant_id=tenant_id)
    if holder is None or holder == run_id:
        return None
    return UniqueConflict(
        f"Run {run_id} is dead, and run {holder} holds its unique key {shown(key)} by now.",
        hint=f"Wait until that one has ended, cancel it, or purge this one: mainspring run show {holder}",
        run_id=str(holder),
        value=shown(key),
    )
