"""Computes cursors again after what they were computed by has changed, in the background, lane by lane.

Each lane says by which calendars, and by which release of the time zone database, all its cursors were computed, at
least. Whoever looks after a lane that is behind walks through the schedules concerned, one transaction each, and then
says so; if it dies before, another begins that lane anew. A program with an older release changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.batch import schedule_from
from mainspring.scheduler.calendars import resolve
from mainspring.scheduler.changing import bring_up_to_date
from mainspring.store import calendars, schedule_firing
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from mainspring.store.connection import Connection, Record

log = structlog.get_logger()

BATCH = 500
NIL = UUID(int=0)


async def recompute(connection: Connection, lanes: Sequence[int]) -> None:
    """Bring the cursors of these lanes up to date."""
    for row in await schedule_firing.computed_by(connection, lanes) if lanes else ():
        if row["calendars_revision"] < row["newest_calendars"]:
            await _walk_after_edits(connection, row["lane"], row["calendars_revision"])
            await schedule_firing.note_calendars(connection, row["lane"], row["newest_calendars"])
        if row["tzdata"] < TZDATA_VERSION:
            await _walk_after_release(connection, row["lane"], row["tzdata"])
            await schedule_firing.note_tzdata(connection, row["lane"], TZDATA_VERSION)


async def _walk_after_edits(connection: Connection, lane: int, since: int) -> None:
    """Compute the cursors again of all schedules whose calendars were written after a revision."""
    recomputed = 0
    for tenant_id, names in (await calendars.edited(connection, since)).items():
        after = ""
        while users := await calendars.users(connection, [lane], names, tenant_id=tenant_id, after=after, count=BATCH):
            for user in users:
                recomputed += await _unless_broken(_follow(connection, lane, user["name"], tenant_id), user["name"])
            after = users[-1]["name"]
    if recomputed:
        log.info("calendars were edited: cursors computed again", lane=lane, schedules=recomputed)


async def _walk_after_release(connection: Connection, lane: int, since: str) -> None:
    """Move the cursors that stand at no instant of their schedules any more, by our release."""
    checked, moved, past = 0, 0, NIL
    while rows := await schedule_firing.of_older_tzdata(connection, lane, TZDATA_VERSION, past, BATCH):
        for row in rows:
            moved += await _unless_broken(_follow_release(connection, lane, row), row["name"])
        checked, past = checked + len(rows), rows[-1]["schedule_id"]
    if checked:
        counts = {"schedules": checked, "moved": moved}
        log.info("another release of the time zone database", lane=lane, was=since, now=TZDATA_VERSION, **counts)


async def _follow_release(connection: Connection, lane: int, row: Record) -> bool:
    """Most stand where they stood: those are not locked, nor written."""
    tenant_id, at = row["tenant_id"], row["nominal_at"]
    schedule = (await resolve(connection, schedule_from(row["spec"]), tenant_id=tenant_id)).schedule
    if schedule.is_due(at, job=row["name"]):
        return False
    return await _follow(connection, lane, row["name"], tenant_id)


async def _follow(connection: Connection, lane: int, name: str, tenant_id: int) -> bool:
    return await bring_up_to_date(connection, lane, name, tenant_id=tenant_id, waits=True)


async def _unless_broken(follow: Awaitable[bool], name: str) -> bool:
    try:
        return await follow
    except ALL_DATABASE_ERRORS:
        raise
    except Exception as error:  # whatever it is, the other schedules must go on; it is paused when it is due
        log.exception("a cursor cannot be computed again", schedule=name, cause=str(error))
        return False
