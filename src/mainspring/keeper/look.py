"""One look at what there is to look after, for all duties that would else each ask the database the same way.

Whoever comes first looks; the others take what was found then, each once. So a duty never acts twice on one look, and
one that was woken looks itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from mainspring.store import runs

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.connection import Connection, Record

MOST_SECONDS = 0.5  # that a look may be old
IDLE_EVERY = 1.0  # seconds: where a look found nothing at all, the next one has time


class LookFor(StrEnum):
    """What duties look for, by lane."""

    GATES = "gates"
    DEPENDENCIES = "dependencies"
    FOLLOWERS = "followers"
    HELD = "held"
    BACKLOGS = "backlogs"


class Look:
    def __init__(self, *, lanes: int, clock: Clock) -> None:
        self._lanes = lanes
        self._clock = clock
        self._found: list[Record] = []
        self._at = float("-inf")
        self._used: set[LookFor] = set()
        self._forgotten = 0  # so often; also during a look

    def forget(self) -> None:
        """Something has happened since: whoever asks next looks anew."""
        self._forgotten += 1
        self._at = float("-inf")

    async def lanes(self, connection: Connection, what: LookFor) -> list[int]:
        """In which lanes there is something of a kind."""
        if what in self._used or self._clock.monotonic() - self._at > MOST_SECONDS:
            began, forgotten = self._clock.monotonic(), self._forgotten
            self._found = await runs.lanes_to_keep(connection, self._lanes)
            self._at = began if forgotten == self._forgotten else float("-inf")
            self._used = set()
        self._used.add(what)
        return sorted(row["lane"] for row in self._found if row[what.value])

    def pause(self, seconds: float) -> float:
        """How long to wait after a look that found nothing to do for a duty."""
        return seconds if self._found else max(seconds, IDLE_EVERY)
