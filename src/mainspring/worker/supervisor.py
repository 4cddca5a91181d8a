"""Starts worker processes, sends heartbeats for them while they live and move, and replaces those that end.

Only what is certain is acted on: a child that exited is declared lost at once, and its runs are rescued without
waiting for its lease time. One that is stopped (SIGSTOP, a debugger) gets no heartbeats; if that lasts, some
rescuer declares it lost, and when it wakes up it is told so and begins anew under another id. One that said by when
its handlers have to be over, and is silent long after that, is stuck in one of them: it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from math import ceil
from typing import TYPE_CHECKING

import structlog

from mainspring.model.ids import HOMES
from mainspring.store import queues, workers
from mainspring.store.failures import DATABASE_ERRORS
from mainspring.store.run_log import RunLog
from mainspring.store.submissions import new_worker_id
from mainspring.worker.heartbeats import LOOK_SECONDS, HeartbeatLoop
from mainspring.worker.running import DELIVERY_SECONDS
from mainspring.worker.supervised import (
    EXIT_DRAINED,
    EXIT_LOST,
    EXIT_MISCONFIGURED,
    EXIT_WORN,
    HURRY,
    SupervisedProcess,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.store.database import Database
    from mainspring.store.link import Link
    from mainspring.worker.settings import WorkerSettings
    from mainspring.worker.supervised import ProcessCommand

log = structlog.get_logger()

AFTER_FAILURE_SECONDS = 0.5
LAST_RESCUE_SECONDS = 10.0
YOUNG_SECONDS = 5.0  # a child that ends younger than this is restarted more slowly each time
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
STUCK_SECONDS = 1.0  # past the hard limit of its handlers, at least, before a child is killed
MARGIN_SECONDS = 5.0  # beyond grace and delivery, before a draining child is killed
DOWN_AFTER_SECONDS = 60.0  # fewer processes must have been enough for so long before one ends
SPARE = 0.75  # … and with this share of the slots that would be left


class Supervisor:
    def __init__(
        self,
        *,
        database: Database,
        link: Link,
        clock: Clock,
        lanes: int,
        settings: WorkerSettings,
        command: Callable[[UUID, int], ProcessCommand],
        say: Callable[[str], None],
    ) -> None:
        self._database = database
        self._heartbeats = HeartbeatLoop(link=link, clock=clock, settings=settings, living=self._living)
        self._clock = clock
        self._lanes = lanes
        self._home = random.choice(HOMES)  # of all its workers: one statement is enough for their heartbeats
        self._settings = settings
        self._command = command
        self._say = say
        self._children: list[SupervisedProcess] = []
        self._ended: set[UUID] = set()  # ended without a good-bye: to be declared lost
        self._starts_at: list[float] = []  # when to start replacements
        self._lines = RunLog(clock)
        self._pause = FIRST_PAUSE
        self._stops = 0
        self._autoscaler = Autoscaler.wanted_by(settings)
        self._exit_code = 0

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> int:
        """Until told to stop; answers with an exit code."""
        self._starts_at = [self._clock.monotonic()] * self._first_processes()
        loops = [asyncio.create_task(self._heartbeats.run()), asyncio.create_task(self._maintain())]
        try:
            while self._children or self._starts_at:
                self._poll_children()
                self._start_due()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            for child in self._children:
                child.kill()
            await self._rescue_last()
        return self._exit_code

    async def _rescue_last(self) -> None:
        """What the last children left behind is rescued now if the database is there, else by any rescuer later."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LAST_RESCUE_SECONDS):
                await self._rescue_ended()
        self._lines.sum_up(at_once=True)

    def stop(self) -> None:
        """Drain; when called again, hurry."""
        self._stops += 1
        self._starts_at.clear()
        if self._stops == 1:
            self._say(f"draining: up to {self._settings.grace:g} s for what is running (again to hurry)")
        for child in self._children:
            if self._stops == 1:
                child.drain()
            else:
                child.send(HURRY)

    @property
    def _is_ending(self) -> bool:
        """Whether children that end are the last ones."""
        return self._stops > 0 or self._exit_code != 0

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        while self._starts_at and min(self._starts_at) <= now:
            self._starts_at.remove(min(self._starts_at))
            drain_seconds = self._settings.grace + DELIVERY_SECONDS + MARGIN_SECONDS
            self._children.append(
                SupervisedProcess(new_worker_id(self._home), self._command, self._clock, drain_seconds)
            )

    def _poll_children(self) -> None:
        for child in list(self._children):
            child.poll()
            if child.exit_code is not None:
                self._children.remove(child)
                self._handle_exit(child, child.exit_code)
            elif self._clock.monotonic() >= child.kill_at:
                child.kill()
            elif child.is_stuck(self._clock.monotonic(), self._stuck_looks):
                log.warning("a worker process is stuck in a handler past its time", worker=str(child.worker_id))
                child.kill()

    @property
    def _stuck_looks(self) -> int:
        """How often to look at a child past its hard limit: as long as a heartbeat takes, for a slow machine's sake."""
        return round(max(STUCK_SECONDS, self._settings.heartbeat_every) / LOOK_SECONDS)

    def _handle_exit(self, child: SupervisedProcess, exit_code: int) -> None:
        """A child has ended: remember what it left behind, and arrange its replacement."""
        if exit_code not in (EXIT_DRAINED, EXIT_WORN):
            self._ended.add(child.worker_id)
            log.warning("a worker process ended", worker=str(child.worker_id), exit_code=exit_code)
        if exit_code == EXIT_MISCONFIGURED:
            self._exit_code = 1
            self._starts_at.clear()
            for other in self._children:
                other.drain()
        elif not self._is_ending and not child.is_draining:
            self._starts_at.append(self._clock.monotonic() + self._pause_before_restart(child, exit_code))

    def _pause_before_restart(self, child: SupervisedProcess, exit_code: int) -> float:
        if exit_code in (EXIT_LOST, EXIT_WORN):
            return 0.0
        is_young = self._clock.monotonic() - child.started_at < YOUNG_SECONDS
        self._pause = min(LONGEST_PAUSE, self._pause * 2) if is_young else FIRST_PAUSE
        return self._pause

    def _living(self) -> list[SupervisedProcess]:
        for child in self._children:
            child.poll()
        return [child for child in self._children if child.is_to_have_heartbeats]

    # ── what may wait ───────────────────────────────────────────────────────────────────────────────────────

    async def _maintain(self) -> None:
        """Rescue and scale over other connections: whatever holds these up, heartbeats go on."""
        while True:
            began = self._clock.monotonic()
            try:
                await self._rescue_ended()
                self._lines.sum_up()
                await self._scale()
            except Exception as error:
                is_fault = not isinstance(error, DATABASE_ERRORS)
                log.warning("rescuing and scaling wait for the database", cause=str(error), exc_info=is_fault)
                if not await self._database.has_repaired(error):
                    await asyncio.sleep(AFTER_FAILURE_SECONDS)
            while self._clock.monotonic() < began + self._settings.heartbeat_every and not self._ended:
                await asyncio.sleep(LOOK_SECONDS)

    async def _rescue_ended(self) -> None:
        """Declare lost whom we saw end, and rescue their runs right away."""
        for worker_id in list(self._ended):
            async with self._database.acquire() as connection:
                await workers.lose_if_silent(connection, worker_id, None)
                rescued = await workers.rescue_all(connection, self._lanes, worker_id, self._lines.note_bad_end)
            self._ended.discard(worker_id)
            log.warning("the runs of an ended worker were rescued", worker=str(worker_id), **rescued._asdict())

    # ── scaling ─────────────────────────────────────────────────────────────────────────────────────────────

    def _first_processes(self) -> int:
        return self._settings.processes if self._autoscaler is None else self._autoscaler.least

    async def _scale(self) -> None:
        """Have as many processes as the work there is wants, if that was asked for."""
        if self._autoscaler is None or self._is_ending:
            return
        ours, served = [child.worker_id for child in self._children], self._settings
        async with self._database.acquire() as connection:
            wanted = await queues.wanted_slots(connection, served.queues, ours, labels=served.labels)
        if not self._is_ending:  # nor meanwhile
            self._adapt_to(wanted, self._autoscaler)

    def _adapt_to(self, wanted: int, autoscaler: Autoscaler) -> None:
        staying = [child for child in self._children if not child.is_draining]
        now, present = self._clock.monotonic(), len(staying) + len(self._starts_at)
        target = autoscaler.target(wanted, present, now)
        if target > present:
            self._say(f"{wanted} slots are wanted: from {present} to {target} processes")
            self._starts_at += [now] * (target - present)
        elif target < present and staying:
            self._say(f"{wanted} slots are wanted: from {present} to {target} processes")
            staying[-1].drain()


def stop_on_signals(supervisor: Supervisor) -> None:
    """SIGTERM and Ctrl-C drain; the second one hurries."""
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, supervisor.stop)


class Autoscaler:
    """Decides how many processes a supervisor should have. Up at once, down slowly and one at a time."""

    def __init__(self, *, least: int, most: int, slots: int) -> None:
        self.least, self.most = least, most
        self._slots = slots
        self._ample_since: float | None = None

    @classmethod
    def wanted_by(cls, settings: WorkerSettings) -> Autoscaler | None:
        if settings.autoscale is None:
            return None
        least, most = settings.autoscale
        return cls(least=least, most=most, slots=settings.slots)

    def target(self, wanted_slots: int, processes: int, now: float) -> int:
        """How many processes to have, given what is wanted and how many there are."""
        needed = min(self.most, max(self.least, ceil(wanted_slots / self._slots)))
        if needed >= processes:
            self._ample_since = None
            return needed  # work that waits is worse than a process that idles
        if wanted_slots > (processes - 1) * self._slots * SPARE:
            self._ample_since = None
            return processes
        if self._ample_since is None:
            self._ample_since = now
        if now - self._ample_since < DOWN_AFTER_SECONDS:
            return processes
        self._ample_since = now
        return processes - 1
