"""Waiting for results: one poller per process and event loop asks for everyone who waits.

Whoever waits is told by a look at the database that began after it came: how its run ended, or, when its time is
over, that it has not, or that there is no such run. No waiter can harm another, and the poller outlives every error.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from mainspring.clock import instant
from mainspring.control.runs import not_found
from mainspring.errors import (
    InvalidInput,
    MainspringError,
    ResultTimeout,
    shortened,
)
from mainspring.model.ids import lane_of, made_at
from mainspring.model.lifecycle import State
from mainspring.model.results import RunEnd
from mainspring.store import history, lists
from mainspring.store.confirming import confirm
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.worker.waits import without_slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.application import Application
    from mainspring.control.runs import Runs
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Record
    from mainspring.store.database import Database

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
AT_ONCE = 1_000
LAST_LOOK_SECONDS = 10.0  # how long someone whose time is over waits for the one look that everyone gets
YOUNG = timedelta(minutes=1)  # the transaction that submits so young a run may still be open

Wanted = tuple[int, "UUID"]  # whose run, and which


class Waiter:
    """Someone who waits for the end of one run."""

    __slots__ = ("end", "is_over", "made_at", "run_id", "tenant", "timeout")

    def __init__(self, tenant: int, run_id: UUID, timeout: float | None) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.made_at = made_at(run_id)
        self.timeout = timeout
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self.is_over = False  # its time is: the next look has the last word

    @property
    def wanted(self) -> Wanted:
        return self.tenant, self.run_id

    def tell(self, end: RunEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)

    def refuse(self, error: BaseException) -> None:
        if not self.end.done():
            self.end.set_exception(error)

    def not_ended(self) -> ResultTimeout:
        return ResultTimeout(
            f"Run {self.run_id} has not ended after {self.timeout:g} s.", hint="It goes on; wait again, or cancel it."
        )

    def unanswered(self, cause: str) -> ResultTimeout:
        return ResultTimeout(
            f"Whether run {self.run_id} has ended could not be found out within {self.timeout:g} s: {cause}.",
            hint="Look at the database (mainspring doctor), and wait again.",
        )

    def closed(self) -> MainspringError:
        return MainspringError(
            f"Nobody waits for run {self.run_id} any more: the application was closed meanwhile.",
            code="application-closed",
            hint="Close the application after the last result; the run itself goes on.",
        )


class Results:
    """Lets any number of tasks wait for the ends of runs with one query at a time."""

    def __init__(self, *, database: Database, clock: Clock, runs: Runs, application: Application) -> None:
        self._database = database
        self._clock = clock
        self._runs = runs
        self._application = application
        self._waiting: dict[Wanted, list[Waiter]] = {}
        self._somewhere: set[Wanted] = set()  # runs that someone waits for and that are known to be there
        self._poller: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE
        self._someone_came = asyncio.Event()

    # ── those who wait ──────────────────────────────────────────────────────────────────────────────────────

    async def result(self, actor: Actor, run_id: UUID | str, timeout: float | None = None) -> Any:
        """What a run's handler returned, once it has; raises RunFailed, RunCancelled, RunExpired or RunLost.

        Of a job that this application defines, it is what the return annotation says; else plain JSON values.
        With a `timeout` in seconds, raises ResultTimeout if the run has not ended by then; 0 asks once.
        """
        patience = _checked_timeout(timeout)
        parsed = self._runs.parse(run_id)
        if patience == 0:
            end = await self._wait(actor, parsed, patience)
        else:
            async with without_slot():
                end = await self._wait(actor, parsed, patience)
        return end.value(parsed, self._application.returns_of(end.job))

    async def _wait(self, actor: Actor, run_id: UUID, timeout: float | None) -> RunEnd:
        """How a run ended, once it has."""
        waiter = Waiter(actor.tenant, run_id, timeout)
        self._waiting.setdefault(waiter.wanted, []).append(waiter)
        self._look_soon()
        try:
            await asyncio.wait((waiter.end,), timeout=timeout)
            if not waiter.end.done():
                waiter.is_over = True
                self._look_soon()
                await asyncio.wait((waiter.end,), timeout=LAST_LOOK_SECONDS)
            if not waiter.end.done():
                raise waiter.unanswered("the database does not answer")
            return waiter.end.result()
        finally:
            self._forget(waiter)

    def _look_soon(self) -> None:
        self._pause = FIRST_PAUSE
        self._someone_came.set()
        if self._poller is None or self._poller.done():
            # In a context of its own: it works for all, and what it logs is no log line of whoever came first.
            self._poller = asyncio.create_task(self._poll(), context=contextvars.Context())
            self._poller.add_done_callback(self._poller_ended)

    def _forget(self, waiter: Waiter) -> None:
        waiter.end.cancel()
        waiters = self._waiting.get(waiter.wanted, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiting.pop(waiter.wanted, None)
            self._somewhere.discard(waiter.wanted)

    # ── the poller ──────────────────────────────────────────────────────────────────────────────────────────

    async def _poll(self) -> None:
        while self._waiting:
            self._someone_came.clear()
            await self._look_and_live_on()
            await self._clock.sleep(FIRST_PAUSE)  # whoever comes in the meantime shares the next look
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause - FIRST_PAUSE):
                    await self._someone_came.wait()
            self._pause = min(LONGEST_PAUSE, self._pause * 1.3)

    async def _look_and_live_on(self) -> None:
        """One look. Whatever goes wrong, there will be another one: others wait too."""
        overdue = {waiter for waiter in self._waiters() if waiter.is_over}
        try:
            await self._look(overdue)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            _log_failed_look(error)
            self._pause = LONGEST_PAUSE
            for waiter in overdue:
                waiter.refuse(waiter.unanswered(str(error) or type(error).__name__))

    async def _look(self, overdue: AbstractSet[Waiter]) -> None:
        for tenant, some in _by_tenant(self._waiting):
            if await self._ask(tenant, some):
                self._pause = FIRST_PAUSE
        await self._seek(overdue)
        for waiter in overdue:
            waiter.refuse(waiter.not_ended())

    async def _ask(self, tenant: int, run_ids: Sequence[UUID]) -> bool:
        """Tell those whose runs have ended; answers whether there were some."""
        async with self._database.acquire() as connection:
            rows = await history.ends_of(connection, run_ids, tenant_id=tenant)
            await confirm(connection, {lane_of(row["run_id"]) for row in rows})
        for row in rows:
            self._tell(tenant, row)
        return bool(rows)

    def _tell(self, tenant: int, row: Record) -> None:
        for waiter in self._waiting.pop((tenant, row["run_id"]), ()):
            try:
                waiter.tell(RunEnd(State(row["state"]), row["result"], row["error"], row["job"]))
            except ValueError as error:  # a newer program wrote it: that is between this run and who waits for it
                waiter.refuse(error)

    async def _seek(self, overdue: AbstractSet[Waiter]) -> None:
        """Find out which runs are nowhere, once each: of those whose time is over, and of those that are not young."""
        now = instant(self._clock)
        unknown = [each for each in self._waiters() if each.wanted not in self._somewhere and not each.end.done()]
        judged = [each for each in unknown if each in overdue or each.made_at + YOUNG < now]
        for tenant, some in _by_tenant(each.wanted for each in judged):
            async with self._database.acquire() as connection:
                found = await lists.states_of(connection, some, tenant_id=tenant)
            self._somewhere.update((tenant, run_id) for run_id in found)
        for waiter in judged:
            if waiter.wanted not in self._somewhere:
                waiter.refuse(not_found(waiter.run_id))

    def _poller_ended(self, poller: asyncio.Task[None]) -> None:
        """Nobody is left, or the application is being closed: then nobody looks for those who still wait."""
        if poller is self._poller:
            for waiter in self._waiters():
                waiter.refuse(waiter.closed())

    def _waiters(self) -> list[Waiter]:
        return [waiter for waiters in self._waiting.values() for waiter in waiters]

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)


def _by_tenant(wanted: Iterable[Wanted]) -> list[tuple[int, list[UUID]]]:
    """Whose runs to ask for, not too many at once."""
    tenants: dict[int, list[UUID]] = {}
    for tenant, run_id in wanted:
        tenants.setdefault(tenant, []).append(run_id)
    return [
        (tenant, run_ids[start : start + AT_ONCE])
        for tenant, run_ids in tenants.items()
        for start in range(0, len(run_ids), AT_ONCE)
    ]


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout < math.inf:
        raise InvalidInput(
            f"timeout is {shortened(timeout)}; it must be a number of seconds, 0 or more.",
            code="invalid-timeout",
            hint="Leave it out to wait for as long as it takes.",
            field="timeout",
            value=shortened(timeout),
        )
    return timeout


def _is_being_cancelled() -> bool:
    """Whether someone cancels this task. A query that was broken off elsewhere may raise the same error."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _log_failed_look(error: BaseException) -> None:
    if isinstance(error, DATABASE_ERRORS):
        log.warning("waiting for results waits for the database", cause=str(error))
    else:
        log.error("a look for results failed; the next one follows", exc_info=error)
