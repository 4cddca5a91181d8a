"""Which occurrence of a schedule a run is, as its handler sees it. It travels in the run's headers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULE, VERSION, NOMINAL, PREVIOUS = "schedule", "schedule_version", "occurrence", "previous_occurrence"
HEADERS = (SCHEDULE, VERSION, NOMINAL, PREVIOUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOccurrence:
    """A nominal instant of a schedule: the one the run is for, whenever it starts.

    A report about the past day covers the `interval`, from the instant before to this one: also if it starts late, is
    retried, or is made up for long after.
    """

    schedule: str
    version: int
    nominal_at: datetime
    previous_at: datetime | None  # None: there is none before

    @property
    def interval(self) -> tuple[datetime | None, datetime]:
        """What has passed since the instant before."""
        return self.previous_at, self.nominal_at


def occurrence_of(headers: Mapping[str, str]) -> RunOccurrence | None:
    """None for a run that no schedule made, or that somebody triggered by hand."""
    if NOMINAL not in headers:
        return None
    previous = headers.get(PREVIOUS)
    return RunOccurrence(
        schedule=headers[SCHEDULE],
        version=int(headers[VERSION]),
        nominal_at=datetime.fromisoformat(headers[NOMINAL]),
        previous_at=None if previous is None else datetime.fromisoformat(previous),
    )
