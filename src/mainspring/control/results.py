"""Waiting for results: one poller per process asks for everyone who waits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import structlog

from mainspring.errors import (
    ResultTimeout,
    RunCancelled,
    RunExpired,
    RunFailed,
    RunLost,
    RunNotSucceeded,
)
from mainspring.model.lifecycle import State
from mainspring.model.payload import decode
from mainspring.store import history
from mainspring.store.database import CONNECTION_ERRORS

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.database import Database

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
AT_ONCE = 1_000

_REASONS: dict[State, type[RunNotSucceeded]] = {
    State.DEAD: RunFailed,
    State.CANCELLED: RunCancelled,
    State.EXPIRED: RunExpired,
    State.LOST: RunLost,
}


class End(NamedTuple):
    """How a run ended."""

    state: State
    result: bytes | None
    error: str | None

    def value(self, run_id: UUID) -> Any:
        """The handler's return value, or the error that tells why there is none."""
        if self.state is State.SUCCEEDED:
            return None if self.result is None else decode(self.result)
        error = {} if self.error is None else msgspec.json.decode(self.error)
        message = error.get("message") or self.state.value
        raise _REASONS[self.state](
            f"Run {run_id} is {self.state}: {message}",
            hint=f"See: mainspring run show {run_id}",
            run_id=str(run_id),
            state=self.state.value,
            error=error,
        )


class Results:
    """Lets any number of tasks wait for the ends of runs with one query at a time."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: defaultdict[UUID, list[asyncio.Future[End]]] = defaultdict(list)
        self._poller: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE

    async def wait(self, run_id: UUID, timeout: float | None = None) -> End:
        future: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._waiting[run_id].append(future)
        self._pause = FIRST_PAUSE
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            raise ResultTimeout(
                f"Run {run_id} has not ended after {timeout} s.", hint="It goes on; wait again, or cancel it."
            ) from None
        finally:
            self._forget(run_id, future)

    def _forget(self, run_id: UUID, future: asyncio.Future[End]) -> None:
        waiters = self._waiting.get(run_id)
        if waiters is not None and future in waiters:
            waiters.remove(future)
            if not waiters:
                del self._waiting[run_id]

    async def _poll(self) -> None:
        while self._waiting:
            if await self._ask():
                self._pause = FIRST_PAUSE
            await self._clock.sleep(self._pause)
            self._pause = min(LONGEST_PAUSE, self._pause * 1.3)

    async def _ask(self) -> bool:
        wanted = list(self._waiting)
        found = False
        try:
            async with self._database.acquire() as connection:
                for start in range(0, len(wanted), AT_ONCE):
                    for row in await history.ends_of(connection, wanted[start : start + AT_ONCE]):
                        self._tell(row["run_id"], End(State(row["state"]), row["result"], row["error"]))
                        found = True
        except CONNECTION_ERRORS as error:
            log.warning("waiting for results waits for the database", cause=str(error))
        return found

    def _tell(self, run_id: UUID, end: End) -> None:
        for future in self._waiting.pop(run_id, ()):
            if not future.done():
                future.set_result(end)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
