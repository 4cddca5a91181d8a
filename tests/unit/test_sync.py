"""When a worker and the database are brought in step again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.waiting import PATIENCE, until

from mainspring.model.concurrency import TenantRules
from mainspring.worker.sync import ROUND_TRIPS, SyncLoop, set_clock

from .hands import HandClock


class Listener:
    """One that listens."""

    def __init__(self) -> None:
        self.wants_sync = asyncio.Event()
        self.has_new_line = False

    def is_on(self, connection: Any) -> bool:
        return True


async def nothing(*_: Any) -> None: ...


def syncing(
    listener: Listener, *, clock: HandClock | None = None, refresh: Any = nothing, write: Any = nothing
) -> SyncLoop:
    parts: Any = {"link": SimpleNamespace(get=nothing), "lines": SimpleNamespace(learn=lambda lines: None)}
    sync = SyncLoop(
        **parts,
        worker=cast("Any", SimpleNamespace(clock=clock or HandClock())),
        every=2 * PATIENCE,
        listener=cast("Any", listener),
        reconciler=cast("Any", SimpleNamespace(reconcile=nothing)),
        status=cast("Any", SimpleNamespace(write=write)),
        gating=cast("Any", SimpleNamespace(refresh=refresh, rules=TenantRules())),
    )
    sync._rounds_until_lines = 10
    return sync


async def test_what_is_notified_during_a_round_has_another_one_at_once() -> None:
    rounds: list[int] = []
    listener = Listener()

    async def write(connection: Any) -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            listener.wants_sync.set()  # leases were looked at already

    sync = syncing(listener, write=write)
    running = asyncio.create_task(sync.run())

    await until(lambda: len(rounds) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_limits_that_take_long_to_read_are_not_read_all_the_time() -> None:
    clock, read_at = HandClock(), []

    async def refresh(connection: Any) -> None:
        read_at.append(clock.now)
        clock.now += 0.05

    sync = syncing(Listener(), clock=clock, refresh=refresh)
    await sync.sync()
    await sync.sync()  # somebody has written another one meanwhile
    assert len(read_at) == 1

    clock.now += sync._pause()
    await sync.sync()
    assert len(read_at) == 2
    assert 0.05 < read_at[1] - read_at[0] < 1.0, "in force within a second"


class WallClock(HandClock):
    """Ours: a minute late, until it is corrected."""

    offset = 0

    def micros(self) -> int:
        return int(self.now * 1_000_000) + self.offset

    def correct(self, micros: int) -> None:
        self.offset += micros


MINUTE = 60_000_000


class StoppedAtTimes:
    """A database that takes so many seconds before it reads its clock, each time that it is asked."""

    def __init__(self, clock: WallClock, delays: list[float]) -> None:
        self._clock = clock
        self._delays = iter(delays)

    async def fetchval(self, *_: Any) -> int:
        self._clock.now += next(self._delays)
        return int(self._clock.now * 1_000_000) + MINUTE


@pytest.mark.parametrize("slow", range(ROUND_TRIPS))
async def test_the_clock_is_not_set_by_an_answer_of_a_database_that_was_stopped_meanwhile(slow: int) -> None:
    clock = WallClock()
    delays = [0.002] * ROUND_TRIPS
    delays[slow] = 8.0

    await set_clock(clock, cast("Any", StoppedAtTimes(clock, delays)))

    assert clock.offset == MINUTE + 1_000  # half of what a quick answer took
