"""Accepting runs: in bulk by COPY, everything that needs a decision by the SQL function `submit`.

The same function serves a caller's own connection, so there is one implementation of keys, delays and ages.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec
from asyncpg.pgproto.pgproto import UUID as FastUUID  # encoded and decoded in C; a subclass of uuid.UUID

from mainspring.model.ids import lane_of, run_id_bytes
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from mainspring.model.run import NewRun
    from mainspring.store.database import Connection

# The statement a caller's connection runs; drivers differ only in how they write a parameter. It travels as text: as
# jsonb it would pass through whatever codec the caller has set for that.
SUBMIT = "select ordinal, run_id, verdict from mainspring.submit({}::text::jsonb, {}::text[])"
NO_RUN = UUID(int=0)

_COPIED = (
    "lane",
    "id",
    "tenant_id",
    "job_id",
    "job_version",
    "line_id",
    "priority",
    "payload",
    "codec",
    "headers",
    "tags",
    "submitted_by",
)


class Verdict(NamedTuple):
    """What became of one item: `new`, `same` (the key was used for this very run), `conflict` or `gone`.

    Gone: the key was forgotten while we looked, so nothing was accepted and there is no run; submit it once more.
    """

    ordinal: int
    run_id: UUID
    verdict: str


def new_run_ids(count: int, lane: int, now: datetime) -> list[UUID]:
    return [FastUUID(each) for each in run_id_bytes(count, lane, now)]


async def copy_plain(connection: Connection, tenant_id: int, ids: Sequence[UUID], runs: Sequence[NewRun]) -> None:
    """Accept plain runs of one lane (see `NewRun.is_plain`)."""
    lane = lane_of(ids[0])
    await connection.copy_records_to_table(
        "ready",
        columns=_COPIED,
        records=[(lane, run_id, tenant_id, *run[:9]) for run_id, run in zip(ids, runs, strict=True)],
    )


async def submit_items(
    connection: Connection,
    tenant_id: int,
    ids: Sequence[UUID],
    runs: Sequence[NewRun],
    wake_ups: Sequence[str],
) -> list[Verdict]:
    rows = await connection.fetch(SUBMIT.format("$1", "$2"), items_as_json(tenant_id, ids, runs), list(wake_ups))
    return verdicts(rows)


def items_as_json(tenant_id: int, ids: Sequence[UUID], runs: Sequence[NewRun]) -> str:
    """The argument of `submit`: plain JSON, so that every driver can pass it."""
    items = [
        _item(ordinal, tenant_id, run_id, run) for ordinal, (run_id, run) in enumerate(zip(ids, runs, strict=True))
    ]
    return msgspec.json.encode(items).decode()


def _item(ordinal: int, tenant_id: int, run_id: UUID, run: NewRun) -> dict[str, Any]:
    return {
        "ordinal": ordinal,
        "lane": lane_of(run_id),
        "id": str(run_id),
        "tenant_id": tenant_id,
        "job_id": run.job_id,
        "job_version": run.job_version,
        "line_id": run.line_id,
        "priority": run.priority,
        "at": run.at,
        "delay": run.delay,
        "max_age": run.max_age,
        "start_within": run.start_within,
        "overrides": None if run.overrides is None else msgspec.Raw(run.overrides.encode()),
        "codec": run.codec,
        "payload": base64.b64encode(run.payload).decode(),
        "headers": None if run.headers is None else msgspec.Raw(run.headers.encode()),
        "tags": run.tags,
        "key": run.key,
        "digest": None if run.digest is None else base64.b64encode(run.digest).decode(),
        "submitted_by": run.submitted_by,
    }


def verdicts(rows: Iterable[Any]) -> list[Verdict]:
    return sorted(Verdict(row[0], NO_RUN if row[1] is None else UUID(str(row[1])), row[2]) for row in rows)


async def any_accepted(connection: Connection, run_id: UUID) -> bool:
    """Whether a run is anywhere: for a submission whose COMMIT went unanswered. All of a batch are, or none."""
    found = await load("runs/exists").fetchval(connection, lane=lane_of(run_id), run=run_id)
    return bool(found)


async def end_backend(connection: Connection, name: str) -> None:
    """Make sure that a connection we lost cannot commit any more, and wait until it is gone."""
    await load("runs/end_backend").fetch(connection, name=f"mainspring {name}")
