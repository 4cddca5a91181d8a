"""One schedule in the database: finding, locking, making and changing it. All of a schedule is in one lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.schedule.deciding import Skipped
    from mainspring.store.connection import Connection, Record


# ── one schedule ────────────────────────────────────────────────────────────────────────────────────────────────


async def find(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    return await load("schedules/find").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def find_many(connection: Connection, lane: int, names: Sequence[str], *, tenant_id: int) -> list[Record]:
    """What those of these schedules are that there are."""
    return await load("schedules/find_many").fetch(connection, lane=lane, names=names, tenant=tenant_id)


async def lock(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    """Lock a schedule for whoever changes it; its cursor is locked after it, everywhere."""
    return await load("schedules/lock").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def lock_if_free(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    """The same, unless somebody else has locked it."""
    return await load("schedules/lock_if_free").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def lock_cursor(connection: Connection, lane: int, schedule_id: UUID) -> Record | None:
    return await load("schedules/lock_cursor").fetchrow(connection, lane=lane, schedule=schedule_id)


async def withdraw(connection: Connection, lane: int, schedule_id: UUID, since: datetime) -> Record | None:
    """Lock the cursor and take back what is staged; answers where the cursor stands then, None if it is over.

    `since`: no instant before is due only now.
    """
    return await load("schedules/withdraw").fetchrow(connection, lane=lane, schedule=schedule_id, since=since)


async def set_cursor(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    nominal_at: datetime,
    due_at: datetime | None,
    tzdata: str,
    calendars_revision: int | None = None,
) -> None:
    """Which instant is next, and by what that was computed: `calendars_revision` if stored calendars are used."""
    await load("schedules/set_cursor").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        nominal_at=nominal_at,
        due_at=due_at,
        tzdata=tzdata,
        calendars_revision=calendars_revision,
    )


async def last_decided(connection: Connection, lane: int, schedule_id: UUID) -> datetime | None:
    """The last instant of a schedule that fired or was skipped."""
    at: datetime | None = await load("schedules/last_decided").fetchval(connection, lane=lane, schedule=schedule_id)
    return at


async def drop_cursors(connection: Connection, lane: int, schedule_ids: Sequence[UUID]) -> None:
    await load("schedules/drop_cursors").execute(connection, lane=lane, schedules=schedule_ids)


async def now(connection: Connection) -> datetime:
    """The database's clock; in a transaction, when that began."""
    at: datetime = await load("schedules/now").fetchval(connection)
    return at


async def skip(connection: Connection, lane: int, schedule_id: UUID, skipped: Skipped, *, tenant_id: int) -> None:
    await load("schedules/skip").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        tenant=tenant_id,
        first_at=skipped.first_at,
        last_at=skipped.last_at,
        reason=skipped.reason.value,
    )


async def pause(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    *,
    tenant_id: int,
    actor: str,
    reason: str,
    until: datetime | None,
) -> None:
    await load("schedules/pause").execute(
        connection, lane=lane, schedule=schedule_id, tenant=tenant_id, actor=actor, reason=reason, until=until
    )


async def resume(connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int, state: str) -> None:
    await load("schedules/resume").execute(connection, lane=lane, schedule=schedule_id, tenant=tenant_id, state=state)


async def forget_failures(connection: Connection, lane: int, schedule_id: UUID) -> None:
    """From now on, runs that end without success are counted anew."""
    await load("schedules/forget_failures").execute(connection, lane=lane, schedule=schedule_id)


async def keep_version(
    connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int, is_deleted: bool = False
) -> None:
    await load("schedules/keep_version").execute(
        connection, lane=lane, schedule=schedule_id, tenant=tenant_id, is_deleted=is_deleted
    )


async def delete(connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int) -> None:
    await load("schedules/delete").execute(connection, lane=lane, schedule=schedule_id, tenant=tenant_id)


# ── making and replacing ────────────────────────────────────────────────────────────────────────────────────────


class Content(NamedTuple):
    """What a schedule is, as a row keeps it: what an edit replaces."""

    job: int
    spec: str
    codec: int
    payload: bytes
    options: str
    tags: list[str] | None
    catch_up: str
    catch_up_seconds: float
    is_declared: bool
    calendars: list[str] | None  # the stored ones that it uses
    read_at: datetime | None = None  # what now was, if its text counts from now
    overlap: str = "allow"
    pause_after_failures: int | None = None

    def is_same(self, other: Content) -> bool:
        """Whether both are the same schedule, whenever their texts were read."""
        return self._replace(read_at=None) == other._replace(read_at=None)


async def create(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    name: str,
    content: Content,
    *,
    state: str,
    tenant_id: int,
    actor: str,
) -> bool:
    """Make a schedule; answers whether its name was free."""
    made = await load("schedules/create").fetchval(
        connection,
        lane=lane,
        id=schedule_id,
        tenant=tenant_id,
        name=name,
        state=state,
        actor=actor,
        **content._asdict(),
    )
    return made is not None


class NewSchedule(NamedTuple):
    """One of many that are made at once."""

    id: UUID
    name: str
    content: Content
    nominal_at: datetime
    due_at: datetime
    calendars_revision: int | None


async def create_many(
    connection: Connection, lane: int, made: Sequence[NewSchedule], tzdata: str, *, tenant_id: int, actor: str
) -> set[UUID]:
    """Make schedules of one lane; answers with those whose names were free. The others have a cursor, too: drop it."""
    contents = [each.content for each in made]
    rows = await load("schedules/create_many").fetch(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        tzdata=tzdata,
        ids=[each.id for each in made],
        names=[each.name for each in made],
        jobs=[each.job for each in contents],
        specs=[each.spec for each in contents],
        codecs=[each.codec for each in contents],
        payloads=[each.payload for each in contents],
        options=[each.options for each in contents],
        tags=[as_json(each.tags) for each in contents],
        catch_ups=[each.catch_up for each in contents],
        catch_up_seconds=[each.catch_up_seconds for each in contents],
        nominal_at=[each.nominal_at for each in made],
        due_at=[each.due_at for each in made],
        calendars=[as_json(each.calendars) for each in contents],
        calendars_revision=[each.calendars_revision for each in made],
        read_at=[each.read_at for each in contents],
        overlaps=[each.overlap for each in contents],
        pause_after_failures=[each.pause_after_failures for each in contents],
    )
    return {row["id"] for row in rows}


def as_json(words: list[str] | None) -> str | None:
    """An array in an array: those of PostgreSQL are all of one length."""
    return None if words is None else msgspec.json.encode(words).decode()


async def replace(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    content: Content,
    *,
    state: str,
    tenant_id: int,
    actor: str,
) -> None:
    """Make a locked schedule something else."""
    await load("schedules/replace").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        tenant=tenant_id,
        state=state,
        actor=actor,
        **content._asdict(),
    )


async def audit(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    action: str,
    *,
    tenant_id: int,
    actor: str,
    detail: dict[str, Any],
) -> None:
    await load("schedules/audit").execute(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        action=f"schedule.{action}",
        subject=str(schedule_id),
        detail=msgspec.json.encode(detail).decode(),
    )
