"""The ledger of a schedule's past, for backfills: which instants became runs, and making runs of those that did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.store.schedule_firing import template_document
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection


class Instant(NamedTuple):
    """An instant that has passed, and the run it shall become."""

    nominal_at: datetime
    due_at: datetime  # when it would have been due
    previous_at: datetime | None
    run_id: UUID
    version: int  # of the schedule
    template: int  # which of the templates the run follows


async def runs_at(
    connection: Connection, lane: int, schedule_id: UUID, instants: Sequence[datetime]
) -> dict[datetime, UUID]:
    """The runs of those of these instants that have one."""
    rows = await load("schedules/occurrences_at").fetch(
        connection, lane=lane, schedule=schedule_id, instants=list(instants)
    )
    return {row["nominal_at"]: row["run_id"] for row in rows}


async def reruns(connection: Connection, lane: int, run_ids: Sequence[UUID], *, tenant_id: int) -> dict[UUID, UUID]:
    """What was last made of those of these runs that were run again as new ones."""
    rows = await load("schedules/reruns").fetch(connection, lane=lane, runs=list(run_ids), tenant=tenant_id)
    return {row["run_id"]: row["rerun"] for row in rows}


async def backfill(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    instants: Sequence[Instant],
    templates: Sequence[NewRun],
    *,
    tenant_id: int,
    actor: str,
    operation_id: UUID,
) -> set[UUID]:
    """Make a run of each instant that has none; answers with the runs that were made."""
    names = ("instants", "due", "previous", "runs", "versions", "chosen")
    columns = dict(zip(names, zip(*instants, strict=True), strict=True))
    rows = await load("schedules/backfill").fetch(
        connection,
        lane=lane,
        schedule=schedule_id,
        tenant=tenant_id,
        templates=msgspec.json.encode([template_document(each) for each in templates]).decode(),
        actor=actor,
        operation=operation_id,
        **columns,
    )
    return {row["run_id"] for row in rows}
