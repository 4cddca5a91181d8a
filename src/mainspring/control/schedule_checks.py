"""What doctor asks about schedules: who fires them, how late, and which ones were paused for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.control.findings import Finding, ok, problem, warning
from mainspring.control.schedulers import firing
from mainspring.scheduler.cursors import ACTOR
from mainspring.store import health

if TYPE_CHECKING:
    from mainspring.control.findings import Examined
    from mainspring.control.schedulers import FiringStatus

LATE_PROBLEM = 60.0
SEARCHED = 100_000  # schedules that are looked at; there is no index for what should never be
NAMED = 3

_START = "Start one: mainspring scheduler --app module:app"


async def check_schedulers(database: Examined) -> Finding:
    """Whether somebody fires what is due. A lane that is overdue has no owner, whatever the heartbeats say."""
    seen = await firing(database.connection, database.lanes)
    if not seen.schedulers:
        if not seen.has_schedules:
            return ok("schedulers", "none, and no schedule is to fire")
        return problem("schedulers", f"no live scheduler: schedules do not fire{_overdue(seen)}", _START)
    shares = [each.lanes for each in seen.schedulers]
    says = f"{len(shares)} live, with {_range(shares)} lanes{' each' if len(shares) > 1 else ''}{_overdue(seen)}"
    if not seen.overdue_lanes:
        return ok("schedulers", says)
    finding = problem if seen.overdue_seconds > LATE_PROBLEM else warning
    return finding("schedulers", says, "Their logs say why. If they have too much to do, start one more.")


def _overdue(seen: FiringStatus) -> str:
    if not seen.overdue_lanes:
        return ""
    lanes = f"{len(seen.overdue_lanes)} lane{'' if len(seen.overdue_lanes) == 1 else 's'}"
    return f"; {lanes} overdue, the oldest instant by {seen.overdue_seconds:,.0f} s"


def _range(shares: list[int]) -> str:
    return f"{min(shares)}" if min(shares) == max(shares) else f"{min(shares)} to {max(shares)}"


async def check_undecided(database: Examined) -> Finding:
    """Those that cannot be decided, and those whose runs failed too often."""
    rows = await health.schedules_paused_by(database.connection, database.lanes, ACTOR, SEARCHED // database.lanes)
    if not rows:
        return ok("schedules", "none was paused by the scheduler")
    name, reason = rows[0]["name"], rows[0]["pause_reason"]
    names = ", ".join(row["name"] for row in rows[:NAMED]) + (", …" if len(rows) > NAMED else "")
    says = f"{len(rows):,} paused by the scheduler: {names} ({reason})"
    return warning("schedules", says, f"Look at it, mend or replace it, then: mainspring schedule resume {name}")
