"""What one attempt has said so far, and how much of it the database has.

Handlers speak from the event loop or from threads; the reporter collects in the event loop. Nothing here waits.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import LeaseLost
from mainspring.model.headers import read_headers
from mainspring.model.occurrence import occurrence_of
from mainspring.model.report import MAX_LOG_BYTES
from mainspring.store.reports import FinalReport, LeasedAttempt, Part, Word

if TYPE_CHECKING:
    from concurrent.futures import Future
    from datetime import datetime

    from mainspring.worker.reporter import Reporter

OVERHEAD_BYTES = 48  # of a line, for its time, level and brackets
TRUNCATED = "… truncated: an attempt keeps {:,} bytes of log, and this one said more"

LoggedLine = tuple[int, str, str, str]  # microseconds since 1970, level, logger, text


class AttemptReport:
    """Implements `Listener` for one attempt inside a worker."""

    __slots__ = (
        "_has_rows",
        "_headers",
        "_is_closed",
        "_lines",
        "_lock",
        "_next_part",
        "_reporter",
        "_room",
        "_tenant_id",
        "_unconfirmed",
        "_word",
        "is_waiting",
        "place",
    )

    def __init__(
        self, reporter: Reporter, place: LeasedAttempt, headers: str | None = None, tenant_id: int = 0
    ) -> None:
        self.place = place
        self._tenant_id = tenant_id
        self.is_waiting = False  # for the reporter to come
        self._reporter = reporter
        self._headers = headers  # as JSON
        self._lock = threading.RLock()  # the collector may destroy what logs its end, in the middle of a line
        self._lines: list[LoggedLine] = []
        self._room = MAX_LOG_BYTES
        self._unconfirmed: list[Part] = []
        self._next_part = 1
        self._word: Word | None = None
        self._has_rows = place.fence > 1  # an earlier attempt may have left some
        self._is_closed = False

    # ── what handlers say, from any thread ──────────────────────────────────────────────────────────────────

    def progress(self, fraction: float, message: str) -> None:
        self._word = Word(self.place, fraction, message)
        self._has_rows = True
        self._wait_for_reporter()

    @property
    def is_full(self) -> bool:
        """Whether further lines are not kept."""
        return self._room < 0 or self._is_closed

    def log(self, level: str, logger: str, text: str) -> None:
        line = (self._reporter.now_micros(), level, logger, text)
        with self._lock:
            if self.is_full:
                return
            self._room -= len(text.encode()) + len(logger) + OVERHEAD_BYTES
            if self._room < 0:
                line = (line[0], "WARNING", "mainspring", TRUNCATED.format(MAX_LOG_BYTES))
            self._lines.append(line)
        self._wait_for_reporter()

    async def checkpoint(self, data: bytes) -> None:
        await asyncio.wrap_future(self._checkpoint(data))

    def checkpoint_sync(self, data: bytes) -> None:
        self._checkpoint(data).result()

    def _checkpoint(self, data: bytes) -> Future[None]:
        """In the worker's loop, whatever thread or loop it is asked from."""
        if self._is_closed:
            raise self.lost()
        self._has_rows = True
        return self._reporter.checkpoint(self, data)

    async def previous_success_at(self) -> datetime | None:
        return await asyncio.wrap_future(self._previous_success())

    def previous_success_at_sync(self) -> datetime | None:
        return self._previous_success().result()

    def _previous_success(self) -> Future[datetime | None]:
        return self._reporter.previous_success(
            self._tenant_id, self.place.lane, occurrence_of(read_headers(self._headers))
        )

    def _wait_for_reporter(self) -> None:
        if not self.is_waiting and not self._is_closed:
            self.is_waiting = True
            self._reporter.call(self)

    def call_again(self) -> None:
        """What the reporter took could not be written."""
        self._wait_for_reporter()

    def lost(self) -> LeaseLost:
        run_id, fence = self.place.run_id, self.place.fence
        return LeaseLost(
            f"Run {run_id} is no longer this worker's (fence {fence}): its checkpoint was refused.",
            hint="Stop here: another worker has taken the run over, or it has ended.",
            run_id=str(run_id),
            fence=fence,
        )

    # ── what the reporter collects ──────────────────────────────────────────────────────────────────────────

    @property
    def word(self) -> Word | None:
        """About its progress, if the database has not got it."""
        return None if self._is_closed else self._word

    def parts(self) -> list[Part]:
        """Log lines the database may not have yet."""
        self._bind_lines()
        return [] if self._is_closed else list(self._unconfirmed)

    def confirm(self, written: Word | Part) -> None:
        """The database has it."""
        if self._word is written:
            self._word = None
        self._unconfirmed = [part for part in self._unconfirmed if part is not written]

    def conclude(self) -> FinalReport:
        """The attempt is over. Whatever is not confirmed goes with its settlement; from now on it is not heard."""
        self._bind_lines()
        self._is_closed = True
        return FinalReport(tuple(self._unconfirmed), self._has_rows)

    def _bind_lines(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        if lines:
            self._unconfirmed.append(Part(self.place, self._next_part, msgspec.json.encode(lines).decode()))
            self._next_part += 1
