"""In which order a keeper looks at lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class LaneTurns:
    """Begins after the lane at which it was last: an error in one lane does not keep the others waiting for ever."""

    def __init__(self) -> None:
        self._last = -1

    def of(self, lanes: Iterable[int]) -> Iterator[int]:
        """These lanes, one after the other."""
        last = self._last
        for lane in sorted(lanes, key=lambda lane: (lane <= last, lane)):
            self._last = lane
            yield lane
