"""Listens to the database's notifications: runs that became ready or were put off, cancellations for this worker.

They are hints that may get lost; whatever they say is found without them, a little later.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from mainspring.store import notify

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.connection import Connection
    from mainspring.worker.claimer import Claimer
    from mainspring.worker.identity import WorkerIdentity
    from mainspring.worker.lines import Lines


class NotificationListener:
    """Sets `wants_sync` when the worker had better compare itself with the database now."""

    def __init__(
        self, *, worker: WorkerIdentity, lines: Lines, claimer: Claimer, heard_of_later: Callable[[], None]
    ) -> None:
        self._worker = worker
        self._lines = lines
        self._claimer = claimer
        self._heard_of_later = heard_of_later
        self._connection: Connection | None = None
        self.wants_sync = asyncio.Event()
        self.has_new_line = False  # someone spoke of a line we have not met

    def is_on(self, connection: Connection) -> bool:
        return connection is self._connection

    async def listen_on(self, connection: Connection) -> None:
        await notify.listen(connection, self._hear)
        self._connection = connection

    def _hear(self, channel: str, payload: str) -> None:
        if channel == notify.READY:
            with contextlib.suppress(ValueError):
                self._hear_of_ready(*notify.parse_ready(payload))
        elif channel == notify.LATER:
            self._heard_of_later()
        elif payload == str(self._worker.id):
            self.wants_sync.set()

    def _hear_of_ready(self, lane: int, line: int, priority: int) -> None:
        if self._lines.is_news(line):
            self.has_new_line = True
            self.wants_sync.set()  # it may be one of ours: look at once, not at some heartbeat
        self._claimer.stir(lane, line, priority)
