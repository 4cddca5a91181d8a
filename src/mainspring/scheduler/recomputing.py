"""Computes cursors again after what they were computed by has changed, in the background, lane by lane.

Each lane says by which calendars all its cursors were computed, at least. Whoever looks after a lane that is behind
walks through the schedules concerned, one transaction each, and then says so; if it dies before, another begins that
lane anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from mainspring.scheduler.changing import follow_edits
from mainspring.store import calendars, schedules
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Connection

log = structlog.get_logger()

BATCH = 500


async def recompute(connection: Connection, lanes: Sequence[int]) -> None:
    """Bring the cursors of these lanes up to date."""
    for row in await schedules.computed_by(connection, lanes) if lanes else ():
        if row["calendars_revision"] < row["newest_calendars"]:
            await _follow_calendars(connection, row["lane"], row["calendars_revision"])
            await schedules.note_calendars(connection, row["lane"], row["newest_calendars"])


async def _follow_calendars(connection: Connection, lane: int, since: int) -> None:
    """Compute the cursors again of all schedules whose calendars were written after a revision."""
    recomputed = 0
    for tenant_id, names in (await calendars.edited(connection, since)).items():
        after = ""
        while users := await calendars.users(connection, [lane], names, tenant_id=tenant_id, after=after, count=BATCH):
            for user in users:
                recomputed += await _follow_edits(connection, lane, user["name"], tenant_id)
            after = users[-1]["name"]
    if recomputed:
        log.info("calendars were edited: cursors computed again", lane=lane, schedules=recomputed)


async def _follow_edits(connection: Connection, lane: int, name: str, tenant_id: int) -> bool:
    try:
        return await follow_edits(connection, lane, name, tenant_id=tenant_id, waits=True)
    except ALL_DATABASE_ERRORS:
        raise
    except Exception as error:  # whatever it is, the other schedules must go on; it is paused when it is due
        log.exception("a cursor cannot be computed again", schedule=name, cause=str(error))
        return False
