"""Makes a database that was restored from a backup safe to work on.

A backup is the past. It lists workers that are gone, with leases in their names; it counts fences from where they
stood, although higher ones have been handed out since; and what programs remember of the database need not be true of
it. So: a new installation id, no worker but dead ones, no lease, and fences higher than any that was handed out.

Every step may be repeated. Cut off, it is simply done again: workers are lost once, leases rescued once, and fences
only grow.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mainspring.errors import Conflict
from mainspring.model.job import checked_text
from mainspring.store import restoring, workers
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.workers import Pulse

# Fences are lifted to the seconds since then: more than a run can have been claimed, and more each time, also if one
# backup is restored twice. What the backup has, and a step above it, would then be the same fences again.
FENCE_EPOCH = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
FENCE_STEP = 1_000_000  # above what the backup has, if the clock says less than that
HIGHEST_FENCE = 2**31 - 1
BATCH = 5_000
LOOK_SECONDS = 0.1
LOCKED_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What there is to do in a restored database."""

    workers: int  # that it lists as live
    watch_seconds: float  # to see whether one of them sends a heartbeat
    running: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What has been done so far."""

    installation: str = ""
    workers: int = 0  # declared lost
    leases: int = 0
    rescued: int = 0  # runs that were in these leases, and go back in line
    cancelled: int = 0
    lost: int = 0  # delivered at most once
    buried: int = 0
    waiting: int = 0
    looked_at: int = 0  # of those that wait
    lifted: int = 0
    fence: int = 0  # to which they were lifted


class Restoration:
    """Makes a restored database safe to work on, for all its tenants."""

    def __init__(self, *, database: Database, clock: Clock, lanes: int) -> None:
        self._database = database
        self._clock = clock
        self._lanes = lanes

    async def look(self) -> Outlook:
        """What `work` would act on."""
        async with self._connection() as connection:
            pulses = await workers.pulses(connection)
            running = await restoring.running(connection, self._lanes)
            waiting = await restoring.waiting(connection, self._lanes)
        return Outlook(workers=len(pulses), watch_seconds=_longest_pause(pulses), running=running, waiting=waiting.runs)

    async def work(self, actor: Actor, *, reason: str, force: bool = False) -> AsyncIterator[Restored]:
        """Do all there is to do; tells how far it is. With `force`, live workers are declared lost, too."""
        reason = checked_text(reason, "reason", 1000)
        async with self._connection() as connection:
            pulses = await workers.pulses(connection) if force else await self._silent(connection)
            installation, now = await uncancelled(self._begin(connection, actor, reason))
            done = Restored(installation=installation)
            yield (done := await self._lose(connection, pulses, done, force=force))
            yield (done := await self._rescue(connection, done))
            yield (done := await self._choose_fence(connection, done, now))
            async for lifted in self._lift(connection, done):
                yield (done := lifted)
            await uncancelled(self._end(connection, actor, done))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """One of its own, whose plans use the indexes: a database that was just restored has no statistics."""
        connection = await self._database.connect("restored")
        try:
            yield connection
        finally:
            await connection.close()

    async def _begin(self, connection: Connection, actor: Actor, reason: str) -> tuple[str, int]:
        async with transaction(connection):
            return await restoring.begin(connection, tenant_id=actor.tenant, actor=actor.name, reason=reason)

    async def _end(self, connection: Connection, actor: Actor, done: Restored) -> None:
        async with transaction(connection):
            await restoring.end(
                connection,
                tenant_id=actor.tenant,
                actor=actor.name,
                installation=done.installation,
                detail=asdict(done),
            )

    # ── workers and their leases ────────────────────────────────────────────────────────────────────────────

    async def _silent(self, connection: Connection) -> list[Pulse]:
        """The workers listed as live, none of which sends heartbeats: watched for as long as one may take."""
        first = {pulse.worker_id: pulse for pulse in await workers.pulses(connection)}
        until = self._clock.monotonic() + _longest_pause(first.values())
        while first:
            pulses = await workers.pulses(connection)
            self._refuse_if_alive([pulse.worker_id for pulse in pulses if first.get(pulse.worker_id) != pulse])
            if self._clock.monotonic() >= until:
                break
            await self._clock.sleep(LOOK_SECONDS)
        return list(first.values())

    def _refuse_if_alive(self, alive: list[UUID]) -> None:
        if alive:
            raise Conflict(
                f"{len(alive)} worker{'s' * (len(alive) > 1)} of this database still send{'s' * (len(alive) == 1)}"
                f" heartbeats, {alive[0]} for one: what they claim meanwhile would keep a fence that was handed out"
                " before.",
                code="workers-alive",
                hint="Stop all workers, then repeat this. (--force declares them lost instead.)",
                workers=[str(worker_id) for worker_id in alive],
            )

    async def _lose(self, connection: Connection, pulses: list[Pulse], done: Restored, *, force: bool) -> Restored:
        for pulse in pulses:
            if await workers.lose_if_silent(connection, pulse.worker_id, None if force else pulse.beat):
                done = replace(done, workers=done.workers + 1)
        self._refuse_if_alive([] if force else [pulse.worker_id for pulse in await workers.pulses(connection)])
        return done

    async def _rescue(self, connection: Connection, done: Restored) -> Restored:
        """Everything out of every lease. One that somebody has locked is tried again for a while."""
        before, since = done, self._clock.monotonic()
        while ended := await workers.ended_with_leases(connection, self._lanes):
            for worker_id in ended:
                rescued = await workers.rescue_all(connection, self._lanes, worker_id)
                done = replace(done, **{name: getattr(done, name) + n for name, n in rescued._asdict().items()})
            if done != before:
                before, since = done, self._clock.monotonic()
            elif self._clock.monotonic() - since > LOCKED_SECONDS:
                raise _leases_locked(len(ended))
            else:
                await self._clock.sleep(LOOK_SECONDS)
        return done

    # ── fences ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _choose_fence(self, connection: Connection, done: Restored, now: int) -> Restored:
        waiting = await restoring.waiting(connection, self._lanes)
        fence = now - FENCE_EPOCH
        if fence < waiting.highest_fence:
            fence = waiting.highest_fence + FENCE_STEP
        if fence > HIGHEST_FENCE - FENCE_STEP:
            raise _fences_exhausted(waiting.highest_fence)
        return replace(done, waiting=waiting.runs, fence=fence)

    async def _lift(self, connection: Connection, done: Restored) -> AsyncIterator[Restored]:
        """Lift the fences lane by lane and batch by batch, each batch its own transaction."""
        for lane in range(self._lanes):
            after: UUID | None = restoring.BEFORE_ALL
            while after is not None:
                batch = await uncancelled(restoring.lift_fences(connection, lane, after, done.fence, BATCH))
                done = replace(done, lifted=done.lifted + batch.lifted)
                if batch.is_whole:
                    done = replace(done, looked_at=done.looked_at + batch.seen)
                    after = batch.last if batch.seen == BATCH else None
                yield done


def _longest_pause(pulses: Iterable[Pulse]) -> float:
    """How long a living worker may take between heartbeats: a third of its lease time, and some patience."""
    return max((pulse.lease_seconds / 2 for pulse in pulses), default=0.0)


def _leases_locked(count: int) -> Conflict:
    return Conflict(
        f"Other transactions keep leases of {count} ended worker{'s' * (count > 1)} locked.",
        code="leases-locked",
        hint="Find who holds them with `mainspring doctor`, end that transaction, then repeat this.",
        workers=count,
    )


def _fences_exhausted(highest: int) -> Conflict:
    return Conflict(
        f"The highest fence of a waiting run is {highest:,}, and none can be higher than {HIGHEST_FENCE:,}.",
        code="fences-exhausted",
        hint="Run that one anew: find it with `mainspring run list -o json`, cancel it and submit it again.",
        highest_fence=highest,
    )
