"""Everything at a glance: queues, workers, schedulers, lateness, failures. What `mainspring top` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mainspring.control.schedulers import FiringStatus, firing
from mainspring.store import health, queues, workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mainspring.model.actor import Actor
    from mainspring.model.capacity import Queue
    from mainspring.model.worker import WorkerSummary
    from mainspring.store.connection import Connection, Record

COUNTED = 10_000  # counts beyond it are cut: counting a backlog of millions would slow its workers
WINDOW_SECONDS = 300.0
SAMPLED = 100  # attempts per job and lane whose lateness is looked at
FAILURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    run_id: str
    job: str
    outcome: str
    state: str
    at: datetime
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    at: datetime
    counts: dict[str, int]
    queues: list[Queue]
    workers: list[WorkerSummary]
    firing: FiringStatus
    lateness_p50: float | None
    lateness_p95: float | None
    failures: list[Failure]


async def overview(connection: Connection, actor: Actor, lanes: int) -> Overview:
    counts = dict(await health.activity(connection, lanes, COUNTED, tenant_id=actor.tenant))
    at = counts.pop("now")
    late = await health.lateness(connection, WINDOW_SECONDS, SAMPLED, tenant_id=actor.tenant)
    failures = await health.failures(connection, WINDOW_SECONDS, FAILURES, tenant_id=actor.tenant)
    return Overview(
        at=at,
        counts={name: int(count) for name, count in counts.items()},
        queues=await queues.queues(connection, tenant_id=actor.tenant),
        workers=await workers.list_workers(connection, WINDOW_SECONDS),
        firing=await firing(connection, lanes),
        lateness_p50=_percentile(late, 0.5),
        lateness_p95=_percentile(late, 0.95),
        failures=[_failure(row) for row in failures],
    )


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _failure(row: Record) -> Failure:
    error = msgspec.json.decode(row["error"]) if row["error"] else {}
    kind, message = error.get("type") or error.get("code") or "", error.get("message") or ""
    return Failure(
        run_id=str(row["run_id"]),
        job=row["job"],
        outcome=row["outcome"],
        state=row["state"],
        at=row["recorded_at"],
        error=f"{kind}: {message}" if kind and message else kind or message,
    )
