"""Queues and workers as people handle them: see how they do, pause and resume, drain."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.errors import WorkerNotFound
from mainspring.model.capacity import checked_marks, pressure_of
from mainspring.model.job import checked_name, checked_reason
from mainspring.model.payload import quoted
from mainspring.store import jobs, marks, notify, queues, workers
from mainspring.store.confirming import REGISTRATIONS_LANE, confirm_at_commit
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from mainspring.model.actor import Actor
    from mainspring.model.capacity import Pressure, Queue
    from mainspring.model.worker import WorkerSummary
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database


class Queues:
    """Shows queues, pauses and resumes them."""

    def __init__(self, *, database: Database, lanes: int) -> None:
        self._database = database
        self._lanes = lanes

    async def list(self, actor: Actor) -> list[Queue]:
        """Every queue: what waits in line and for its time, since when, how fast it moves, how many slots it wants."""
        async with self._database.acquire() as connection:
            return await queues.queues(connection, tenant_id=actor.tenant)

    async def pause(self, actor: Actor, name: str, *, reason: str = "") -> bool:
        """Nothing of this queue is claimed any more; what runs goes on. False when it was paused before."""
        return await uncancelled(self._pause(actor, name, checked_reason(reason)))

    async def _pause(self, actor: Actor, name: str, reason: str) -> bool:
        async with self._database.acquire() as connection:
            await _check_exists(connection, actor, name)
            async with transaction(connection):
                await confirm_at_commit(connection, REGISTRATIONS_LANE)  # it may have been paused before
                return await queues.pause(connection, name, tenant_id=actor.tenant, actor=actor.name, reason=reason)

    async def resume(self, actor: Actor, name: str, *, reason: str = "") -> bool:
        """What waits there is claimed again, at once. False when it was not paused."""
        return await uncancelled(self._resume(actor, name, checked_reason(reason)))

    async def _resume(self, actor: Actor, name: str, reason: str) -> bool:
        async with self._database.acquire() as connection:
            await _check_exists(connection, actor, name)
            async with transaction(connection):
                await confirm_at_commit(connection, REGISTRATIONS_LANE)
                resumed = await queues.resume(connection, name, tenant_id=actor.tenant, actor=actor.name, reason=reason)
                lines = await jobs.all_lines_of(connection, name, tenant_id=actor.tenant)
                notify.send(connection, [notify.ready(lane, line, 0) for lane in range(self._lanes) for line in lines])
            return resumed

    async def pressure(self, actor: Actor, name: str) -> Pressure:
        """How much is in line, against the queue's marks, and in how long it is worked off: ask before adding more."""
        async with self._database.acquire() as connection:
            await _check_exists(connection, actor, name)
            lines = await marks.pressure(connection, name, tenant_id=actor.tenant)
            own = await jobs.all_lines_of(connection, name, tenant_id=actor.tenant)
            rates = [await queues.finished_per_s(connection, line) for line in own]
            scheduled, promoted = await queues.later_of(connection, name, tenant_id=actor.tenant)
        known = [rate for rate in rates if rate is not None]
        finished = sum(known) if known else None
        return pressure_of(name, lines, finished, scheduled=scheduled, promoted_per_s=promoted)

    async def set_marks(
        self, actor: Actor, name: str, *, high: int | None = None, low: int | None = None, reason: str = ""
    ) -> None:
        """How many runs of each priority may be in line before those that become due wait; and when they go on.

        They go on when the line is down to the low mark, half of the high one unless told. Without marks: as always.
        What is submitted for now always comes in line.
        """
        await uncancelled(self._set_marks(actor, name, *checked_marks(high, low), checked_reason(reason)))

    async def _set_marks(self, actor: Actor, name: str, high: int | None, low: int | None, reason: str) -> None:
        async with self._database.acquire() as connection:
            await _check_exists(connection, actor, name)
            async with transaction(connection):
                await marks.set_marks(
                    connection, name, high, low, tenant_id=actor.tenant, actor=actor.name, reason=reason
                )


class Workers:
    """Shows workers and drains them."""

    # Not by tenant: a worker is a process of the installation, and its row names none. What is written down about a
    # drain is the tenant's of whoever asked for it.

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def list(self, actor: Actor, *, ended_within: float = 3_600.0) -> list[WorkerSummary]:
        """Every worker that lives or ended lately, in the whole installation."""
        async with self._database.acquire() as connection:
            return await workers.list_workers(connection, ended_within)

    async def drain(self, actor: Actor, worker_id: UUID | str, *, reason: str = "") -> None:
        """Ask a worker to claim nothing more, finish what it runs within its grace, and end for good."""
        found, reason = _parsed(worker_id), checked_reason(reason)
        if found is None or not await uncancelled(self._drain(actor, found, reason)):
            raise WorkerNotFound(
                f"There is no live worker {quoted(str(worker_id))}.",
                hint="`mainspring worker list` shows those there are.",
                field="worker",
                value=quoted(str(worker_id)),
            )

    async def _drain(self, actor: Actor, worker_id: UUID, reason: str) -> bool:
        async with self._database.acquire() as connection, transaction(connection):
            return await workers.request_drain(
                connection, worker_id, tenant_id=actor.tenant, actor=actor.name, reason=reason
            )


def _parsed(worker_id: UUID | str) -> UUID | None:
    try:
        return worker_id if isinstance(worker_id, UUID) else UUID(worker_id)
    except ValueError:
        return None


async def _check_exists(connection: Connection, actor: Actor, name: str) -> None:
    jobs.line_of(await jobs.lines_of(connection, tenant_id=actor.tenant), checked_name(name, "queue"))
