"""Single runs: find, cancel, change. Someone may move a run while we look; then we look again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring.control.assembling import as_run
from mainspring.control.run_changes import change_and_wake, changed_line, checked_changes, line_of, objection_to_change
from mainspring.control.unique_keys import check_same_key, conflict_of_dead
from mainspring.errors import (
    Conflict,
    OutcomeUnknown,
    RunAlreadyEnded,
    RunNotFound,
    StoreError,
)
from mainspring.model import job as rules
from mainspring.model.admission import objection_of_workers
from mainspring.model.fan_out import has_children
from mainspring.model.ids import lane_of, parse_run_id
from mainspring.model.lifecycle import State
from mainspring.model.report import Progress
from mainspring.store import fan_outs, history, jobs, notify, reports, workers
from mainspring.store import runs as store
from mainspring.store.confirming import confirm
from mainspring.store.connection import snapshot, transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.control.application import Application
    from mainspring.model.actor import Actor
    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.line import Line
    from mainspring.model.run import Run
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database

LOOKS = 20  # how often to look again for a run that moves under our eyes; each look is a new snapshot


class Runs:
    """Acts on single runs."""

    def __init__(self, *, database: Database, lanes: int, application: Application) -> None:
        self._database = database
        self._lanes = lanes
        self._application = application

    # ── find ────────────────────────────────────────────────────────────────────────────────────────────────

    async def find(self, actor: Actor, run_id: UUID | str) -> Run:
        """A run wherever it is, with its attempts and transitions."""
        parsed = self.parse(run_id)
        async with self._database.acquire() as connection:
            row, attempts, acts = await _read(connection, parsed, actor.tenant)
            progress = None if row is None else await reports.progress_of(connection, parsed)
            if row is None and not attempts:
                raise not_found(parsed)
            latest = row if row is not None else attempts[-1]
            names = await jobs.names_of(connection, [latest["job_id"]], tenant_id=actor.tenant)
            line = await line_of(connection, latest["line_id"], actor.tenant)
            job = names.get(latest["job_id"], "?")
            lacks = await _lacks(connection, line, job) if latest["state"] == State.READY else None
            children = await _children(connection, parsed, latest["headers"], actor.tenant)
        return as_run(
            parsed,
            row,
            attempts,
            acts,
            progress=None if progress is None else Progress(**progress),
            job=job,
            line=line,
            lacks=lacks,
            children=children,
        )

    async def find_confirmed(self, actor: Actor, run_id: UUID | str) -> Run:
        """The same, once the standby has what was found: for answers that somebody acts upon."""
        run = await self.find(actor, run_id)
        async with self._database.acquire() as connection:
            await confirm(connection, [lane_of(run.id)])
        return run

    def parse(self, run_id: UUID | str) -> UUID:
        """A run id as it was given; one of a lane that is not there names no run of ours."""
        parsed = parse_run_id(run_id)
        if lane_of(parsed) >= self._lanes:
            raise not_found(parsed)
        return parsed

    async def raise_if_key_is_held(self, actor: Actor, run_id: UUID) -> None:
        """For whoever wanted a dead run back: another one may hold its unique key."""
        async with self._database.acquire() as connection:
            row = await store.find(connection, run_id, tenant_id=actor.tenant)
            if row is not None and row["state"] == State.DEAD:
                conflict = await conflict_of_dead(connection, actor, run_id, row)
                if conflict is not None:
                    raise conflict

    async def encoded(self, actor: Actor, run_id: UUID | str, arguments: Mapping[str, Any] | None) -> bytes | None:
        """New arguments of a run as its payload, checked if the application defines its job."""
        if arguments is None:
            return None
        return self._application.encode(await self._job_of(actor, self.parse(run_id)), arguments)

    async def encoded_for_requeue(
        self, actor: Actor, run_id: UUID | str, arguments: Mapping[str, Any] | None
    ) -> bytes | None:
        """The same for a dead run that shall come back: with the unique key that it has."""
        payload, parsed = await self.encoded(actor, run_id, arguments), self.parse(run_id)
        if payload is not None:
            async with self._database.acquire() as connection:
                row = await store.find(connection, parsed, tenant_id=actor.tenant)
            if row is not None and row["state"] == State.DEAD:
                check_same_key(parsed, row, payload)
        return payload

    async def _job_of(self, actor: Actor, run_id: UUID) -> str:
        """Which job a run is of; its payload, which may not be readable here, is not looked at."""
        async with self._database.acquire() as connection:
            row, attempts, _ = await _read(connection, run_id, actor.tenant)
            if row is None and not attempts:
                raise not_found(run_id)
            job_id: int = (row if row is not None else attempts[-1])["job_id"]
            return (await jobs.names_of(connection, [job_id], tenant_id=actor.tenant)).get(job_id, "?")

    # ── cancel ──────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, actor: Actor, run_id: UUID | str, *, reason: str = "") -> State:
        """End a waiting run at once, ask a running one to stop; answers with the state it is in now."""
        parsed = self.parse(run_id)
        reason = rules.checked_reason(reason)
        return await uncancelled(self._database.repaired(partial(self._cancel, actor, parsed, reason)))

    async def _cancel(self, actor: Actor, run_id: UUID, reason: str) -> State:
        said: dict[str, Any] = {"tenant_id": actor.tenant, "actor": actor.name, "reason": reason}
        async with self._database.acquire() as connection:
            for _ in range(LOOKS):
                async with transaction(connection):
                    ended = await store.cancel_waiting(connection, lane_of(run_id), [run_id], **said)
                if ended:
                    return State.CANCELLED
                async with transaction(connection):
                    worker = await store.request_cancel(connection, run_id, **said)
                    if worker is not None:
                        notify.send(connection, [notify.cancel(worker)])
                        return State.RUNNING
                await _raise_if_settled(connection, actor, run_id, "cancel")
        raise _restless(run_id)

    # ── change ──────────────────────────────────────────────────────────────────────────────────────────────

    async def change(
        self,
        actor: Actor,
        run_id: UUID | str,
        *,
        revision: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        priority: int | None = None,
        queue: str | None = None,
        tags: Iterable[str] | None = None,
        at: datetime | None = None,
        max_age: timedelta | float | None = None,
    ) -> Run:
        """Change a waiting run, wherever it waits. With `revision`, only if nobody changed it since it was seen.

        New `arguments` are checked against the handler's signature if this application defines the job.
        """
        parsed = self.parse(run_id)
        payload = await self.encoded(actor, parsed, arguments)
        values = checked_changes(payload=payload, priority=priority, queue=queue, tags=tags, at=at, max_age=max_age)
        await uncancelled(self._change(actor, parsed, values, revision))
        try:
            return await self.find(actor, parsed)
        except StoreError as error:
            raise OutcomeUnknown(
                f"Run {parsed} was changed, but could not be read afterwards ({error.message}).",
                hint="Look at it again; there is nothing to repeat.",
                run_id=str(parsed),
            ) from error

    async def _change(self, actor: Actor, run_id: UUID, values: dict[str, Any], revision: int | None) -> None:
        async with self._database.acquire() as connection:
            for _ in range(LOOKS):
                row = await _raise_if_settled(connection, actor, run_id, "change")
                assert row is not None
                if (objection := objection_to_change(run_id, row, revision)) is not None:
                    await confirm(connection, [lane_of(run_id)])
                    raise objection
                check_same_key(run_id, row, values.get("payload"))
                with_line = await changed_line(connection, actor, values, row["line_id"])
                if await change_and_wake(connection, actor, run_id, row["revision"], with_line):
                    return
        raise _restless(run_id)


async def _raise_if_settled(connection: Connection, actor: Actor, run_id: UUID, verb: str) -> Record | None:
    """Raise if the run can no longer be acted upon; answers with where it is, if anywhere."""
    row, attempts, _ = await _read(connection, run_id, actor.tenant)
    if row is None and not attempts:
        raise not_found(run_id)
    state = State(row["state"]) if row is not None else State(attempts[-1]["state"])
    if row is None or state is State.DEAD:
        await confirm(connection, [lane_of(run_id)])
        raise RunAlreadyEnded(
            f"Run {run_id} is {state}; there is nothing to {verb}.", run_id=str(run_id), state=state.value
        )
    return row


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


async def _children(connection: Connection, run_id: UUID, headers: str | None, tenant_id: int) -> Sequence[ChildStatus]:
    """The children of a run, if it is marked as having some."""
    if not has_children(headers):
        return ()
    return (await fan_outs.children_of(connection, [run_id], tenant_id=tenant_id)).get(run_id, ())


async def _lacks(connection: Connection, line: Line, job: str) -> str | None:
    """Why nobody will start a run of this line, as far as the workers that live say."""
    objection = objection_of_workers(job, line, await workers.serving(connection, line.queue))
    return None if objection is None else objection.says


def not_found(run_id: UUID) -> RunNotFound:
    return RunNotFound(
        f"There is no run {run_id}.",
        hint="Check the id, and that this is the database it was submitted to.",
        run_id=str(run_id),
    )


def _restless(run_id: UUID) -> Conflict:
    return Conflict(f"Run {run_id} kept moving while we tried to act on it.", code="run-busy", hint="Try again.")
