"""A worker that nobody beats for stops what must not overlap before its lease time is over, and nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.waiting import Calls

from .working import working

if TYPE_CHECKING:
    import pytest

    from mainspring import Mainspring
    from mainspring.testing import FrozenClock

LEASE_TIME = 600.0


class Nap:
    """What a handler does, and what becomes of it."""

    def __init__(self) -> None:
        self.has_begun, self.is_stopped = asyncio.Event(), asyncio.Event()

    async def take(self) -> None:
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_stopped.set()
            raise


async def test_what_must_not_overlap_is_stopped_before_someone_else_may_have_it(
    frozen_app: Mainspring, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, once, careless = naps = Nap(), Nap(), Nap()

    @frozen_app.job(on_disconnect="stop")
    async def nap_unless_alone() -> None:
        await alone.take()

    @frozen_app.job(delivery="at_most_once")
    async def nap_once() -> None:
        await once.take()

    @frozen_app.job
    async def nap() -> None:
        await careless.take()

    async with working(frozen_app, lease_time=LEASE_TIME) as worker:
        for job in (nap_unless_alone, nap_once, nap):
            await job.submit()
        await asyncio.gather(*(each.has_begun.wait() for each in naps))
        await clock.advance(LEASE_TIME * 0.6)
        worker.heartbeat_arrived()
        await clock.advance(LEASE_TIME * 0.6)
        looks = Calls(worker.parts.overlap_guard.look)
        monkeypatch.setattr(worker.parts.overlap_guard, "look", looks)
        await looks.more()
        assert not any(each.is_stopped.is_set() for each in naps)

        await clock.advance(LEASE_TIME * 0.3)
        async with asyncio.timeout(60):
            await asyncio.gather(alone.is_stopped.wait(), once.is_stopped.wait())
        assert not careless.is_stopped.is_set()
