"""Writes down what attempts report: one loop, one batch for all of a worker's runs, about twice a second.

Checkpoints do not wait for that: their handlers do. Log lines and progress that cannot be written now are written
later; the lines of an attempt that ends before that travel with its settlement.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import structlog

from mainspring.errors import NodeUnreachable, StoreError, ValueNotStorable
from mainspring.model.payload import decode
from mainspring.store import reports, schedule_reading
from mainspring.store.columns import ATTEMPT, FENCE, HEADERS, ID, TENANT
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.reports import Checkpoint, LeasedAttempt
from mainspring.worker.report import AttemptReport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.model.occurrence import RunOccurrence
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.worker.work import Work

log = structlog.get_logger()

T = TypeVar("T")

GAP_SECONDS = 0.5  # between two words of one run about its progress
AFTER_FAILURE_SECONDS = 0.5


class CheckpointRequest(NamedTuple):
    """A handler waits for its checkpoint to be stored."""

    report: AttemptReport
    checkpoint: Checkpoint
    stored: Future[None]

    def answer(self, refusal: Exception | None) -> None:
        if self.stored.set_running_or_notify_cancel():
            self.stored.set_result(None) if refusal is None else self.stored.set_exception(refusal)


class Reporter:
    """Uses a connection of the pool while there is something to write: an idle worker holds none for this."""

    def __init__(self, *, worker_id: UUID, database: Database, clock: Clock) -> None:
        self.worker_id = worker_id
        self._database = database
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: list[AttemptReport] = []
        self._requests: list[CheckpointRequest] = []
        self._called = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._last = 0.0

    def report_of(self, work: Work) -> AttemptReport:
        """The report of an attempt; made when it first has something to say."""
        if work.report is None:
            row, lease = work.row, work.lease
            place = LeasedAttempt(lease.lane, lease.id, work.position, row[ID], row[FENCE], row[ATTEMPT] + 1)
            work.report = AttemptReport(self, place, row[HEADERS], row[TENANT])
        return work.report

    # ── for reports ─────────────────────────────────────────────────────────────────────────────────────────

    def now_micros(self) -> int:
        return self._clock.micros()

    def call(self, report: AttemptReport) -> None:
        """From any thread: this report has something to say."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to say it to
            self._loop.call_soon_threadsafe(self._hear, report)

    def _hear(self, report: AttemptReport) -> None:
        self._waiting.append(report)
        self._called.set()

    def checkpoint(self, report: AttemptReport, data: bytes) -> Future[None]:
        """From any thread: done when it is durable."""
        stored: Future[None] = Future()
        request = CheckpointRequest(report, Checkpoint(report.place, data), stored)
        self._loop.call_soon_threadsafe(self._hear_request, request)
        return stored

    def _hear_request(self, request: CheckpointRequest) -> None:
        self._requests.append(request)
        self._called.set()
        self._is_urgent.set()

    async def checkpointed(self, run_id: UUID) -> Any:
        """What an earlier attempt stored. However long it takes: an attempt that does not know must not begin."""
        data = await self._looked_up(lambda connection: reports.checkpoint_of(connection, run_id))
        return None if data is None else decode(data)

    def previous_success(self, tenant_id: int, lane: int, occurrence: RunOccurrence | None) -> Future[datetime | None]:
        """From any thread: the latest instant before this one whose run succeeded. However long it takes."""
        return asyncio.run_coroutine_threadsafe(self._previous_success(tenant_id, lane, occurrence), self._loop)

    async def _previous_success(self, tenant_id: int, lane: int, occurrence: RunOccurrence | None) -> datetime | None:
        if occurrence is None:
            return None
        name, before = occurrence.schedule, occurrence.nominal_at
        return await self._looked_up(
            lambda connection: schedule_reading.previous_success(connection, lane, name, before, tenant_id=tenant_id)
        )

    async def _looked_up(self, look: Callable[[Connection], Awaitable[T]]) -> T:
        while True:
            try:
                async with self._database.acquire() as connection:
                    return await look(connection)
            except DATABASE_ERRORS as error:
                log.warning("what an attempt has to know waits for the database", cause=str(error))
                await self._clock.sleep(AFTER_FAILURE_SECONDS)

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        while True:
            await self._called.wait()
            await self._let_words_gather()
            self._called.clear()
            self._is_urgent.clear()
            try:
                await self._write()
            except NodeUnreachable as error:
                log.warning("reports of attempts wait for a node of the database", cause=str(error))
                if not await self._database.leave_out(error):
                    await self._clock.sleep(AFTER_FAILURE_SECONDS)
            except DATABASE_ERRORS as error:
                log.warning("reports of attempts wait for the database", cause=str(error))
                if not await self._database.has_repaired(error):
                    await self._clock.sleep(AFTER_FAILURE_SECONDS)
            except ValueNotStorable as error:
                log.error("reports of attempts could not be written", cause=str(error))
                self._refuse_checkpoints(error)
                await self._clock.sleep(AFTER_FAILURE_SECONDS)

    async def _let_words_gather(self) -> None:
        wait = GAP_SECONDS - (self._clock.monotonic() - self._last)
        if wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._is_urgent.wait()

    async def _write(self) -> None:
        """Write all there is. What was not written is still there afterwards, and calls again."""
        try:
            async with self._database.acquire() as connection:
                await self._write_checkpoints(connection)
                if self._clock.monotonic() - self._last >= GAP_SECONDS:
                    self._last = self._clock.monotonic()
                    await self._write_words(connection)
        finally:
            if self._waiting or self._requests:
                self._called.set()

    async def _write_checkpoints(self, connection: Connection) -> None:
        """One per run and statement: of two that a run sends at once, the second waits for the next one."""
        reach = self._database.reach
        while batch := {
            each.report.place: each for each in reversed(self._requests) if reach.has(each.report.place.lane)
        }:
            sent = list(batch.values())
            stored = await reports.store_checkpoints(connection, self.worker_id, [each.checkpoint for each in sent])
            self._requests = [request for request in self._requests if request not in sent]
            for request in sent:
                place = request.report.place
                request.answer(None if (place.run_id, place.fence) in stored else request.report.lost())

    def _refuse_checkpoints(self, error: Exception) -> None:
        refused, self._requests = self._requests, []
        for request in refused:
            request.answer(StoreError(f"The checkpoint could not be stored: {error}."))

    async def _write_words(self, connection: Connection) -> None:
        has = self._database.reach.has
        batch, self._waiting = (
            [report for report in self._waiting if has(report.place.lane)],
            [report for report in self._waiting if not has(report.place.lane)],
        )
        for report in batch:
            report.is_waiting = False  # from here on it may call again
        parts = [(report, part) for report in batch for part in report.parts()]
        words = [(report, word) for report in batch if (word := report.word) is not None]
        try:
            await reports.append_lines(connection, self.worker_id, [part for _, part in parts])
            await reports.note_progress(connection, self.worker_id, [word for _, word in words])
        except BaseException:
            for report in batch:  # it still has what could not be written
                report.call_again()
            raise
        for report, part in parts:
            report.confirm(part)
        for report, word in words:
            report.confirm(word)
