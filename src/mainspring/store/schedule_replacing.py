"""Statements that replace many locked schedules of one lane at once: none of them paused or in a stored calendar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID  # noqa: TC003  a NamedTuple's

import msgspec

from mainspring.store.schedules import Content, as_json
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mainspring.store.connection import Connection, Record


class Replacement(NamedTuple):
    """What a schedule becomes, and its first instant then."""

    id: UUID
    content: Content
    nominal_at: datetime
    due_at: datetime


async def lock_many(connection: Connection, lane: int, names: Sequence[str], *, tenant_id: int) -> list[Record]:
    """Lock those of these schedules that there are; their cursors are locked after them."""
    return await load("schedules/lock_many").fetch(connection, lane=lane, names=names, tenant=tenant_id)


async def withdraw_many(connection: Connection, lane: int, since: Mapping[UUID, datetime]) -> dict[UUID, Record]:
    """`schedules.withdraw` for each: where the cursors stand then of those that are not over."""
    rows = await load("schedules/withdraw_many").fetch(
        connection, lane=lane, schedules=list(since), since=list(since.values())
    )
    return {row["id"]: row for row in rows}


async def replace_many(
    connection: Connection, lane: int, made: Sequence[Replacement], tzdata: str, *, tenant_id: int, actor: str
) -> None:
    """Keep what they were, make them what they become, and let their cursors begin anew."""
    ids, contents = [each.id for each in made], [each.content for each in made]
    await load("schedules/keep_versions").execute(connection, lane=lane, schedules=ids, tenant=tenant_id)
    await load("schedules/replace_many").execute(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        schedules=ids,
        jobs=[each.job for each in contents],
        specs=[each.spec for each in contents],
        codecs=[each.codec for each in contents],
        payloads=[each.payload for each in contents],
        options=[each.options for each in contents],
        tags=[as_json(each.tags) for each in contents],
        catch_ups=[each.catch_up for each in contents],
        catch_up_seconds=[each.catch_up_seconds for each in contents],
        declared=[each.is_declared for each in contents],
        read_at=[each.read_at for each in contents],
        overlaps=[each.overlap for each in contents],
        pause_after_failures=[each.pause_after_failures for each in contents],
    )
    await load("schedules/set_cursors").execute(
        connection,
        lane=lane,
        schedules=ids,
        nominal_at=[each.nominal_at for each in made],
        due_at=[each.due_at for each in made],
        tzdata=tzdata,
    )


async def audit_many(
    connection: Connection,
    lane: int,
    action: str,
    details: Mapping[UUID, dict[str, Any]],
    *,
    tenant_id: int,
    actor: str,
) -> None:
    """The same act on each of these schedules."""
    await load("schedules/audit_many").execute(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        action=f"schedule.{action}",
        subjects=list(map(str, details)),
        details=[msgspec.json.encode(detail).decode() for detail in details.values()],
    )
