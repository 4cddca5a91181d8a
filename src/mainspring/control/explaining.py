"""Why a run is not running: its place, its queue and the workers that there are, seen through `model/admission.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mainspring.model.admission import Explanation, ParentStatus, WaitingRun, earliest_start, reasons
from mainspring.model.lifecycle import WAITING, HoldReason, State
from mainspring.model.line import Line
from mainspring.store import dependencies, jobs, limits, lists, queues, schedules, workers
from mainspring.store import runs as store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.control.runs import Runs
    from mainspring.model.actor import Actor
    from mainspring.model.admission import Holder, LimitReached
    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.run import Run
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

COUNTED = 10_000  # runs ahead: in each lane, and so the least that is told where a lane has more


class Explanations:
    """Explains what single runs wait for."""

    def __init__(self, *, database: Database, runs: Runs, lanes: int) -> None:
        self._database = database
        self._lanes = lanes
        self._runs = runs

    async def explain(self, actor: Actor, run_id: UUID | str) -> Explanation:
        """Name the one condition that keeps a run from starting, and what would keep it next.

        Who holds what it waits for, how many come before it, and when it can start at the earliest are told as well.
        """
        run = await self._runs.find(actor, run_id)
        async with self._database.acquire() as connection:
            if run.state not in WAITING:
                return await _not_waiting(connection, run)
            return await _waiting(connection, actor, run, self._lanes)


async def _not_waiting(connection: Connection, run: Run) -> Explanation:
    says, remedy = _what_it_does(run)
    return Explanation(
        run_id=run.id,
        job=run.job,
        queue=run.queue,
        state=run.state,
        at=await schedules.now(connection),
        says=says,
        remedy=remedy,
    )


def _what_it_does(run: Run) -> tuple[str, str | None]:
    last = run.attempts[-1] if run.attempts else None
    if run.state is State.RUNNING:
        asked = "; it was asked to stop, and ends when its handler does" if run.is_cancelling else ""
        return f"worker {run.worker_id} has claimed it{asked}", f"mainspring run watch {run.id}"
    if run.state is State.DEAD:
        tried = f"{run.attempts_spent} attempt{'' if run.attempts_spent == 1 else 's'}"
        return f"it is a dead letter, after {tried}", f"mainspring dead-letter requeue {run.id}"
    at = "" if last is None else f" at {last.recorded_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"it is over: it {_ENDED[run.state]}{at}", f"mainspring run rerun {run.id}"


_ENDED = {
    State.SUCCEEDED: "succeeded",
    State.CANCELLED: "was cancelled",
    State.EXPIRED: "expired before it could start",
    State.LOST: "was lost with its worker",
}


async def _waiting(connection: Connection, actor: Actor, run: Run, lanes: int) -> Explanation:
    line = Line(run.queue, tuple(run.labels), run.delivery)
    number = (await jobs.lines(connection, tenant_id=actor.tenant)).get(line)
    limits_reached = [
        await _with_dead_letters(connection, actor, each)
        for each in await limits.reached_by(connection, run.id, lanes, COUNTED, tenant_id=actor.tenant)
    ]
    limit = limits_reached[0] if limits_reached else None
    ahead = (
        await store.count_ahead(connection, run.id, COUNTED, tenant_id=actor.tenant) if limit is None else limit.ahead
    )
    holders = [] if number is None else await workers.holders(connection, number, line)
    children = run.children if run.held_for == HoldReason.CHILDREN else None
    waiting = WaitingRun(
        id=run.id,
        job=run.job,
        line=line,
        state=run.state,
        due_at=run.due_at,
        attempts_spent=run.attempts_spent,
        now=await schedules.now(connection),
        parents=await _parents(connection, actor, run, lanes),
        children=children,
        children_due_at=await _latest_due(connection, actor, children or ()),
        limit=limit,
        next_limits=limits_reached[1:],
        pause=await queues.find_pause(connection, run.queue, tenant_id=actor.tenant),
        servers=await workers.serving(connection, run.queue),
        ahead=ahead or 0,
        prefetched=sum(max(0, each.holding - each.slots) for each in holders),
        starts_per_s=None if number is None else await queues.starts_per_s(connection, number, _occupied(holders)),
    )
    first, *then = reasons(waiting)
    earliest_at, is_estimate = earliest_start(waiting)
    return Explanation(
        run_id=run.id,
        job=run.job,
        queue=run.queue,
        state=run.state,
        at=waiting.now,
        says=first.says,
        remedy=first.remedy,
        gate=first.gate,
        then=then,
        ahead=ahead,
        ahead_is_exact=waiting.ahead < COUNTED,
        holders=holders,
        as_soon_as=first.as_soon_as,
        earliest_at=earliest_at,
        is_estimate=is_estimate,
    )


async def _parents(connection: Connection, actor: Actor, run: Run, lanes: int) -> list[ParentStatus]:
    """Those that it waits for, and where they are."""
    if run.held_for != HoldReason.PARENT:
        return []
    waited_for = await dependencies.waited_for(connection, run.id, lanes)
    states = await lists.states_of(connection, list(waited_for), tenant_id=actor.tenant)
    due = await store.waits_until(connection, list(waited_for), tenant_id=actor.tenant)
    return [
        ParentStatus(run_id=run_id, condition=condition, state=states.get(run_id), due_at=due.get(run_id))
        for run_id, condition in waited_for.items()
    ]


async def _latest_due(connection: Connection, actor: Actor, children: Sequence[ChildStatus]) -> datetime | None:
    """When the last of those children is due that wait for their time."""
    waiting = [child.run_id for child in children if child.state in WAITING]
    due = await store.waits_until(connection, waiting, tenant_id=actor.tenant)
    return max(due.values(), default=None)


async def _with_dead_letters(connection: Connection, actor: Actor, limit: LimitReached) -> LimitReached:
    """Which holders of slots are dead letters, where those keep them."""
    if limit.rule is None or not limit.rule.halts_on_dead:
        return limit
    states = await lists.states_of(connection, limit.holders, tenant_id=actor.tenant)
    return replace(limit, dead=[holder for holder in limit.holders if states.get(holder) is State.DEAD])


def _occupied(holders: Sequence[Holder]) -> int:
    """How many slots have runs of the line: workers hold more of them than that, ahead of their slots."""
    return sum(min(each.holding, each.slots) for each in holders)
