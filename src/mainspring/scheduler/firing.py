"""Fires what is due in one lane: reads the cursors, decides, and has the database carry it out in one act."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from mainspring.clock import instant
from mainspring.model.payload import printable
from mainspring.schedule.deciding import OverlapPolicy, decide
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.batch import Batch, Cursor, catch_up_from, schedule_from
from mainspring.scheduler.calendars import CalendarCache
from mainspring.scheduler.changing import bring_up_to_date, locked_if_free
from mainspring.scheduler.cursors import ACTOR
from mainspring.scheduler.templates import RunKind
from mainspring.store import notify, schedule_firing
from mainspring.store.connection import transaction
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.clock import Clock
    from mainspring.schedule.schedule import Schedule
    from mainspring.scheduler.templates import Templates
    from mainspring.store.connection import Connection, Record

log = structlog.get_logger()

BATCH = 1_000
FRONT_SECONDS = 1.0  # so long the first in line are passed over, if they stayed due


class PassedOver(NamedTuple):
    """How many of the first in line are passed over, and until when."""

    schedules: int
    until: float  # monotonic


class Fired(NamedTuple):
    """What came of looking at a lane: for how many schedules something was decided, and how many runs that made."""

    decisions: int
    runs: int


class LaneFirer:
    """Fires the schedules of a lane, a batch at a time."""

    def __init__(self, *, clock: Clock, templates: Templates) -> None:
        self._clock = clock
        self._templates = templates
        self._calendars = CalendarCache()
        self._quietener = notify.Quietener(clock)
        self._passed_over: dict[int, PassedOver] = {}  # by lane

    async def fire(self, connection: Connection, lane: int, horizon: float, *, packs: bool) -> Fired:
        """Decide what is due within `horizon` seconds, one instant per schedule and a batch of schedules.

        `packs`: all workers know the short form of which occurrence a run is for.
        """
        rows = await self._due(connection, lane, horizon)
        if not rows:
            return Fired(0, 0)
        batch = Batch(new_run_ids(len(rows), lane, instant(self._clock)), packs=packs)
        for row in rows:
            await self._decide(connection, lane, row, batch)
        runs = await self.carry_out(connection, lane, batch)
        self._learn(lane, len(rows), len(rows) - runs - batch.without_run)
        return Fired(len(rows), runs)

    async def _due(self, connection: Connection, lane: int, horizon: float) -> list[Record]:
        """Those after schedules that stayed due: somebody may hold these, and others must not wait for that."""
        passed = self._passed_over.get(lane)
        if passed is not None and self._clock.monotonic() < passed.until:
            rows = await schedule_firing.due(connection, lane, horizon, BATCH, passed.schedules)
            if rows:
                return rows
        self._passed_over.pop(lane, None)
        return await schedule_firing.due(connection, lane, horizon, BATCH)

    def _learn(self, lane: int, seen: int, stayed: int) -> None:
        """So many of a look stayed due. Soon the first in line are tried again: they have waited longest."""
        if seen < BATCH:
            self._passed_over.pop(lane, None)
        elif stayed > 0:
            passed = self._passed_over.get(lane) or PassedOver(0, self._clock.monotonic() + FRONT_SECONDS)
            self._passed_over[lane] = passed._replace(schedules=passed.schedules + stayed)

    async def _decide(self, connection: Connection, lane: int, row: Record, batch: Batch) -> None:
        try:
            if row["is_paused"]:
                if row["due_at"] <= row["now"]:  # the pause ends at its instant, not a horizon ahead of it
                    await self._resume(connection, lane, row)
            elif row["is_failing"]:
                await schedule_firing.pause_failing(connection, lane, row["schedule_id"], actor=ACTOR)
            elif await self._is_stale(connection, row):
                await bring_up_to_date(connection, lane, row["name"], tenant_id=row["tenant_id"], waits=False)
            else:
                cursor = Cursor(row["schedule_id"], row["revision"], row["nominal_at"], row["due_at"])
                await self.decide(connection, row, cursor, row["now"], batch)
        except ALL_DATABASE_ERRORS:
            raise
        except Exception as error:  # whatever it is, the other schedules must go on
            log.exception("a schedule cannot be decided and is paused", schedule=row["name"], cause=str(error))
            await schedule_firing.set_aside(
                connection, lane, row["schedule_id"], row["revision"], actor=ACTOR, reason=printable(str(error), 1_000)
            )

    async def _resume(self, connection: Connection, lane: int, row: Record) -> None:
        """A pause is over by what was said when it began. Whoever changes the schedule just now has the first word."""
        async with transaction(connection):
            schedule = await locked_if_free(connection, lane, row["name"], tenant_id=row["tenant_id"])
            if schedule is not None:
                await schedule.end_pause_if_over()

    async def _is_stale(self, connection: Connection, row: Record) -> bool:
        """Whether its cursor was computed by other calendars, or by time zones that have it elsewhere."""
        if row["calendars"] is not None:
            newest = (await self._calendars.of(connection, row)).revision
            if newest != row["calendars_revision"]:
                return True
        if row["tzdata"] >= TZDATA_VERSION:
            return False
        return not (await self._schedule(connection, row)).is_due(row["nominal_at"], job=row["name"])

    async def _schedule(self, connection: Connection, row: Record) -> Schedule:
        if row["calendars"] is None:
            return schedule_from(row["spec"])
        return (await self._calendars.of(connection, row)).schedule

    async def decide(
        self,
        connection: Connection,
        row: Record,
        cursor: Cursor,
        now: datetime,
        batch: Batch,
        schedule: Schedule | None = None,
    ) -> None:
        """Decide the next instant of one schedule, which is that of a row that is due, unless it is given."""
        schedule, name = schedule or await self._schedule(connection, row), row["name"]
        template = await self._templates.of(connection, RunKind(row["tenant_id"], row["job_id"], row["options"]))
        catch_up = catch_up_from(row["catch_up"], row["catch_up_seconds"])
        decision = decide(schedule, name, catch_up, cursor.occurrence, now)
        fired = decision.fired
        previous = None if fired is None else schedule.prev_before(fired.nominal_at, job=name)
        batch.add(cursor, decision, previous, template)
        batch.may_cancel |= row["overlap"] == OverlapPolicy.CANCEL_OTHER

    async def carry_out(self, connection: Connection, lane: int, batch: Batch) -> int:
        """Have the database do what was decided; answers how many runs that made."""
        if not batch.firings:
            return 0
        groups = await schedule_firing.fire(
            connection, lane, batch.firings, batch.skips, batch.templates, TZDATA_VERSION, packs=batch.packs
        )
        made = [group for group in groups if group["line_id"] is not None]
        wake_ups = [notify.ready(lane, group["line_id"], group["priority"]) for group in made]
        notify.send(connection, self._quietener.pass_on(wake_ups))
        if batch.may_cancel:
            notify.send(connection, map(notify.cancel, await schedule_firing.asked_to_stop(connection, lane)))
        batch.overlapping = sum(group["runs_fired"] for group in groups if group["line_id"] is None)
        return sum(group["runs_fired"] for group in made)
