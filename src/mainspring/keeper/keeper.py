"""The loop that gives each duty its turn, on one connection."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

import structlog

from mainspring.errors import DatabaseUnreachable, NodeUnreachable
from mainspring.store.connection import patience
from mainspring.store.failures import ALL_DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.link import Link

log = structlog.get_logger()

PATIENCE_SECONDS = 60.0
AFTER_FAILURE_SECONDS = 1.0
AWAY_SECONDS = 5.0  # what a duty has to do needs a node that is down


class Duty(Protocol):
    """Something to do again and again."""

    async def step(self, connection: Connection) -> float:
        """Do what there is to do now; answers in how many seconds to come back."""
        ...

    def forget(self) -> None:
        """The database could not be asked: what was observed before no longer counts."""
        ...


class Keeper:
    """Runs duties, each when its time has come."""

    def __init__(self, *, link: Link, clock: Clock, duties: Sequence[Duty]) -> None:
        self._link = link
        self._clock = clock
        self._due = dict.fromkeys(duties, 0.0)
        self._woken = asyncio.Event()

    def wake(self, duty: Duty) -> None:
        """Give a duty its turn now."""
        if duty in self._due:
            self._due[duty] = 0.0
            self._woken.set()

    async def run(self) -> None:
        try:
            await self._take_turns()
        finally:
            await self._link.close()

    async def _take_turns(self) -> None:
        while True:
            duty = min(self._due, key=self._due.__getitem__)
            wait = self._due[duty] - self._clock.monotonic()
            if wait > 0:
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._woken.wait()
                continue
            await self._turn(duty)

    async def _turn(self, duty: Duty) -> None:
        self._due[duty] = float("inf")  # whoever wakes it during its turn makes it come again
        pause = await self._try(duty)
        self._due[duty] = min(self._due[duty], self._clock.monotonic() + pause)

    async def _try(self, duty: Duty) -> float:
        try:
            connection = await self._link.get()
            with patience(connection, PATIENCE_SECONDS):
                return await duty.step(connection)
        except NodeUnreachable as error:
            log.warning("keeping waits for a node of the database", duty=type(duty).__name__, cause=str(error))
            duty.forget()
            return 0.0 if await self._link.leave_out(error) else AWAY_SECONDS
        except ALL_DATABASE_ERRORS as error:
            log.warning("keeping waits for the database", duty=type(duty).__name__, cause=str(error))
            for each in self._due:
                each.forget()
            await self._link.mend(error)
            return 0.0 if isinstance(error, DatabaseUnreachable) else AFTER_FAILURE_SECONDS
