"""Following a run while it goes on: its state, its progress, and its log lines as they come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from mainspring.clock import EPOCH
from mainspring.model.ids import parse_run_id
from mainspring.model.lifecycle import ENDS, State
from mainspring.model.report import LogLine
from mainspring.store import reports
from mainspring.worker.waits import without_slot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.runs import Runs
    from mainspring.model.actor import Actor
    from mainspring.model.run import Run
    from mainspring.store.connection import Record
    from mainspring.store.database import Database

LOOK_SECONDS = 0.25
Part = tuple[int, int]  # which part of the log was read last: its fence and its number


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpdate:
    """A run as it is now, and the log lines that are new since the last update."""

    run: Run
    lines: list[LogLine]

    @property
    def is_over(self) -> bool:
        """A dead letter counts: nothing more happens to it by itself."""
        return self.run.state in ENDS or self.run.state is State.DEAD


class Watching:
    """Shows what runs log, and runs while they go on."""

    def __init__(self, *, database: Database, clock: Clock, runs: Runs) -> None:
        self._database = database
        self._clock = clock
        self._runs = runs

    async def logs(self, actor: Actor, run_id: UUID | str, *, attempt: int | None = None) -> list[LogLine]:
        """The log lines of a run so far, oldest first; `attempt` chooses those of the attempts with that number."""
        run = await self._runs.find(actor, run_id)
        lines, _ = await self._lines(run.id, (0, 0))
        return lines if attempt is None else [line for line in lines if line.attempt == attempt]

    async def watch(self, actor: Actor, run_id: UUID | str) -> AsyncIterator[RunUpdate]:
        """A run while it goes on: an update whenever something is new; the last one is the run's end."""
        parsed = parse_run_id(run_id)
        after = (0, 0)
        last: Run | None = None
        while True:
            async with without_slot():
                update, after = await self._next(actor, parsed, last, after)
            yield update
            if update.is_over:
                return
            last = update.run

    async def _next(self, actor: Actor, run_id: UUID, last: Run | None, after: Part) -> tuple[RunUpdate, Part]:
        """What is new, once something is, and up to where its log lines were read."""
        while True:
            # The run first: when it is over, all its lines are there, for they were written before or with its end.
            run = await self._runs.find(actor, run_id)
            lines, after = await self._lines(run_id, after)
            if lines or run != last:
                return RunUpdate(run=run, lines=lines), after
            await self._clock.sleep(LOOK_SECONDS)

    async def _lines(self, run_id: UUID, after: Part) -> tuple[list[LogLine], Part]:
        async with self._database.acquire() as connection:
            parts = await reports.lines_of(connection, run_id, after)
        lines = [line for part in parts for line in _decoded(part)]
        return lines, (parts[-1]["fence"], parts[-1]["part"]) if parts else after


def _decoded(part: Record) -> list[LogLine]:
    said = msgspec.json.decode(part["lines"], type=list[tuple[int, str, str, str]])
    return [
        LogLine(
            at=EPOCH + timedelta(microseconds=at),
            level=level,
            logger=logger,
            text=text,
            attempt=part["attempt"],
            fence=part["fence"],
        )
        for at, level, logger, text in said
    ]
