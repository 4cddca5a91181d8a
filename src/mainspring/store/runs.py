"""Single runs and the moves that keepers make: find, cancel, change, promote, release, expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.model.ids import by_lane, lane_of, made_at
from mainspring.model.lifecycle import HoldReason
from mainspring.model.line import Line
from mainspring.model.payload import JSON_CODEC
from mainspring.model.run import PRIORITIES
from mainspring.store.history import HOST_CLOCK_SLACK
from mainspring.store.instants import EPOCH
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

LONG_AGO = EPOCH  # before anything was due
MOST_PAIRS = 20_000  # of lane and line, in one statement
BEFORE_ALL, AFTER_ALL = (-1, -1), (2**31 - 1, 2**15 - 1)  # line, lane


async def find(connection: Connection, run_id: UUID, *, tenant_id: int) -> Record | None:
    """A run in its place, if it has not ended."""
    return await load("runs/find").fetchrow(connection, lane=lane_of(run_id), run=run_id, tenant=tenant_id)


async def count_ahead(connection: Connection, run_id: UUID, bound: int, *, tenant_id: int) -> int | None:
    """How many runs of its line come before one that is in line, counted up to a bound per lane; None if it is not."""
    row = await load("runs/rank").fetchrow(connection, lane=lane_of(run_id), run=run_id, tenant=tenant_id)
    if row is None:
        return None
    count: int = await load("runs/ahead").fetchval(
        connection, lane=lane_of(run_id), **row, bound=bound, tenant=tenant_id
    )
    return count


async def waits_until(connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int) -> dict[UUID, datetime]:
    """When those of some runs are due that wait for their time."""
    return {
        row["id"]: row["due_at"]
        for lane, some in by_lane(run_ids)
        for row in await load("runs/waits_until").fetch(connection, lane=lane, runs=some, tenant=tenant_id)
    }


async def cancel_waiting(
    connection: Connection,
    lane: int,
    run_ids: Sequence[UUID],
    *,
    tenant_id: int,
    actor: str,
    reason: str,
    detail: str = "{}",
) -> list[UUID]:
    """End those of these runs of one lane that wait; answers with them."""
    rows = await load("runs/cancel_waiting").fetch(
        connection, lane=lane, runs=list(run_ids), tenant=tenant_id, actor=actor, reason=reason, detail=detail
    )
    return [row["id"] for row in rows]


async def lock_running(connection: Connection, lane: int, run_ids: Sequence[UUID]) -> list[UUID]:
    """Those of these runs that a worker has. Until COMMIT it keeps them: their leases are locked, in one order."""
    rows = await load("leases/lock_of_runs").fetch(connection, lane=lane, runs=run_ids)
    going_on = {run_id for row in rows for run_id, done in zip(row["ids"], row["done"], strict=True) if done == "0"}
    return [run_id for run_id in run_ids if run_id in going_on]


class Cancelled(NamedTuple):
    """Which runs have ended or were asked to stop, and the workers that were asked."""

    done: set[UUID]
    workers: set[UUID]


async def cancel_wherever(
    connection: Connection, lane: int, run_ids: Sequence[UUID], *, tenant_id: int, actor: str, reason: str
) -> Cancelled:
    """End them where they wait; then ask for it in their leases; then once more, for those that moved meanwhile.

    Each lease by itself: whoever settles locks several of them in an order of its own.
    """
    said: dict[str, Any] = {"tenant_id": tenant_id, "actor": actor, "reason": reason}
    done = set(await cancel_waiting(connection, lane, run_ids, **said))
    workers: set[UUID] = set()
    for run_id in run_ids:
        if run_id not in done and (worker := await request_cancel(connection, run_id, **said)) is not None:
            done.add(run_id)
            workers.add(worker)
    left = [run_id for run_id in run_ids if run_id not in done]
    if left:
        done.update(await cancel_waiting(connection, lane, left, **said))
    return Cancelled(done, workers)


async def request_cancel(
    connection: Connection, run_id: UUID, *, tenant_id: int, actor: str, reason: str, detail: str = "{}"
) -> UUID | None:
    """Ask the worker that has the run to stop it; answers with that worker."""
    row = await load("leases/request_cancel").fetchrow(
        connection, lane=lane_of(run_id), run=run_id, tenant=tenant_id, actor=actor, reason=reason, detail=detail
    )
    return None if row is None else row["worker_id"]


async def change(
    connection: Connection,
    lane: int,
    run_ids: Sequence[UUID],
    changes: dict[str, Any],
    *,
    tenant_id: int,
    revision: int | None = None,
    present_line: int | None = None,
    actor: str,
    detail: str,
) -> list[Record]:
    """Change those of these runs of one lane that wait and are as the caller saw them; answers with them."""
    values = dict.fromkeys(("line", "priority", "due_at", "max_age", "codec", "payload", "tags")) | changes
    return await load("runs/change").fetch(
        connection,
        lane=lane,
        runs=list(run_ids),
        tenant=tenant_id,
        revision=revision,
        present_line=present_line,
        actor=actor,
        detail=detail,
        **values,
    )


async def rerun(
    connection: Connection,
    lane: int,
    run_ids: Sequence[UUID],
    new_ids: Sequence[UUID],
    *,
    tenant_id: int,
    actor: str,
    detail: str,
    payload: bytes | None = None,
) -> list[Record]:
    """Make a new run of each of these that ended, with the id at its place; answers with old and new."""
    return await load("runs/rerun").fetch(
        connection,
        lane=lane,
        runs=list(run_ids),
        ids=list(new_ids),
        since=made_at(min(run_ids)) - HOST_CLOCK_SLACK,
        tenant=tenant_id,
        actor=actor,
        detail=detail,
        payload=payload,
        codec=None if payload is None else JSON_CODEC,
    )


async def promote(connection: Connection, lane: int, fronts: Sequence[datetime], count: int) -> list[Record]:
    """Move due runs into the line; answers with the lines and priorities that got some."""
    return await load("runs/promote").fetch(connection, lane=lane, priorities=PRIORITIES, fronts=fronts, count=count)


async def next_due(
    connection: Connection, lanes: Sequence[int], priorities: Sequence[int], fronts: Sequence[datetime]
) -> list[Record]:
    """When the first run of each (lane, priority) is due, from the given fronts on."""
    return await load("runs/next_due").fetch(connection, lanes=lanes, priorities=priorities, fronts=fronts)


async def waiting_lines(connection: Connection, pairs: Sequence[tuple[int, int]]) -> list[Record]:
    """Which of these pairs of lane and line have something to claim, or in how many seconds they will."""
    lanes, lines = [lane for lane, _ in pairs], [line for _, line in pairs]
    return await load("runs/waiting_lines").fetch(connection, lanes=lanes, lines=lines, priorities=PRIORITIES)


async def lines_in_use(
    connection: Connection, passing_over: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]] | None:
    """Pairs of lane and line with runs, of all tenants, without some: nothing of those is touched.

    None on a Citus cluster, where one statement cannot tell: look at all there are.
    """
    if connection.is_distributed:
        return None
    found: list[tuple[int, int]] = []
    while len(some := await _lines_in_use(connection, {*passing_over, *found})) == MOST_PAIRS:
        found += some
    return found + some


async def _lines_in_use(connection: Connection, passing_over: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    known = sorted((line, lane) for lane, line in passing_over)
    after, until = [BEFORE_ALL, *known], [*known, AFTER_ALL]
    rows = await load("runs/lines_in_use").fetch(
        connection,
        after_lines=[line for line, _ in after],
        after_lanes=[lane for _, lane in after],
        until_lines=[line for line, _ in until],
        until_lanes=[lane for _, lane in until],
        count=MOST_PAIRS,
    )
    return [(row["lane"], row["line"]) for row in rows]


async def lines_to_rerank(
    connection: Connection, pairs: Sequence[tuple[int, int]], ahead_seconds: float
) -> list[Record]:
    """Which of these pairs of lane and line have runs whose rank the clock has passed before it was set back."""
    lanes, lines = [lane for lane, _ in pairs], [line for _, line in pairs]
    return await load("runs/lines_to_rerank").fetch(
        connection, lanes=lanes, lines=lines, priorities=PRIORITIES, ahead=_micros(ahead_seconds)
    )


async def rerank(connection: Connection, lane: int, line: int, ahead_seconds: float, count: int) -> list[int]:
    """Let such runs stand in line as of now; answers with their priorities."""
    rows = await load("runs/rerank").fetch(
        connection, lane=lane, line=line, priorities=PRIORITIES, ahead=_micros(ahead_seconds), count=count
    )
    return [row["priority"] for row in rows]


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


class HeldGroup(NamedTuple):
    """Runs of one job are held in one line."""

    job_id: int
    job: str
    line_id: int
    line: Line


async def lanes_to_keep(connection: Connection, lanes: int) -> list[Record]:
    """What there is for keepers to look after, in each lane that has something."""
    return await load("runs/lanes_to_keep").fetch(connection, lanes=connection.reach.lanes(range(lanes)))


async def held_groups(connection: Connection, lane: int) -> list[HeldGroup]:
    rows = await load("runs/held_groups").fetch(connection, lane=lane)
    return [HeldGroup(row["job_id"], row["job"], row["line_id"], Line.of(row["queue"], row["labels"])) for row in rows]


async def release(
    connection: Connection, lane: int, pauses: Mapping[tuple[int, int], float], count: int
) -> list[Record]:
    """Put runs held for want of a handler back in line, by job and line, after so many seconds each."""
    return await load("runs/release").fetch(
        connection,
        lane=lane,
        jobs=[job_id for job_id, _ in pauses],
        lines=[line_id for _, line_id in pauses],
        pauses=list(pauses.values()),
        reason=HoldReason.NO_HANDLER.value,
        count=count,
    )


async def lanes_to_tidy(connection: Connection, lanes: int) -> list[Record]:
    """Lanes with runs that expired or keys to look at."""
    return await load("runs/lanes_to_tidy").fetch(connection, lanes=connection.reach.lanes(range(lanes)))


async def expire(connection: Connection, lane: int, count: int) -> int:
    return int(await load("runs/expire").fetchval(connection, lane=lane, count=count))


async def forget_keys(connection: Connection, lane: int, count: int) -> int:
    """Forget idempotency keys whose runs ended a day ago; answers how many keys were looked at."""
    return int(await load("runs/forget_keys").fetchval(connection, lane=lane, count=count))


async def forget_unique_keys(connection: Connection, lane: int, count: int) -> int:
    """Forget unique keys whose runs are over; answers how many were looked at."""
    return int(await load("runs/forget_unique_keys").fetchval(connection, lane=lane, count=count))


async def of_job(connection: Connection, job: str, *, tenant_id: int) -> list[Record]:
    """Every run of a job, wherever it is. It reads everything: for tests."""
    return await load("runs/of_job").fetch(connection, tenant=tenant_id, job=job)
