"""A run as people see it, put together from its place, its history and its audit."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from mainspring.model.chain import triggered_by
from mainspring.model.fan_out import above
from mainspring.model.headers import read_headers
from mainspring.model.lifecycle import Outcome, State
from mainspring.model.payload import decode
from mainspring.model.run import Attempt, Run, Transition
from mainspring.model.unique import shown, unique_key_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.line import Line
    from mainspring.model.report import Progress
    from mainspring.store.connection import Record


def as_run(
    run_id: UUID,
    row: Record | None,
    attempts: list[Record],
    acts: list[Record],
    *,
    progress: Progress | None,
    job: str,
    line: Line,
    lacks: str | None,
    children: Sequence[ChildStatus] = (),
) -> Run:
    latest = row if row is not None else attempts[-1]
    tries = [_as_attempt(each) for each in attempts]
    payload, headers = latest["payload"], read_headers(latest["headers"])
    unique_key = unique_key_in(latest["headers"])
    return Run(
        id=run_id,
        job=job,
        job_version=latest["job_version"],
        queue=line.queue,
        labels=list(line.labels),
        delivery=line.delivery,
        lacks=lacks,
        state=State(latest["state"]),
        priority=latest["priority"],
        attempts_spent=row["attempt"] if row is not None else max(each.number for each in tries),
        fence=latest["fence"],
        revision=row["revision"] if row is not None else 0,
        payload=None if payload is None else decode(payload, latest["codec"]),
        tags=list(latest["tags"] or ()),
        due_at=latest["due_at"],
        submitted_at=latest["submitted_at"],
        submitted_by=latest["submitted_by"],
        idempotency_key=latest["idempotency_key"],
        unique_key=None if unique_key is None else shown(unique_key),
        expires_at=row["expires_at"] if row is not None else None,
        retry_until=row["retry_until"] if row is not None else None,
        overrides={} if row is None or row["overrides"] is None else msgspec.json.decode(row["overrides"]),
        held_for=row["reason"] if row is not None else None,
        is_cancelling=bool(row["is_cancelling"]) if row is not None else False,
        worker_id=latest["worker_id"],
        rerun_of=_rerun_of(headers),
        triggered_by=triggered_by(headers),
        child_of=next(iter(above(latest["headers"])), None),
        children=children,
        progress=progress,
        headers=headers,
        attempts=tries,
        transitions=_transitions(row, latest["submitted_at"], tries, acts),
    )


def _rerun_of(headers: Mapping[str, str]) -> UUID | None:
    """Which run this one repeats: it travels with the run, like its trace."""
    original = headers.get("rerun_of")
    try:
        return None if original is None else UUID(original)
    except (ValueError, TypeError, AttributeError):
        return None  # not ours


def _as_attempt(row: Record) -> Attempt:
    return Attempt(
        number=row["attempt"],
        fence=row["fence"],
        outcome=Outcome(row["outcome"]),
        state=State(row["state"]),
        ready_at=row["ready_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        recorded_at=row["recorded_at"],
        worker_id=row["worker_id"],
        error=None if row["error"] is None else msgspec.json.decode(row["error"]),
        result=None if row["result"] is None else decode(row["result"]),
    )


def _transitions(
    row: Record | None, submitted_at: datetime, attempts: list[Attempt], acts: list[Record]
) -> list[Transition]:
    """What happened, in order: derived from history, audit and the present place; stored nowhere else."""
    moves = [Transition(at=submitted_at, what="submitted")]
    for each in attempts:
        if each.ready_at is not None:
            moves.append(Transition(at=each.ready_at, what=State.READY.value))
        if each.claimed_at is not None:
            moves.append(Transition(at=each.claimed_at, what=State.RUNNING.value, detail=f"fence {each.fence}"))
        moves.append(Transition(at=each.finished_at or each.recorded_at, what=each.state.value, detail=_detail(each)))
    moves += [Transition(at=act["at"], what=act["action"], detail=_who_and_why(act)) for act in acts]
    if row is not None:
        if row["ready_at"] is not None:
            moves.append(Transition(at=row["ready_at"], what=State.READY.value))
        if row["state"] == State.RUNNING:
            moves.append(Transition(at=row["claimed_at"], what=State.RUNNING.value, detail=f"fence {row['fence']}"))
        elif row["state"] == State.HELD:
            moves.append(Transition(at=row["since"], what=State.HELD.value, detail=row["reason"]))
    # What somebody did comes before what came of it in the same transaction.
    return sorted(moves, key=lambda move: (move.at, not move.what.startswith("run.")))


def _who_and_why(act: Record) -> str:
    reason = msgspec.json.decode(act["detail"]).get("reason")
    return f"by {act['actor']}: {reason}" if reason else f"by {act['actor']}"


def _detail(attempt: Attempt) -> str:
    what = f"attempt {attempt.number} {attempt.outcome}" if attempt.number else attempt.outcome.value
    message = (attempt.error or {}).get("message", "")
    return f"{what}: {message.splitlines()[0]}" if message else what
