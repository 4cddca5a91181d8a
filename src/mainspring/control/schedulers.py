"""Who fires schedules, and how late: what `doctor` and `top` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.model.scheduling import SchedulerSummary
from mainspring.scheduler.lanes import lanes_of
from mainspring.store import schedule_firing, schedulers

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

LIVE_SECONDS = 10.0  # a heartbeat comes every second; whoever is busy may miss some
OVERDUE_SECONDS = 5.0  # an instant that nobody has decided for so long: its lane waits for somebody


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringStatus:
    """The live schedulers, and how late the oldest instant that nobody has decided is."""

    schedulers: list[SchedulerSummary]
    has_schedules: bool  # that are to fire at some time
    overdue_seconds: float  # 0 if nothing is overdue
    overdue_lanes: list[int]  # with instants that are overdue for longer than it takes to fire them


async def firing(connection: Connection, lanes: int) -> FiringStatus:
    rows = [row for row in await schedulers.listed(connection) if row["silent_seconds"] < LIVE_SECONDS]
    live = [row["id"] for row in rows]
    waiting = {
        row["lane"]: -seconds
        for row in await schedule_firing.next_due(connection, list(range(lanes)))
        if (seconds := schedule_firing.due_in(row)) is not None
    }
    return FiringStatus(
        schedulers=[
            SchedulerSummary(
                id=row["id"],
                host=row["host"],
                pid=row["pid"],
                version=row["version"],
                started_at=row["started_at"],
                silent_seconds=row["silent_seconds"],
                lanes=len(lanes_of(row["id"], live, lanes)),
            )
            for row in rows
        ],
        has_schedules=bool(waiting),
        overdue_seconds=max(0.0, *waiting.values(), 0.0),
        overdue_lanes=sorted(lane for lane, seconds in waiting.items() if seconds > OVERDUE_SECONDS),
    )
