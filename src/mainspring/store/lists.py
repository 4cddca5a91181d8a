"""Lists of runs: each place and each job of history by its own index scan, newest first, over a bounded number of rows.

Rows come with `is_match`, whether the filter's rest holds, and `is_last`, whether the scan gave up there.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mainspring.model.filter import FAILURES, UNSUCCESSFUL
from mainspring.model.ids import by_lane, lane_of, made_at
from mainspring.model.lifecycle import State
from mainspring.store.database import KEEPS_GOOD_PLANS
from mainspring.store.history import HOST_CLOCK_SLACK
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from mainspring.store.connection import Connection, Record


# What is in line has no index by job. The newest so many of a lane are looked at first: most pages are full soon. Where
# that was not enough, whole lines are read, for up to so many runs of the jobs.
LOOKS_AT_NEWEST = 4  # each at one in twenty of the rows that one scan may look at
SHARE_OF_A_LOOK = 20
TIMES_ALONG_LINES = 10  # so many times as many
COUNTED_IN_LINE = 100_000  # of a lane, of whatever job
# A run is buried and its attempt recorded in one transaction, at one instant; nothing is known to make them differ.
DEATH_SLACK = timedelta(minutes=1)


class Scope(NamedTuple):
    """What every question of one list has in common."""

    tenant_id: int
    lanes: list[int]
    jobs: list[int]  # with `lines`, the pairs of job and line to ask for in history
    lines: list[int]
    is_narrow: bool  # whether only some jobs or lines are wanted
    is_of_jobs: bool  # whether only some jobs are
    tags: list[str] | None
    error: str | None
    most: int  # rows wanted
    bound: int  # how many rows one scan looks at


class HistorySpan(NamedTuple):
    """Where in history to look: from the latest row down."""

    before: datetime
    before_id: UUID
    since: datetime


async def begin(connection: Connection) -> datetime:
    """Prepare the transaction for lists; answers with the database's time."""
    row = await load("lists/begin").fetchrow(connection, keeps_plans=10_000 * KEEPS_GOOD_PLANS)
    assert row is not None
    now: datetime = row["now"]
    return now


async def placed(
    connection: Connection, scope: Scope, states: Collection[State], before: UUID, since: UUID
) -> list[Record]:
    """Runs that wait or are dead."""
    values = {
        "tenant": scope.tenant_id,
        "states": [state.value for state in states],
        "tags": scope.tags,
        "before": before,
        "since": since,
        "count": scope.most,
    }
    if not scope.is_narrow:
        return await load("lists/placed").fetch(connection, lanes=scope.lanes, bound=scope.bound, **values)
    rows = await load("lists/placed_of_jobs").fetch(
        connection, lanes=scope.lanes, jobs=scope.jobs, lines=scope.lines, bound=scope.bound, **values
    )
    if not {State.READY, State.SCHEDULED}.isdisjoint(states):
        rows += await _in_line(connection, scope, values)
    return rows


async def _in_line(connection: Connection, scope: Scope, values: dict[str, Any]) -> list[Record]:
    """Runs of some jobs or lines that are in line: among the newest of each lane, or else wherever they are."""
    found: dict[int, list[Record]] = {lane: [] for lane in scope.lanes}
    ends: dict[int, UUID] = dict.fromkeys(scope.lanes, values["before"])
    for _ in range(LOOKS_AT_NEWEST):
        newest = await _among_newest(connection, scope, ends, values)
        for lane in ends:
            found[lane] = [*(row for row in found[lane] if row["is_match"]), *newest.get(lane, ())]
        ends = _given_up_too_soon(found, scope.most)
        if not ends:
            break
    for lane in ends:
        found[lane] = await _along_lines(connection, scope, lane, values)
    return [row for rows in found.values() for row in rows]


async def _among_newest(
    connection: Connection, scope: Scope, ends: dict[int, UUID], values: dict[str, Any]
) -> dict[int, list[Record]]:
    """By lane, what matches among so many below its end."""
    rows = await load("lists/ready_of_jobs").fetch(
        connection,
        lanes=list(ends),
        befores=list(ends.values()),
        jobs=sorted(set(scope.jobs)) if scope.is_of_jobs else None,
        lines=sorted(set(scope.lines)),
        bound=max(scope.most + 1, scope.bound // SHARE_OF_A_LOOK),
        **{name: value for name, value in values.items() if name != "before"},
    )
    found: dict[int, list[Record]] = defaultdict(list)
    for row in rows:
        found[lane_of(row["id"])].append(row)
    return found


def _given_up_too_soon(found: dict[int, list[Record]], wanted: int) -> dict[int, UUID]:
    """Before which ids more may follow, by lane, if what is newer than all that does not fill the page."""
    ends = {lane: row["id"] for lane, rows in found.items() for row in rows if row["is_last"]}
    if not ends:
        return {}
    known_from = max(ends.values())
    known = [row for rows in found.values() for row in rows if row["is_match"] and row["id"] > known_from]
    return {} if len(known) >= wanted else {lane: UUID(int=end.int + 1) for lane, end in ends.items()}


async def _along_lines(connection: Connection, scope: Scope, lane: int, values: dict[str, Any]) -> list[Record]:
    lines = scope.lines if scope.is_of_jobs else sorted(set(scope.lines))
    jobs = scope.jobs if scope.is_of_jobs else [None] * len(lines)
    return await load("lists/ready_along_lines").fetch(
        connection, lane=lane, jobs=jobs, lines=lines, bound=scope.bound * TIMES_ALONG_LINES, **values
    )


async def running(connection: Connection, scope: Scope, before: UUID, since: UUID) -> list[Record]:
    return await load("lists/running").fetch(
        connection,
        tenant=scope.tenant_id,
        lanes=scope.lanes,
        jobs=sorted(set(scope.jobs)) if scope.is_narrow else None,
        lines=sorted(set(scope.lines)) if scope.is_narrow else None,
        tags=scope.tags,
        before=before,
        since=since,
        count=scope.most,
    )


async def ended(connection: Connection, scope: Scope, states: Collection[State], span: HistorySpan) -> list[Record]:
    """Runs that ended; those that did not succeed are few among many, and have an index of their own."""
    if State.SUCCEEDED not in states:
        return await _unsuccessful(connection, scope, states, span, only_failures=False)
    return await load("lists/ended").fetch(
        connection,
        tenant=scope.tenant_id,
        lanes=scope.lanes,
        jobs=scope.jobs,
        lines=scope.lines,
        states=[state.value for state in states],
        tags=scope.tags,
        bound=scope.bound,
        count=scope.most,
        **span._asdict(),
    )


async def failures(connection: Connection, scope: Scope, span: HistorySpan) -> list[Record]:
    """The latest failed attempts of runs, wherever those are now."""
    return await _unsuccessful(connection, scope, list(State), span, only_failures=True)


async def _unsuccessful(
    connection: Connection, scope: Scope, states: Collection[State], span: HistorySpan, *, only_failures: bool
) -> list[Record]:
    return await load("lists/unsuccessful").fetch(
        connection,
        tenant=scope.tenant_id,
        lanes=scope.lanes,
        jobs=scope.jobs,
        lines=scope.lines,
        states=[state.value for state in states],
        outcomes=[outcome.value for outcome in (FAILURES if only_failures else UNSUCCESSFUL)],
        only_latest=only_failures,
        tags=scope.tags,
        error=scope.error,
        bound=scope.bound,
        count=scope.most,
        **span._asdict(),
    )


async def last_errors(connection: Connection, rows: Sequence[Record], *, tenant_id: int) -> dict[UUID, str | None]:
    """What made dead letters of these runs, by their rows in a list."""
    died = {row["id"]: row["since_at"] for row in rows}
    errors: dict[UUID, str | None] = {}
    for lane, some in by_lane(died):
        since = min(died[run_id] for run_id in some) - DEATH_SLACK
        found = await load("lists/last_errors").fetch(connection, lane=lane, runs=some, since=since, tenant=tenant_id)
        errors |= {row["run_id"]: row["error"] for row in found}
    return errors


async def states_of(connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int) -> dict[UUID, State]:
    """In which states these runs are now."""
    found: dict[UUID, State] = {}
    for lane, some in by_lane(run_ids):
        since = made_at(min(some)) - HOST_CLOCK_SLACK
        rows = await load("lists/whereabouts").fetch(connection, lane=lane, runs=some, since=since, tenant=tenant_id)
        found |= {row["id"]: State(row["state"]) for row in rows}
    return found


async def counts(
    connection: Connection, lanes: int, job_ids: Sequence[int], bound: int, *, tenant_id: int
) -> dict[int, dict[str, int]]:
    """How many runs of these jobs are where; `is_more` if some lane has more than were counted."""
    asked = {"lanes": list(range(lanes)), "jobs": list(job_ids), "tenant": tenant_id}
    found: dict[int, dict[str, int]] = {job_id: {} for job_id in job_ids}
    for row in await load("lists/counts").fetch(connection, bound=bound, **asked):
        found[row["job_id"]] |= dict(row)
    for row in await load("lists/running_counts").fetch(connection, **asked):
        found[row["job_id"]]["running"] = row["running"]
    for lane in range(lanes):
        rows = await load("lists/ready_counts").fetch(connection, lane=lane, bound=COUNTED_IN_LINE, tenant=tenant_id)
        _add_in_line(found, rows)
    return found


def _add_in_line(found: dict[int, dict[str, int]], rows: Sequence[Record]) -> None:
    """Where a lane has more than were looked at, there may be more of any job."""
    is_cut = sum(row["ready"] + row["staged"] for row in rows) >= COUNTED_IN_LINE
    in_line = {row["job_id"]: row for row in rows}
    for job_id, of_job in found.items():
        if (row := in_line.get(job_id)) is not None:
            of_job["ready"] = of_job.get("ready", 0) + row["ready"]
            of_job["scheduled"] = of_job.get("scheduled", 0) + row["staged"]
        of_job["is_more"] = of_job.get("is_more", False) or is_cut
