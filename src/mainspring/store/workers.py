"""Workers: incarnations that send heartbeats, and what happens to the leases of those that stop."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID  # noqa: TC003  msgspec reads the annotations of BadEnd

import msgspec

from mainspring.model.admission import Holder
from mainspring.model.ids import HOMES, home_of, homes_from
from mainspring.model.lifecycle import MOST_CRASHES, State
from mainspring.model.worker import Server, WorkerState, WorkerSummary
from mainspring.store.connection import transaction
from mainspring.store.migrate import newest_known
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from mainspring.model.line import Line
    from mainspring.store.connection import Connection, Record


LEASES_AT_ONCE = 10
BRIEFLY = "200ms"


class Rescued(NamedTuple):
    """How many leases were taken apart, and what became of the runs in them: back in line, or ended otherwise."""

    leases: int = 0
    rescued: int = 0
    cancelled: int = 0
    lost: int = 0
    buried: int = 0


class BadEnd(NamedTuple):
    """A run that ended because its worker did: dead or lost, and why."""

    run_id: UUID
    job: str
    attempt: int
    state: State
    outcome: str
    error: str


def say_nothing(end: BadEnd) -> None:
    """Nobody has to know of it one by one."""


_bad_ends = msgspec.json.Decoder(list[BadEnd])


class Pulse(NamedTuple):
    """What a rescuer sees of a live worker."""

    worker_id: UUID
    beat: int
    lease_seconds: float
    beats_in_lane: bool = True  # programs before migration 21 beat in the worker's row


async def register(
    connection: Connection,
    *,
    worker_id: UUID,
    host: str,
    pid: int,
    queues: Sequence[str],
    handlers: Sequence[str],
    labels: Sequence[str] = (),
    slots: int,
    lease_seconds: float,
    version: str,
) -> None:
    async with transaction(connection):
        await load("workers/begin_heartbeats").execute(connection, lane=home_of(worker_id), worker=worker_id)
        await load("workers/register").execute(
            connection,
            worker=worker_id,
            host=host,
            pid=pid,
            queues=queues,
            handlers=handlers,
            labels=labels,
            slots=slots,
            lease_seconds=lease_seconds,
            version=version,
            knows=newest_known(),
        )


async def send_heartbeats(connection: Connection, worker_ids: Sequence[UUID]) -> dict[UUID, bool]:
    """Send heartbeats of these workers; answers with those that are still live, and whether they are to drain."""
    by_home = defaultdict(list)
    for worker_id in worker_ids:
        by_home[home_of(worker_id)].append(worker_id)
    rows = []
    for home, ids in by_home.items():  # those of one supervisor have one home
        lane = connection.reach.first(homes_from(home))
        rows += await load("workers/beat").fetch(connection, lane=lane, workers=ids)
    return {row["id"]: row["is_to_drain"] for row in rows}


async def request_drain(connection: Connection, worker_id: UUID, *, tenant_id: int, actor: str, reason: str) -> bool:
    """False when there is no such live worker."""
    asked = await load("workers/request_drain").fetchval(
        connection, worker=worker_id, tenant=tenant_id, actor=actor, reason=reason
    )
    return asked is not None


async def pulses(connection: Connection) -> list[Pulse]:
    return [Pulse(*row) for row in await load("workers/pulses").fetch(connection, lanes=HOMES)]


async def lose_if_silent(connection: Connection, worker_id: UUID, beat: int | None) -> bool:
    """Declare a worker lost unless it has sent a heartbeat since; None when its death is certain.

    Raises DatabaseBusy rather than wait behind a lock: what holds us back may hold its heartbeats back, too, and they
    must come first when it lets go.
    """
    async with transaction(connection):
        await _wait_briefly_for_locks(connection)
        if beat is not None:
            await load("workers/lock_heartbeat").execute(connection, lane=home_of(worker_id), worker=worker_id)
            beat -= await load("workers/count_heartbeats").fetchval(connection, lanes=HOMES, worker=worker_id)
        return await load("workers/lose").fetchval(connection, worker=worker_id, beat=beat) is not None


async def check_writable(connection: Connection) -> None:
    """Raise DatabaseBusy if a lock keeps heartbeats from coming: silence says nothing then."""
    async with transaction(connection):
        await _wait_briefly_for_locks(connection)
        await load("workers/check_writable").execute(connection)


async def check_writable_before(connection: Connection) -> None:
    """The same for workers of programs before migration 21."""
    async with transaction(connection):
        await _wait_briefly_for_locks(connection)
        await load("workers/check_writable_before").execute(connection)


async def _wait_briefly_for_locks(connection: Connection) -> None:
    await connection.execute("select set_config('lock_timeout', $1, true)", BRIEFLY)


async def tell_unsettled(
    connection: Connection, worker_id: UUID, unsettled: int, failing_seconds: float | None
) -> None:
    await load("workers/tell_unsettled").execute(
        connection,
        lane=home_of(worker_id),
        worker=worker_id,
        unsettled=unsettled,
        failing_seconds=failing_seconds,
    )


async def stop_if_live(connection: Connection, worker_id: UUID) -> bool:
    return await load("workers/stop").fetchval(connection, worker=worker_id) is not None


async def ended_with_leases(connection: Connection, lanes: int) -> list[UUID]:
    rows = await load("workers/lost").fetch(connection, lanes=connection.reach.lanes(range(lanes)))
    return [row["id"] for row in rows]


async def rescue(
    connection: Connection,
    lane: int,
    worker_id: UUID,
    count: int,
    note: Callable[[BadEnd], None] = say_nothing,
) -> Rescued:
    """Take the runs out of up to `count` leases of a lost worker in one lane. Repeat until it finds none.

    `note` is told of each that ended by it, except as someone wished.
    """
    row = await load("leases/rescue").fetchrow(
        connection, lane=lane, worker=worker_id, count=count, most_crashes=MOST_CRASHES
    )
    if row is None:
        return Rescued()
    *counts, bad_ends = row
    for end in _bad_ends.decode(bad_ends):
        note(end)
    return Rescued(*counts)


async def rescue_all(
    connection: Connection, lanes: int, worker_id: UUID, note: Callable[[BadEnd], None] = say_nothing
) -> Rescued:
    """Take everything out of a lost worker's leases, a few leases at a time."""
    total = Rescued()
    for lane in connection.reach.lanes(range(lanes)):
        while (some := await rescue(connection, lane, worker_id, LEASES_AT_ONCE, note)).leases:
            total = Rescued(*(sum(pair) for pair in zip(total, some, strict=True)))
    return total


async def prune(connection: Connection, lanes: int, older_than: timedelta, count: int) -> int:
    """Forget up to `count` workers that ended longer ago; answers how many. Should one of them still claim, its leases
    are rescued as those of a worker that ended."""
    kept = await ended_with_leases(connection, lanes)
    kept += [row["id"] for row in await load("workers/with_tallies").fetch(connection, lanes=HOMES)]
    rows = await load("workers/prune").fetch(connection, older_than=older_than, kept=kept, count=count)
    await load("workers/prune_heartbeats").execute(connection, lanes=HOMES, older_than=older_than)
    return len(rows)


async def list_workers(connection: Connection, ended_within: float) -> list[WorkerSummary]:
    """The living first, then those that ended so many seconds ago or later."""
    rows = await load("workers/list").fetch(connection, ended_within=ended_within)
    said = await load("workers/heartbeats").fetch(connection, lanes=HOMES, workers=[row["id"] for row in rows])
    heartbeats = {row["id"]: row for row in said}
    latest = [_with_later_heartbeat(row, heartbeats.get(row["id"])) for row in rows]
    return [WorkerSummary(**{**row, "state": WorkerState(row["state"])}) for row in latest]


def _with_later_heartbeat(row: Record, said: Record | None) -> dict[str, Any]:
    """A supervisor of before sends the heartbeats of its workers to the other table."""
    if said is None or said["heartbeat_at"] < row["heartbeat_at"]:
        return {**row}
    return {**row, **said}


async def servers(connection: Connection) -> list[Server]:
    """Those that are not to drain."""
    return [Server(*map(frozenset, row)) for row in await load("workers/servers").fetch(connection)]


async def serving(connection: Connection, queue: str) -> list[Server]:
    """Those of them that serve this queue."""
    return [Server(*map(frozenset, row)) for row in await load("workers/serving").fetch(connection, queue=queue)]


async def holders(connection: Connection, line_id: int, line: Line) -> list[Holder]:
    """Those that may claim runs of this line, and how many of them each holds, as it said last."""
    rows = await load("workers/holders").fetch(
        connection, lanes=HOMES, line=line_id, queue=line.queue, labels=list(line.labels)
    )
    return [Holder(**row) for row in rows]
