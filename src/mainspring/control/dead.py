"""Dead letters: put them back in line, or end them for good. Two who act on one at once never both do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import InvalidInput, RunNotDead
from mainspring.model import job as rules
from mainspring.model.ids import by_lane
from mainspring.model.payload import JSON_CODEC
from mainspring.store import dead, notify
from mainspring.store.confirming import confirm_at_commit
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    from mainspring.control.runs import Runs
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

MOST_AT_ONCE = 1_000


class Moved(NamedTuple):
    """Which of the named runs were moved, and which were not dead (any more), or kept by their unique key."""

    done: list[UUID]
    skipped: list[UUID]


class DeadLetters:
    """Acts on dead letters."""

    def __init__(self, *, database: Database, runs: Runs) -> None:
        self._database = database
        self._runs = runs

    async def requeue(
        self,
        actor: Actor,
        *run_ids: UUID | str,
        arguments: Mapping[str, Any] | None = None,
        max_age: timedelta | float | None = None,
        reason: str = "",
    ) -> Moved:
        """Put dead runs back in line: the same runs, with their history, and all their attempts again.

        Those that are not dead (any more), or whose unique key another run holds, are skipped. `arguments` replaces the
        arguments of a single run; they are checked against the handler's signature if this application defines the job.
        A requeued run does not expire, unless a new `max_age` is given.
        """
        payload = None if arguments is None else await self._encoded(actor, run_ids, arguments)
        act = act_of(actor, reason, changed=() if payload is None else ("payload",))
        age = rules.checked_max_age(max_age)

        async def move(connection: Connection, lane: int, some: list[UUID]) -> list[UUID]:
            return await requeue_in_lane(connection, lane, some, act, payload=payload, max_age=age)

        return await self._move(run_ids, move)

    async def purge(self, actor: Actor, *run_ids: UUID | str, reason: str = "") -> Moved:
        """End dead runs for good. Their history stays; those that are not dead are skipped."""
        act, checked = act_of(actor, reason), rules.checked_reason(reason)

        async def move(connection: Connection, lane: int, some: list[UUID]) -> list[UUID]:
            return await dead.purge(connection, lane, some, act, reason=checked)

        return await self._move(run_ids, move)

    async def _encoded(
        self, actor: Actor, run_ids: tuple[UUID | str, ...], arguments: Mapping[str, Any]
    ) -> bytes | None:
        if len(run_ids) != 1:
            raise InvalidInput(
                f"New arguments for {len(run_ids)} runs were given; they are for one.",
                code="arguments-for-many",
                hint="Requeue the runs one by one, each with its arguments.",
                field="arguments",
            )
        return await self._runs.encoded_for_requeue(actor, run_ids[0], arguments)

    async def raise_unless_moved(self, actor: Actor, moved: Moved, verb: str) -> None:
        """For those who meant one run: it is not dead, and where it is instead says who got there first."""
        for run_id in moved.skipped:
            await self._runs.raise_if_key_is_held(actor, run_id)
            run = await self._runs.find_confirmed(actor, run_id)
            raise RunNotDead(
                f"Run {run_id} is {run.state}; only a dead run can be {verb}.",
                hint=f"See what happened to it: mainspring run show {run_id}",
                run_id=str(run_id),
                state=run.state.value,
            )

    async def _move(
        self,
        run_ids: Iterable[UUID | str],
        move: Callable[[Connection, int, list[UUID]], Awaitable[list[UUID]]],
    ) -> Moved:
        wanted = list(dict.fromkeys(self._runs.parse(each) for each in run_ids))
        if len(wanted) > MOST_AT_ONCE:
            raise InvalidInput(
                f"{len(wanted):,} runs at once; at most {MOST_AT_ONCE:,} are allowed.",
                code="too-many-runs",
                hint="Choose them by a filter instead: that makes an operation, which works in batches.",
                field="id",
            )
        done = set(await uncancelled(self._database.repaired(partial(self._move_all, wanted, move))))
        return Moved([each for each in wanted if each in done], [each for each in wanted if each not in done])

    async def _move_all(
        self, wanted: list[UUID], move: Callable[[Connection, int, list[UUID]], Awaitable[list[UUID]]]
    ) -> list[UUID]:
        done: list[UUID] = []
        async with self._database.acquire() as connection, transaction(connection):
            for lane, some in by_lane(wanted):
                moved = await move(connection, lane, some)
                done += moved
                if len(moved) < len(some):
                    await confirm_at_commit(connection, lane)  # that they are not dead was found, not written
        return done


def act_of(actor: Actor, reason: str, *, changed: Sequence[str] = ()) -> dead.Act:
    """An act as the audit keeps it."""
    detail = {"reason": rules.checked_reason(reason)} | ({"changed": list(changed)} if changed else {})
    return dead.Act(actor.tenant, actor.name, msgspec.json.encode(detail).decode())


async def requeue_in_lane(
    connection: Connection,
    lane: int,
    run_ids: list[UUID],
    act: dead.Act,
    *,
    payload: bytes | None = None,
    max_age: float | None = None,
) -> list[UUID]:
    """Requeue within the caller's transaction, and wake whoever may claim them when it commits."""
    codec = None if payload is None else JSON_CODEC
    rows = await dead.requeue(connection, lane, run_ids, act, payload=payload, codec=codec, max_age=max_age)
    lines = dict.fromkeys((row["line_id"], row["priority"]) for row in rows)
    notify.send(connection, [notify.ready(lane, line, priority) for line, priority in lines])
    return [row["id"] for row in rows]
