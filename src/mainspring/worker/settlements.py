"""What a worker notes when the database has answered for a batch of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.leases import Fate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from mainspring.store.leases import Settled, Settlement
    from mainspring.worker.holdings import Holdings
    from mainspring.worker.tally import Tally


class SettlementLog:
    """`has_room` is set: whoever waits to claim may do so, now that less is unsettled."""

    def __init__(
        self, *, holdings: Holdings, tally: Tally, has_room: asyncio.Event, heard_of_later: Callable[[], None]
    ) -> None:
        self._holdings = holdings
        self._tally = tally
        self._has_room = has_room
        self._heard_of_later = heard_of_later

    def note(self, batch: list[Settled], _settlement: Settlement) -> None:
        self._holdings.settled(batch)
        self._tally.add(batch)
        self._has_room.set()
        if any(each.fate is Fate.RETRY for each in batch):
            self._heard_of_later()
