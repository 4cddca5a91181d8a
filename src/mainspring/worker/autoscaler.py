"""Decides how many processes a supervisor should have. Up at once, down slowly and one at a time."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.worker.settings import WorkerSettings

DOWN_AFTER_SECONDS = 60.0  # fewer must have been enough for so long
SPARE = 0.75  # … and with this share of the slots that would be left


class Autoscaler:
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
