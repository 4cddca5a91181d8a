"""The cursor of one schedule, inside a transaction that has locked both: reading it, and computing it again.

A cursor is computed by the calendars and by the time zones of that time. Where these have changed since, it is brought
up to date before anything is decided from it; schedulers do that in the background (`recomputing.py`), and whoever
comes first does it, too.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.batch import Cursor
from mainspring.store import schedules

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.schedule.schedule import Occurrence, Schedule
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.store.connection import Connection, Record

ACTOR = "scheduler"  # as the audit names what no person did


class LockedCursor:
    """A schedule and its cursor, which nobody else moves until the transaction ends."""

    def __init__(self, connection: Connection, lane: int, row: Record, resolved: ResolvedSchedule) -> None:
        self._connection = connection
        self._lane = lane
        self.row = row
        self.now: datetime = row["now"]  # when it was locked: what is past then is decided by the rules of before
        self._resolved = resolved
        self.schedule = resolved.schedule
        self.cursor: Cursor | None = None  # None: it is over

    @property
    def id(self) -> UUID:
        found: UUID = self.row["id"]
        return found

    @property
    def is_paused(self) -> bool:
        return bool(self.row["state"] == "paused")

    async def take_back(self) -> None:
        """Withdraw what is staged and nobody has claimed."""
        await self._withdraw(self.schedule.spread or timedelta(0))

    async def _withdraw(self, spread: timedelta) -> None:
        """`spread`: how long after its nominal instant a run may be due, at most."""
        self.stand_at(await schedules.withdraw(self._connection, self._lane, self.id, self.now - spread))

    async def read_cursor(self) -> None:
        self.stand_at(await schedules.lock_cursor(self._connection, self._lane, self.id))

    def stand_at(self, row: Record | None) -> None:
        """Know where the cursor is, which was read and locked; None: it is over."""
        self.cursor = None
        if row is not None:
            at, by = (row["nominal_at"], row["due_at"]), (row["tzdata"], row["calendars_revision"])
            self.cursor = Cursor(self.id, row["revision"], *at, *by)

    @property
    def is_stale(self) -> bool:
        """Whether one of its calendars was edited after its cursor was computed; unknown of one that is over."""
        found = None if self.cursor is None else self.cursor.calendars_revision
        return self._resolved.revision is not None and found != self._resolved.revision

    async def follow(self) -> bool:
        """Compute the cursor again if that was done by other calendars or time zones; answers whether it was."""
        has_followed = await self._follow_calendars()
        return await self._follow_tzdata() or has_followed

    # ── calendars ───────────────────────────────────────────────────────────────────────────────────────────

    async def _follow_calendars(self) -> bool:
        """What was due before an edit stays, and is decided as it was. From then on the new calendars rule.

        However late that is noticed; but nothing comes again that was decided meanwhile.
        """
        if not self.is_stale:
            return False
        cursor = self.cursor
        edited_at = self._resolved.edited_at(None if cursor is None else cursor.calendars_revision)
        if cursor is not None and (cursor.nominal_at if self.is_paused else cursor.due_at) <= edited_at:
            await self._set_cursor(cursor.nominal_at, cursor.due_at)
        else:
            await self._move_to(await self._first_after_edit(edited_at))
        await self.read_cursor()
        return True

    async def _first_after_edit(self, edited_at: datetime) -> Occurrence | None:
        first = self._first_of(self.schedule, edited_at)
        decided_at = await schedules.last_decided(self._connection, self._lane, self.id)
        if first is None or decided_at is None or first.nominal_at > decided_at:
            return first
        return self.schedule.next_after(decided_at, job=self.row["name"])

    def _first_of(self, schedule: Schedule, at: datetime) -> Occurrence | None:
        """The first instant after `at`, or the last one before, if it is not due yet and nobody has decided it."""
        name = self.row["name"]
        last = schedule.prev_before(at + TICK, job=name)
        if last is not None and last.due_at > at and self._is_undecided(last):
            return last
        return schedule.next_after(at, job=name)

    def _is_undecided(self, occurrence: Occurrence) -> bool:
        return self.cursor is not None and occurrence.nominal_at >= self.cursor.nominal_at

    # ── time zones ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_by_older_tzdata(self) -> bool:
        """Whether its instant is none any more by our release of the time zones."""
        cursor = self.cursor
        if cursor is None or cursor.tzdata >= TZDATA_VERSION:
            return False
        return not self.schedule.is_due(cursor.nominal_at, job=self.row["name"])

    async def _follow_tzdata(self) -> bool:
        """Where its instant is none any more by our release, the nearest one takes its place, and the audit says so.

        It is the same wall, or what became of it: so nothing is lost, and no wall comes twice. What was decided stays
        decided, and nothing comes that is older than the schedule.
        """
        cursor, name = self.cursor, self.row["name"]
        if cursor is None or not self.is_by_older_tzdata:
            return False
        nearest = self._nearest(cursor.nominal_at, await self._decided_at())
        await self._move_to(nearest)
        await self.read_cursor()
        to = None if nearest is None else nearest.nominal_at
        detail = {"name": name, "from": cursor.nominal_at, "to": to, "tzdata": TZDATA_VERSION}
        tenant_id = self.row["tenant_id"]
        await schedules.audit(
            self._connection, self._lane, self.id, "recompute", tenant_id=tenant_id, actor=ACTOR, detail=detail
        )
        return True

    def _nearest(self, at: datetime, decided_at: datetime) -> Occurrence | None:
        name = self.row["name"]
        found = self.schedule.prev_before(at, job=name), self.schedule.next_after(at, job=name)
        left = [each for each in found if each is not None and each.nominal_at > decided_at]
        return min(left, key=lambda each: abs(each.nominal_at - at), default=None)

    async def _decided_at(self) -> datetime:
        """Up to when nothing is left to decide."""
        last = await schedules.last_decided(self._connection, self._lane, self.id)
        changed_at: datetime = self.row["changed_at"]
        return changed_at if last is None else max(last, changed_at)

    # ── moving it ───────────────────────────────────────────────────────────────────────────────────────────

    async def _move_to(self, first: Occurrence | None) -> None:
        """Let an instant be the next, or none. A schedule that was over may begin again."""
        if first is None:
            await schedules.drop_cursors(self._connection, self._lane, [self.id])
        else:
            await self._set_cursor(first.nominal_at, self.row["paused_until"] if self.is_paused else first.due_at)
        state = "done" if first is None else "active"
        if not self.is_paused and self.row["state"] != state:
            await schedules.resume(self._connection, self._lane, self.id, tenant_id=self.row["tenant_id"], state=state)

    async def _set_cursor(self, nominal_at: datetime, due_at: datetime | None) -> None:
        await schedules.set_cursor(
            self._connection, self._lane, self.id, nominal_at, due_at, TZDATA_VERSION, self._resolved.revision
        )
