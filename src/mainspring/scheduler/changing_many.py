"""Changing many schedules of one lane by sets, inside one transaction.

That is for those of which nothing is left to decide. Schedules that are paused, overdue, in stored calendars or not
readable are locked with them, and are left to whoever changes them one by one (`changing.py`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.scheduler.batch import schedule_if_readable
from mainspring.scheduler.calendars import ResolvedSchedule
from mainspring.scheduler.changing import LockedSchedule
from mainspring.store import schedule_replacing, schedules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from mainspring.schedule.schedule import Occurrence, Schedule
    from mainspring.store.connection import Connection

NO_SPREAD = timedelta(0)


class SettledSchedule(LockedSchedule):
    """One that is locked with others, and of which only what is staged has to be taken back."""

    @property
    def staged_since(self) -> datetime:
        """No instant before is due only now."""
        return self.now - (self.schedule.spread or NO_SPREAD)

    @property
    def is_settled(self) -> bool:
        is_overdue = self.cursor is not None and self.cursor.due_at <= self.now
        return not is_overdue and not self.is_by_older_tzdata

    def first_of(self, schedule: Schedule) -> Occurrence | None:
        """Where its cursor begins, if it becomes another schedule."""
        return self._first_of(schedule, self.now)


async def locked_and_settled(
    connection: Connection, lane: int, names: Sequence[str], *, tenant_id: int
) -> list[SettledSchedule]:
    """Lock all of these, and take back what is staged; answers with those of which nothing is left to decide.

    What is the present is asked when all are locked: whoever waited for the last may have been passed by an instant of
    the first, and somebody fired it.
    """
    rows = await schedule_replacing.lock_many(connection, lane, names, tenant_id=tenant_id)
    now = await schedules.now(connection)
    found = [each for row in rows if (each := _plain(connection, lane, {**row, "now": now})) is not None]
    since = {each.id: each.staged_since for each in found}
    cursors = await schedule_replacing.withdraw_many(connection, lane, since) if since else {}
    for each in found:
        each.stand_at(cursors.get(each.id))
    return [each for each in found if each.is_settled]


def _plain(connection: Connection, lane: int, row: dict[str, Any]) -> SettledSchedule | None:
    schedule = schedule_if_readable(row["spec"])
    if schedule is None or row["state"] == "paused" or row["calendars"] is not None:
        return None
    return SettledSchedule(connection, lane, row, ResolvedSchedule(schedule))  # type: ignore[arg-type]  # read like one
