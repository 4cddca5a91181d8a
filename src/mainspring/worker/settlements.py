"""What a worker notes when the database has answered for a batch of results."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import structlog

from mainspring.store.leases import Fate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from mainspring.store.leases import Settled, Settlement
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.attempt_log import AttemptLog
    from mainspring.worker.statistics import LineStatistics


log = structlog.get_logger()


class SettlementLog:
    """`has_room` is set: whoever waits to claim may do so, now that less is unsettled."""

    def __init__(
        self,
        *,
        attempts: AttemptLog,
        leases: ActiveLeases,
        statistics: LineStatistics,
        has_room: asyncio.Event,
        heard_of_later: Callable[[], None],
    ) -> None:
        self._attempts = attempts
        self._leases = leases
        self._statistics = statistics
        self._has_room = has_room
        self._heard_of_later = heard_of_later

    def note(self, batch: list[Settled], settlement: Settlement) -> None:
        try:
            self._attempts.note(batch, settlement)  # while the leases still know its runs
        except Exception:  # other people's programs write to anything
            with contextlib.suppress(Exception):
                log.exception("what became of attempts could not be logged")
        self._leases.settled(batch)
        self._statistics.add(batch)
        self._has_room.set()
        if any(each.fate is Fate.RETRY for each in batch):
            self._heard_of_later()
