"""Running again what is over: a dead run is requeued and stays itself; one that ended gets a new run.

Not to be confused with *retry*, the move of a failed attempt to the next one, which workers make by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.clock import instant
from mainspring.control.dead import act_of, requeue_in_lane
from mainspring.errors import InvalidInput, RunNotEnded
from mainspring.model.ids import lane_of
from mainspring.model.template import AWAITS
from mainspring.store import backfills, notify, submissions
from mainspring.store import runs as store
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.runs import Runs
    from mainspring.model.actor import Actor
    from mainspring.store import dead
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database


class Reruns:
    """Runs things again."""

    def __init__(self, *, database: Database, clock: Clock, runs: Runs) -> None:
        self._database = database
        self._clock = clock
        self._runs = runs

    async def rerun(
        self, actor: Actor, run_id: UUID | str, *, arguments: Mapping[str, Any] | None = None, reason: str = ""
    ) -> UUID:
        """Run something again that is over; answers with the run that stands for it now: the same, or a new one."""
        parsed = self._runs.parse(run_id)
        payload = await self._runs.encoded_for_requeue(actor, parsed, arguments)
        if payload is None:
            await self._refuse_unfilled(actor, parsed)
        act = act_of(actor, reason, changed=() if payload is None else ("payload",))
        return await uncancelled(self._rerun(actor, parsed, act, payload))

    async def _refuse_unfilled(self, actor: Actor, run_id: UUID) -> None:
        """Results of others that it waited for never became its arguments."""
        awaited = (await self._runs.find(actor, run_id)).headers.get(AWAITS)
        if awaited is not None:
            raise InvalidInput(
                f"Run {run_id} ended while it waited for results of others: it lacks {', '.join(awaited.split())}.",
                code="arguments-awaited",
                hint="Give all its arguments, or retry its flow: mainspring flow retry.",
                field="arguments",
                run_id=str(run_id),
            )

    async def _rerun(self, actor: Actor, run_id: UUID, act: dead.Act, payload: bytes | None) -> UUID:
        async with self._database.acquire() as connection, transaction(connection):
            again = await self.rerun_in_lane(connection, lane_of(run_id), [run_id], act, payload=payload)
        if run_id in again:
            return again[run_id]
        await self._runs.raise_if_key_is_held(actor, run_id)
        run = await self._runs.find_confirmed(actor, run_id)
        raise RunNotEnded(
            f"Run {run_id} is {run.state}; it is not over, so there is nothing to rerun.",
            hint=f"See where it is: mainspring run show {run_id}",
            run_id=str(run_id),
            state=run.state.value,
        )

    async def rerun_in_lane(
        self, connection: Connection, lane: int, run_ids: list[UUID], act: dead.Act, *, payload: bytes | None = None
    ) -> dict[UUID, UUID]:
        """Run those of one lane again within the caller's transaction; answers with what stands for each."""
        requeued = set(await requeue_in_lane(connection, lane, run_ids, act, payload=payload))
        ended = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in requeued]
        again = {run_id: run_id for run_id in requeued}
        if ended:
            again |= await self._new_runs(connection, lane, ended, act, payload)
        return again

    async def _new_runs(
        self, connection: Connection, lane: int, run_ids: list[UUID], act: dead.Act, payload: bytes | None
    ) -> dict[UUID, UUID]:
        new_ids = submissions.new_run_ids(len(run_ids), lane, instant(self._clock))
        rows = await store.rerun(
            connection,
            lane,
            run_ids,
            new_ids,
            tenant_id=act.tenant_id,
            actor=act.actor,
            detail=act.detail,
            payload=payload,
        )
        lines = dict.fromkeys((row["line_id"], row["priority"]) for row in rows)
        notify.send(connection, [notify.ready(lane, line, priority) for line, priority in lines])
        return {row["run_id"]: row["id"] for row in rows}


async def standing(
    connection: Connection, lane: int, run_ids: Iterable[UUID], *, tenant_id: int, most: int | None = None
) -> dict[UUID, UUID]:
    """Which run stands for each of these now: itself, or the one that was last made of it.

    A rerun may have been run again in its turn: at most so many times are followed.
    """
    stands = {run_id: run_id for run_id in run_ids}
    latest, looks = set(stands), 0
    while latest and looks != most:
        again = await backfills.reruns(connection, lane, list(latest), tenant_id=tenant_id)
        stands = {run_id: again.get(now, now) for run_id, now in stands.items()}
        latest, looks = set(again.values()), looks + 1
    return stands
