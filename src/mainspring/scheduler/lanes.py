"""Which lanes a scheduler looks after: each lane has one of the live schedulers, by rendezvous hashing.

Heartbeats are counters. Each scheduler judges the others by its own monotonic clock, as rescuers judge workers. While
two disagree, both look after a lane, or for a moment nobody does; no occurrence fires twice, and none is lost.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

SILENT_SECONDS = 3.0  # without a heartbeat for so long, others take over
FORGOTTEN_SECONDS = 60.0  # and then its row goes


@dataclass(slots=True)
class Heard:
    """A heartbeat, and since when it has been the same."""

    beat: int
    since: float


class LiveSchedulers:
    """Who is alive, by the heartbeats that were read so far."""

    def __init__(self, own_id: UUID) -> None:
        self._own_id = own_id
        self._heard: dict[UUID, Heard] = {}

    def hear(self, beats: Mapping[UUID, int], now: float) -> None:
        """Note the heartbeats that were read just now."""
        self._heard = {
            scheduler: known if known is not None and known.beat == beat else Heard(beat, now)
            for scheduler, beat in beats.items()
            for known in [self._heard.get(scheduler)]
        }

    def live(self, now: float) -> set[UUID]:
        """Those with heartbeats that move; ourselves in any case."""
        moving = {each for each, heard in self._heard.items() if now - heard.since < SILENT_SECONDS}
        return moving | {self._own_id}

    def forgotten(self, now: float) -> dict[UUID, int]:
        """Those that have been silent for long, with the heartbeat that was their last."""
        return {
            each: heard.beat
            for each, heard in self._heard.items()
            if each != self._own_id and now - heard.since >= FORGOTTEN_SECONDS
        }


def lanes_of(own_id: UUID, live: Iterable[UUID], lanes: int) -> list[int]:
    """The lanes that fall to one of the live schedulers."""
    ordered = sorted(live)
    return [lane for lane in range(lanes) if max(ordered, key=lambda each: _weight(each, lane)) == own_id]


def _weight(scheduler: UUID, lane: int) -> bytes:
    return hashlib.blake2b(scheduler.bytes + lane.to_bytes(2, "big"), digest_size=8).digest()
