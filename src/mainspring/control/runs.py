"""Single runs: find, cancel, change. Someone may move a run while we look; then we look again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.control.assembling import as_run
from mainspring.errors import (
    Conflict,
    InvalidInput,
    OutcomeUnknown,
    RevisionConflict,
    RunAlreadyEnded,
    RunAlreadyStarted,
    RunNotFound,
    StoreError,
)
from mainspring.model import job as rules
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of, parse_run_id
from mainspring.model.lifecycle import WAITING, State
from mainspring.model.line import Line
from mainspring.model.payload import JSON_CODEC
from mainspring.model.report import Progress
from mainspring.store import history, jobs, notify, reports, workers
from mainspring.store import runs as store
from mainspring.store.confirming import confirm
from mainspring.store.connection import snapshot, transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.model.run import Run
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

LOOKS = 20  # how often to look again for a run that moves under our eyes; each look is a new snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What to change about a waiting run; None leaves things as they are."""

    priority: int | None = None
    queue: str | None = None
    payload: bytes | None = None
    tags: Iterable[str] | None = None
    at: datetime | None = None
    max_age: timedelta | float | None = None


def checked(changes: Changes) -> dict[str, Any]:
    """What is to be changed, as the store takes it; refuses what breaks a rule."""
    values: dict[str, Any] = {}
    if changes.priority is not None:
        values["priority"] = rules.checked_priority(changes.priority)
    if changes.queue is not None:
        values["line"] = rules.checked_name(changes.queue, "queue")
    if changes.payload is not None:
        values |= {"payload": changes.payload, "codec": JSON_CODEC}
    if changes.tags is not None:
        values["tags"] = rules.checked_tags(changes.tags) or []
    if changes.at is not None:
        values["due_at"] = rules.checked_at(changes.at)
    if changes.max_age is not None:
        values["max_age"] = rules.checked_max_age(changes.max_age)
    if not values:
        raise InvalidInput(
            "Nothing to change was given.",
            code="nothing-to-change",
            hint="Give at least one of priority, queue, payload, tags, at, max_age.",
        )
    return values


class Runs:
    """Acts on single runs of one tenant."""

    def __init__(self, *, database: Database, lanes: int, tenant_id: int = DEFAULT_TENANT) -> None:
        self._database = database
        self._lanes = lanes
        self._tenant_id = tenant_id

    # ── find ────────────────────────────────────────────────────────────────────────────────────────────────

    async def find(self, run_id: UUID | str) -> Run:
        """A run wherever it is, with its attempts and transitions."""
        parsed = self.parse(run_id)
        async with self._database.acquire() as connection:
            row, attempts, acts = await _read(connection, parsed, self._tenant_id)
            progress = None if row is None else await reports.progress_of(connection, parsed)
            if row is None and not attempts:
                raise not_found(parsed)
            latest = row if row is not None else attempts[-1]
            names = await jobs.names_of(connection, [latest["job_id"]], tenant_id=self._tenant_id)
            line = await self._line(connection, latest["line_id"])
            lacks = await _lacks(connection, line) if latest["state"] == State.READY else None
        return as_run(
            parsed,
            row,
            attempts,
            acts,
            progress=None if progress is None else Progress(**progress),
            job=names.get(latest["job_id"], "?"),
            line=line,
            lacks=lacks,
        )

    async def find_confirmed(self, run_id: UUID | str) -> Run:
        """The same, once the standby has what was found: for answers that somebody acts upon."""
        run = await self.find(run_id)
        async with self._database.acquire() as connection:
            await confirm(connection, [lane_of(run.id)])
        return run

    async def _line(self, connection: Connection, number: int) -> Line:
        known = await jobs.lines(connection, tenant_id=self._tenant_id)
        return next((line for line, each in known.items() if each == number), Line("?"))

    def parse(self, run_id: UUID | str) -> UUID:
        """A run id as it was given; one of a lane that is not there names no run of ours."""
        parsed = parse_run_id(run_id)
        if lane_of(parsed) >= self._lanes:
            raise not_found(parsed)
        return parsed

    # ── cancel ──────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, run_id: UUID | str, *, reason: str = "", actor: str) -> State:
        """End a waiting run at once, ask a running one to stop; answers with the state it is in now."""
        parsed = self.parse(run_id)
        reason = rules.checked_reason(reason)
        return await uncancelled(self._database.repaired(partial(self._cancel, parsed, reason, actor)))

    async def _cancel(self, run_id: UUID, reason: str, actor: str) -> State:
        async with self._database.acquire() as connection:
            for _ in range(LOOKS):
                async with transaction(connection):
                    ended = await store.cancel_waiting(
                        connection, lane_of(run_id), [run_id], tenant_id=self._tenant_id, actor=actor, reason=reason
                    )
                if ended:
                    return State.CANCELLED
                async with transaction(connection):
                    worker = await store.request_cancel(
                        connection, run_id, tenant_id=self._tenant_id, actor=actor, reason=reason
                    )
                    if worker is not None:
                        notify.send(connection, [notify.cancel(worker)])
                        return State.RUNNING
                await self._raise_if_settled(connection, run_id, "cancel")
        raise _restless(run_id)

    async def _raise_if_settled(self, connection: Connection, run_id: UUID, verb: str) -> Record | None:
        """Raise if the run can no longer be acted upon; answers with where it is, if anywhere."""
        row, attempts, _ = await _read(connection, run_id, self._tenant_id)
        if row is None and not attempts:
            raise not_found(run_id)
        state = State(row["state"]) if row is not None else State(attempts[-1]["state"])
        if row is None or state is State.DEAD:
            await confirm(connection, [lane_of(run_id)])
            raise RunAlreadyEnded(
                f"Run {run_id} is {state}; there is nothing to {verb}.", run_id=str(run_id), state=state.value
            )
        return row

    # ── change ──────────────────────────────────────────────────────────────────────────────────────────────

    async def change(self, run_id: UUID | str, changes: Changes, *, revision: int | None = None, actor: str) -> Run:
        """Change a waiting run wherever it waits, if its revision is still the given one (or whatever it is now)."""
        parsed, values = self.parse(run_id), checked(changes)
        await uncancelled(self._change(parsed, values, revision, actor))
        try:
            return await self.find(parsed)
        except StoreError as error:
            raise OutcomeUnknown(
                f"Run {parsed} was changed, but could not be read afterwards ({error.message}).",
                hint="Look at it again; there is nothing to repeat.",
                run_id=str(parsed),
            ) from error

    async def _change(self, run_id: UUID, values: dict[str, Any], revision: int | None, actor: str) -> None:
        detail = msgspec.json.encode({"changed": sorted(values)}).decode()
        async with self._database.acquire() as connection:
            for _ in range(LOOKS):
                row = await self._raise_if_settled(connection, run_id, "change")
                assert row is not None
                if (objection := _objection(run_id, row, revision)) is not None:
                    await confirm(connection, [lane_of(run_id)])
                    raise objection
                with_line = await self.with_line(connection, values, row["line_id"])
                if await self._change_and_wake(connection, run_id, row["revision"], with_line, actor, detail):
                    return
        raise _restless(run_id)

    async def with_line(self, connection: Connection, values: dict[str, Any], present: int) -> dict[str, Any]:
        """Another queue is another line; what it requires of a worker and how it is delivered stays."""
        if "line" not in values:
            return values
        line = (await self._line(connection, present))._replace(queue=values["line"])
        number, _ = await jobs.line_in_known_queue(connection, line, tenant_id=self._tenant_id)
        return values | {"line": number}

    async def _change_and_wake(
        self,
        connection: Connection,
        run_id: UUID,
        revision: int,
        values: dict[str, Any],
        actor: str,
        detail: str,
    ) -> bool:
        async with transaction(connection):
            changed = await store.change(
                connection,
                lane_of(run_id),
                [run_id],
                values,
                tenant_id=self._tenant_id,
                revision=revision,
                actor=actor,
                detail=detail,
            )
            await wake_changed(connection, lane_of(run_id), changed)
        return bool(changed)


async def wake_changed(connection: Connection, lane: int, changed: list[Record]) -> None:
    """Wake whoever may start what was changed, when the caller's transaction commits."""
    wake_ups = (
        notify.ready(lane, row["line_id"], row["priority"]) if row["state"] == State.READY else notify.later()
        for row in changed
    )
    notify.send(connection, list(dict.fromkeys(wake_ups)))


async def _read(
    connection: Connection, run_id: UUID, tenant_id: int
) -> tuple[Record | None, list[Record], list[Record]]:
    """Place, history and audit of a run in one snapshot: between two, it could slip from one into the other."""
    async with snapshot(connection):
        return (
            await store.find(connection, run_id, tenant_id=tenant_id),
            await history.attempts_of(connection, run_id, tenant_id=tenant_id),
            await history.acts_on(connection, run_id, tenant_id=tenant_id),
        )


async def _lacks(connection: Connection, line: Line) -> str | None:
    """Why nobody will start a run of this line, as far as the workers that live say."""
    has_queue, has_labels = await workers.serving(connection, line)
    if not has_queue:
        return f"no live worker serves queue {line.queue}"
    return None if has_labels else f"no live worker has labels {', '.join(line.labels)}"


def _objection(run_id: UUID, row: Record, revision: int | None) -> Conflict | None:
    """What to say if a run no longer waits, or is not at the revision that the caller saw."""
    if row["state"] not in WAITING:
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


def not_found(run_id: UUID) -> RunNotFound:
    return RunNotFound(
        f"There is no run {run_id}.",
        hint="Check the id, and that this is the database it was submitted to.",
        run_id=str(run_id),
    )


def _restless(run_id: UUID) -> Conflict:
    return Conflict(f"Run {run_id} kept moving while we tried to act on it.", code="run-busy", hint="Try again.")
