"""What is to come: how many runs of all schedules will be due in each minute."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.control.schedule_texts import read_schedule
from mainspring.errors import InvalidInput, MainspringError
from mainspring.model.job import checked_name
from mainspring.model.payload import quoted
from mainspring.schedule.forecast import SpecCount, busiest_second, forecast
from mainspring.schedule.load import STEPS
from mainspring.scheduler.batch import schedule_from
from mainspring.scheduler.calendars import resolved
from mainspring.store import calendars, schedule_reading, schedules
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mainspring.control.calendars import Calendars
    from mainspring.model.actor import Actor
    from mainspring.schedule.forecast import AddedLoad, Forecast
    from mainspring.schedule.schedule import Schedule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

MOST_COUNTED = 20_000  # schedules that are all looked at; of more, a sample
SAMPLED_PAGES = 500  # of the table, with some thirty schedules each
SECOND, MINUTE = STEPS
MOST_HOURS = 24 * 31
MOST_PEAKS = 100


class Forecasts:
    """Foretells how many runs will be due."""

    def __init__(self, *, database: Database, lanes: int, calendars: Calendars) -> None:
        self._calendars = calendars
        self._database = database
        self._lanes = lanes

    async def forecast(self, actor: Actor, *, hours: float = 24, peaks: int = 5) -> Forecast:
        """How many runs of all active schedules will be due in each minute, from the present one on.

        With the fullest minutes, the schedules that make them, and the spread that would flatten them. Of many
        schedules a sample is counted, and `is_estimate` says so.
        """
        _check("hours", hours, MOST_HOURS)
        _check("peaks", peaks, MOST_PEAKS)
        return await self._forecast(actor, timedelta(hours=hours), MINUTE, int(peaks))

    async def added_load(
        self, actor: Actor, name: str, when: str | Schedule, *, zone: str | None = None
    ) -> AddedLoad | None:
        """What a schedule of this name would add to the load of the next day, in its busiest second.

        None if it would not fire within that day. Nothing is changed; a schedule that it would replace is counted, too.
        """
        async with self._database.acquire() as connection:
            read = read_schedule(when, now=await schedules.now(connection), zone=zone)
            found = await self._calendars.resolved(connection, actor, read.schedule)
        present = await self._forecast(actor, timedelta(days=1), SECOND, 0)
        return await asyncio.to_thread(busiest_second, present, found.schedule, name=checked_name(name, "name"))

    async def _forecast(self, actor: Actor, span: timedelta, step: timedelta, peaks: int) -> Forecast:
        async with self._database.acquire() as connection, snapshot(connection):
            now = await schedules.now(connection)
            rows, share = await self._specs(connection, actor)
            stored = await calendars.listed(connection, tenant_id=actor.tenant)
        begin = now.replace(second=0, microsecond=0)
        # In a thread: it takes a moment, and meanwhile the event loop has others to serve.
        return await asyncio.to_thread(
            _foretold, rows, stored, begin, begin + span, step=step, share=share, peaks=peaks
        )

    async def _specs(self, connection: Connection, actor: Actor) -> tuple[list[Record], float]:
        """What schedules say, of all of them or of a share."""
        count, pages = await schedule_reading.extent(connection, self._lanes, MOST_COUNTED + 1, tenant_id=actor.tenant)
        if count <= MOST_COUNTED or pages <= SAMPLED_PAGES:
            return await schedule_reading.specs(connection, self._lanes, MOST_COUNTED, tenant_id=actor.tenant), 1.0
        share = SAMPLED_PAGES / pages
        return await schedule_reading.sample_specs(connection, share, tenant_id=actor.tenant), share


def _foretold(
    rows: list[Record],
    stored: list[Record],
    begin: datetime,
    end: datetime,
    *,
    step: timedelta,
    share: float,
    peaks: int,
) -> Forecast:
    specs = list(_readable(rows, stored))
    unread = sum(row["count"] for row in rows) - sum(each.count for each in specs)
    return forecast(specs, begin, end, step=step, share=share, peaks=peaks, unread=unread)


def _readable(rows: list[Record], stored: list[Record]) -> Iterator[SpecCount]:
    for row in rows:
        with suppress(MainspringError):  # of another version of this program, perhaps; its scheduler pauses it
            schedule = resolved(schedule_from(row["spec"]), stored).schedule
            yield SpecCount(schedule=schedule, count=row["count"], names=row["names"])


def _check(field: str, value: float, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        rule = f"must be more than 0 and at most {most:,}"
        message = f"{field} is {quoted(value)}; it {rule}."
        raise InvalidInput(message, code=f"invalid-{field}", field=field, value=quoted(value), rule=rule)
