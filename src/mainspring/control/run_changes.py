"""What changing a run takes: values that keep the rules, another line, whom to wake, and why it may be too late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import Conflict, InvalidInput, RevisionConflict, RunAlreadyStarted
from mainspring.model import job as rules
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import WAITING, HoldReason, State
from mainspring.model.line import Line
from mainspring.model.payload import JSON_CODEC
from mainspring.store import jobs, notify
from mainspring.store import runs as store
from mainspring.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection, Record


def checked_changes(
    *,
    payload: bytes | None = None,
    priority: int | None = None,
    queue: str | None = None,
    tags: Iterable[str] | None = None,
    at: datetime | None = None,
    max_age: timedelta | float | None = None,
) -> dict[str, Any]:
    """What is to be changed, as the store takes it; None leaves things as they are. Refuses what breaks a rule."""
    values = {
        "priority": None if priority is None else rules.checked_priority(priority),
        "line": None if queue is None else rules.checked_name(queue, "queue"),
        "payload": payload,
        "codec": None if payload is None else JSON_CODEC,
        "tags": None if tags is None else rules.checked_tags(tags) or [],
        "due_at": rules.checked_at(at),
        "max_age": rules.checked_max_age(max_age),
    }
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        raise InvalidInput(
            "Nothing to change was given.",
            code="nothing-to-change",
            hint="Give at least one of arguments, priority, queue, tags, at, max_age.",
        )
    return given


async def changed_line(connection: Connection, actor: Actor, values: dict[str, Any], present: int) -> dict[str, Any]:
    """Another queue is another line; what it requires of a worker and how it is delivered stays."""
    if "line" not in values:
        return values
    line = (await line_of(connection, present, actor.tenant))._replace(queue=values["line"])
    number, _ = await jobs.line_in_known_queue(connection, line, tenant_id=actor.tenant)
    return values | {"line": number}


async def change_and_wake(
    connection: Connection, actor: Actor, run_id: UUID, revision: int, values: dict[str, Any]
) -> bool:
    lane, detail = lane_of(run_id), msgspec.json.encode({"changed": sorted(values)}).decode()
    async with transaction(connection):
        changed = await store.change(
            connection,
            lane,
            [run_id],
            values,
            tenant_id=actor.tenant,
            revision=revision,
            actor=actor.name,
            detail=detail,
        )
        await wake_changed(connection, lane, changed)
    return bool(changed)


async def wake_changed(connection: Connection, lane: int, changed: list[Record]) -> None:
    """Wake whoever may start what was changed, when the caller's transaction commits."""
    wake_ups = (
        notify.ready(lane, row["line_id"], row["priority"]) if row["state"] == State.READY else notify.later()
        for row in changed
    )
    notify.send(connection, list(dict.fromkeys(wake_ups)))


async def line_of(connection: Connection, number: int, tenant_id: int) -> Line:
    known = await jobs.lines(connection, tenant_id=tenant_id)
    return next((line for line, each in known.items() if each == number), Line("?"))


def objection_to_change(run_id: UUID, row: Record, revision: int | None) -> Conflict | None:
    """What to say if a run no longer waits, or is not at the revision that the caller saw."""
    if row["state"] not in WAITING or row["reason"] == HoldReason.CHILDREN:
        return RunAlreadyStarted(
            f"Run {run_id} has started; it can no longer be changed.",
            hint="Cancel it, or let it finish and submit another.",
            run_id=str(run_id),
        )
    if revision is not None and row["revision"] != revision:
        return RevisionConflict(
            f"Run {run_id} is at revision {row['revision']}, not {revision}: someone changed it meanwhile.",
            hint="Look at it again and repeat the change.",
            revision=row["revision"],
        )
    return None
