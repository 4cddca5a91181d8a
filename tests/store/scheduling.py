"""What tests of schedules share: a job, something that fires, and looks at what became of it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring import Calendar
from mainspring.scheduler.batch import Batch, Cursor
from mainspring.store import schedule_firing
from mainspring.store.submissions import new_run_ids
from mainspring.wiring.scheduler import lane_firer

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Job, Mainspring, OccurrenceRecord
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

LANES = 8
NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Firing:
    """A scheduler that acts when it is told to."""

    def __init__(self, connection: Connection, clock: FrozenClock) -> None:
        self._connection = connection
        self._firer = lane_firer(clock)

    async def fire(self, horizon: float = 0.0) -> int:
        """Decide all that is due within so many seconds; answers how many decisions that took."""
        decisions = 0
        for lane in range(LANES):
            while count := (await self._firer.fire(self._connection, lane, horizon, packs=True)).decisions:
                decisions += count
        return decisions

    async def fire_lane(self, lane: int) -> int:
        return (await self._firer.fire(self._connection, lane, 0.0, packs=True)).runs

    async def decided(self, horizon: float = 0.0) -> dict[int, Batch]:
        """Decide what is due in each lane, and carry nothing out yet."""
        batches = {}
        for lane in range(LANES):
            rows = await schedule_firing.due(self._connection, lane, horizon, 100)
            batches[lane] = Batch(new_run_ids(len(rows), lane, NEW_YEAR), packs=True)
            for row in rows:
                cursor = Cursor(row["schedule_id"], row["revision"], row["nominal_at"], row["due_at"])
                await self._firer.decide(self._connection, row, cursor, row["now"], batches[lane])
        return batches

    async def carry_out(self, batches: dict[int, Batch]) -> None:
        for lane, batch in batches.items():
            await self._firer.carry_out(self._connection, lane, batch)


# The comparison that keeps a stale decision from being carried out, and what is left without it.
DROP_COMPARISON = ("and cursor.revision = item.revision and cursor.nominal_at = item.expected_at", "")


async def replace_in_function(connection: Connection, part: str, replacement: str) -> None:
    """Change the function that fires, for controls."""
    text = await connection.fetchval("select pg_get_functiondef('mainspring.fire_schedules'::regproc)")
    assert part in text
    await connection.execute(text.replace(part, replacement))


def remind(app: Mainspring) -> Job[[int], None]:
    @app.job(name="remind")
    async def remind(customer: int = 0) -> None: ...

    return remind


async def outcomes(app: Mainspring, name: str) -> list[tuple[datetime, datetime, str]]:
    """What the instants of a schedule became, oldest first: from, to, and what."""
    return [(each.nominal_at, each.last_at, said(each)) for each in reversed(await app.schedules.history(name))]


def said(record: OccurrenceRecord) -> str:
    return record.reason or record.outcome.value


async def run_ids(app: Mainspring) -> list[UUID]:
    return sorted(run.id for run in (await app.runs.list(job="remind")).runs)


# ── calendars ───────────────────────────────────────────────────────────────────────────────────────────────────

NONE_YET = Calendar(name="holidays", yearly=frozenset({(12, 25)}))


def holidays(*days: int) -> Calendar:
    """So many days after New Year, and Christmas."""
    dates = frozenset((NEW_YEAR + day * DAY).date() for day in days)
    return Calendar(name="holidays", dates=dates, yearly=frozenset({(12, 25)}))


def nights() -> Calendar:
    return Calendar(name="nights", windows=((time(22), time(6)),))


async def made_daily(app: Mainspring, calendar: Calendar = NONE_YET, when: str = "0 9 * * * not=holidays") -> None:
    """A schedule that uses a calendar."""
    await app.calendars.put(calendar)
    await remind(app).scheduled("daily", when).create(1)


async def next_at(app: Mainspring, name: str = "daily") -> datetime | None:
    return (await app.schedules.find(name)).next_at
