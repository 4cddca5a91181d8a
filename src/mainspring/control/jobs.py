"""The jobs there are: what they say about themselves, and how many of their runs are where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.model.job import MAX_NAME_LENGTH, checked_text
from mainspring.model.lifecycle import State
from mainspring.model.listing import checked_limit
from mainspring.store import jobs, lists
from mainspring.store.connection import snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

BOUND = 1_000  # per lane and line: counting a backlog of millions would take long, and say little more
COUNTED = (State.READY, State.SCHEDULED, State.HELD, State.DEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as people see it."""

    name: str
    version: int
    queue: str
    created_at: datetime
    changed_at: datetime
    definition: dict[str, Any]
    counts: dict[State, int]
    is_more: bool  # some of the counts are lower bounds


class Jobs:
    """Shows the jobs there are."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes

    async def find(self, actor: Actor, name: str) -> JobSummary:
        """A job by its name: its newest definition, and how many of its runs are where."""
        async with self._database.acquire() as connection, snapshot(connection):
            await jobs.find(connection, name, tenant_id=actor.tenant)  # raises if there is none
            return (await self._read(connection, actor, names=[name], count=1))[0]

    async def list(self, actor: Actor, *, after: str = "", limit: int = 100) -> Sequence[JobSummary]:
        """Jobs in the order of their names, after the given one."""
        count = checked_limit(limit)
        if after:
            checked_text(after, "after", MAX_NAME_LENGTH)
        async with self._database.acquire() as connection, snapshot(connection):
            return await self._read(connection, actor, after=after, count=count)

    async def _read(
        self,
        connection: Connection,
        actor: Actor,
        *,
        names: Sequence[str] | None = None,
        after: str = "",
        count: int,
    ) -> Sequence[JobSummary]:
        rows = await jobs.latest(connection, names, after, count, tenant_id=actor.tenant)
        await lists.begin(connection)
        counts = await lists.counts(connection, self._lanes, [row["id"] for row in rows], BOUND, tenant_id=actor.tenant)
        return [
            JobSummary(
                name=row["name"],
                version=row["version"],
                queue=(definition := msgspec.json.decode(row["definition"])).get("queue", "default"),
                created_at=row["created_at"],
                changed_at=row["changed_at"],
                definition=definition,
                counts={state: counts[row["id"]].get(state.value, 0) for state in (*COUNTED, State.RUNNING)},
                is_more=bool(counts[row["id"]].get("is_more")),
            )
            for row in rows
        ]
