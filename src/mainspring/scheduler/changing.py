"""Changing one schedule, inside a transaction that has locked it.

Whoever changes a schedule first ends a pause that is over, takes back what is staged, and decides what is overdue under
the schedule as it was: what is past is decided, by the rules that were in force, and never by a horizon. Then the
cursor begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.clock import instant
from mainspring.schedule.deciding import Skipped, SkipReason, skip_until
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.schedule_checks import LONGEST_SPREAD
from mainspring.schedule.walls import TICK
from mainspring.scheduler.batch import Batch, schedule_from, schedule_if_readable
from mainspring.scheduler.calendars import ResolvedSchedule, resolve
from mainspring.scheduler.cursors import ACTOR, LockedCursor
from mainspring.store import notify, schedules
from mainspring.store.connection import transaction
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.clock import Clock
    from mainspring.schedule.schedule import Occurrence
    from mainspring.scheduler.batch import Cursor
    from mainspring.scheduler.firing import LaneFirer
    from mainspring.store.connection import Connection, Record

UNREADABLE = ResolvedSchedule(Schedule.parse("1970-01-01T00:00:00Z"))  # stands for one; nobody asks when it is due
MOST_OVERDUE = 100  # fired by one act; what a scheduler left undone for longer than that is skipped, and says so


class LockedSchedule(LockedCursor):
    """A schedule that nobody else can fire or change until the transaction ends."""

    # ── first ───────────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self, firer: LaneFirer, clock: Clock) -> None:
        """End a pause that is over, take back what is staged, and decide what is overdue."""
        await self.end_pause_if_over()
        await self.take_back()
        await self.follow()
        if self.is_paused:
            return
        for _ in range(MOST_OVERDUE):
            if self.cursor is None or self.cursor.due_at > self.now:
                return
            await self._fire_one(firer, clock, self.cursor)
        await self._skip_overdue()

    async def end_pause_if_over(self) -> None:
        """By what was said when it began, whoever comes first after that."""
        until, tenant_id = self.row["paused_until"], self.row["tenant_id"]
        if not self.is_paused or until is None or until > self.now:
            return
        await self.read_cursor()
        await self.follow()
        await self.resume(tenant_id=tenant_id, at=until)
        await schedules.audit(
            self._connection, self._lane, self.id, "resume", tenant_id=tenant_id, actor=ACTOR, detail={"until": until}
        )
        row = await schedules.lock(self._connection, self._lane, self.row["name"], tenant_id=tenant_id)
        assert row is not None
        self.row = row

    async def _fire_one(self, firer: LaneFirer, clock: Clock, cursor: Cursor) -> None:
        batch = Batch(new_run_ids(1, self._lane, instant(clock)), packs=False)
        await firer.decide(self._connection, self.row, cursor, self.now, batch, self.schedule)
        await firer.carry_out(self._connection, self._lane, batch)
        await self.read_cursor()

    async def _skip_overdue(self) -> None:
        if self.cursor is not None and self.cursor.due_at <= self.now:
            await self._skip_until(self.now + TICK, SkipReason.TOO_MANY)

    # ── then ────────────────────────────────────────────────────────────────────────────────────────────────

    async def pause(self, *, tenant_id: int, actor: str, reason: str, until: datetime | None) -> None:
        await schedules.pause(
            self._connection, self._lane, self.id, tenant_id=tenant_id, actor=actor, reason=reason, until=until
        )
        if self.cursor is not None:
            await self._set_cursor(self.cursor.nominal_at, until)

    async def resume(self, *, tenant_id: int, at: datetime) -> None:
        """Go on from `at`. What would have fired during the pause is skipped."""
        await self._skip_until(at, SkipReason.PAUSED)
        state = "done" if self.cursor is None else "active"
        await schedules.forget_failures(self._connection, self._lane, self.id)
        await schedules.resume(self._connection, self._lane, self.id, tenant_id=tenant_id, state=state)

    async def begin_anew(self, resolved: ResolvedSchedule) -> Occurrence | None:
        """Let the cursor follow another schedule; answers with its first instant."""
        if self.is_paused:
            await self._skip_until(self.now + TICK, SkipReason.PAUSED)
        first = self._first_of(resolved.schedule, self.now)
        self._resolved = resolved
        if first is None:
            await schedules.drop_cursors(self._connection, self._lane, [self.id])
        else:
            due_at = self.row["paused_until"] if self.is_paused else first.due_at
            await self._set_cursor(first.nominal_at, due_at)
        return first

    async def delete(self, *, tenant_id: int) -> None:
        """Remove it. The first instant that will not fire says why."""
        if self.is_paused:
            await self._skip_until(self.now + TICK, SkipReason.PAUSED)
        if self.cursor is not None:
            await self._record((Skipped(self.cursor.nominal_at, self.cursor.nominal_at, SkipReason.DELETED),))
        await schedules.keep_version(self._connection, self._lane, self.id, tenant_id=tenant_id, is_deleted=True)
        await schedules.drop_cursors(self._connection, self._lane, [self.id])
        await schedules.forget_failures(self._connection, self._lane, self.id)
        await schedules.delete(self._connection, self._lane, self.id, tenant_id=tenant_id)

    async def _skip_until(self, until: datetime, reason: SkipReason) -> None:
        """Nothing that is due before `until`, and that nobody has decided, fires."""
        if self.cursor is None:
            return
        decision = skip_until(self.schedule, self.row["name"], self.cursor.nominal_at, until, reason)
        await self._record(decision.skipped)
        if decision.following is None:
            await schedules.drop_cursors(self._connection, self._lane, [self.id])
        else:
            await self._set_cursor(decision.following.nominal_at, decision.following.due_at)
        await self.read_cursor()

    async def _record(self, skipped: tuple[Skipped, ...]) -> None:
        for each in skipped:
            await schedules.skip(self._connection, self._lane, self.id, each, tenant_id=self.row["tenant_id"])


class UnreadableSchedule(LockedSchedule):
    """One that this program cannot read. It can be replaced or deleted; nothing of it can be decided."""

    async def settle(self, firer: LaneFirer, clock: Clock) -> None:
        await self._withdraw(LONGEST_SPREAD)

    async def end_pause_if_over(self) -> None:
        schedule_from(self.row["spec"])  # raises: that is why it was paused

    async def resume(self, *, tenant_id: int, at: datetime) -> None:
        schedule_from(self.row["spec"])

    async def follow(self) -> bool:
        return False

    async def _skip_until(self, until: datetime, reason: SkipReason) -> None:
        """One instant of it is known."""
        if self.cursor is not None and self.cursor.nominal_at < until:
            await self._record((Skipped(self.cursor.nominal_at, self.cursor.nominal_at, reason),))


async def locked(connection: Connection, lane: int, name: str, *, tenant_id: int) -> LockedSchedule | None:
    """Lock a schedule, and then its cursor, inside the open transaction."""
    return await _locked(connection, lane, await schedules.lock(connection, lane, name, tenant_id=tenant_id))


async def locked_if_free(connection: Connection, lane: int, name: str, *, tenant_id: int) -> LockedSchedule | None:
    """The same; None also if somebody else has locked it."""
    return await _locked(connection, lane, await schedules.lock_if_free(connection, lane, name, tenant_id=tenant_id))


async def _locked(connection: Connection, lane: int, row: Record | None) -> LockedSchedule | None:
    if row is None:
        return None
    schedule = schedule_if_readable(row["spec"])
    if schedule is None:
        return UnreadableSchedule(connection, lane, row, UNREADABLE)
    return LockedSchedule(connection, lane, row, await resolve(connection, schedule, tenant_id=row["tenant_id"]))


async def bring_up_to_date(connection: Connection, lane: int, name: str, *, tenant_id: int, waits: bool) -> bool:
    """Compute the cursor of a schedule again if that is necessary; answers whether it was.

    `waits`: also if somebody else has locked the schedule.
    """
    lock = locked if waits else locked_if_free
    async with transaction(connection):
        schedule = await lock(connection, lane, name, tenant_id=tenant_id)
        if schedule is None:
            return False
        await schedule.read_cursor()
        if schedule.is_stale:
            await schedule.take_back()
        is_new = await schedule.follow()
        if is_new:
            notify.send(connection, [notify.schedule(lane)])
        return is_new
