"""Lines about runs in a process's log: of the same kind about the same job only some are written in a while.

The others are counted, and the count is written: a job that fails ten thousand times per second fills no disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog

from mainspring.model.lifecycle import State

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.workers import BadEnd

log = structlog.get_logger()

LINES_PER_SPAN = 20  # of one kind, about one job
SPAN_SECONDS = 10.0

BAD_ENDS = {State.DEAD: "a run is dead", State.LOST: "a run is lost"}


class RunLog:
    """Whoever writes asks first, and has it summed up now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], _LineKind] = {}

    def may_write(self, event: str, job: str, level: int) -> bool:
        kind = self._kinds.get((event, job))
        if kind is None:
            kind = self._kinds[event, job] = _LineKind(self._clock.monotonic(), level)
        kind.count += 1
        return kind.count <= LINES_PER_SPAN

    def note_bad_end(self, end: BadEnd) -> None:
        """A run ended because its worker did: nobody else says so."""
        event = BAD_ENDS[end.state]
        if self.may_write(event, end.job, logging.ERROR):
            about = {"job": end.job, "run": str(end.run_id), "attempt": end.attempt, "outcome": end.outcome}
            log.error(event, **about, error=end.error, attempts_left=0)

    def sum_up(self, *, at_once: bool = False) -> None:
        """Write how many lines were left out, of each kind whose span is over."""
        now = self._clock.monotonic()
        for (event, job), kind in list(self._kinds.items()):
            if not at_once and now - kind.since < SPAN_SECONDS:
                continue
            del self._kinds[event, job]
            if (more := kind.count - LINES_PER_SPAN) > 0:
                seconds = round(now - kind.since, 1)
                log.log(kind.level, f"{event}, and more like it", job=job, more=more, seconds=seconds)


class _LineKind:
    """Lines of one kind about one job, in the present span."""

    __slots__ = ("count", "level", "since")

    def __init__(self, since: float, level: int) -> None:
        self.since = since
        self.level = level
        self.count = 0
