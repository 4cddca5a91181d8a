"""Which occurrence of a schedule a run is, as its handler sees it. It travels in the run's headers.

There it is one short text, since it goes from line to lease to history with every run of a schedule: version, nominal
instant in seconds since 1970, seconds since the instant before (`-` if there is none), and the schedule's name. If the
schedule is spread there is another: how many seconds later the run was due, which its own due instant does not say any
more once it is retried. People and handlers see five headers instead; runs of older programs, and backfilled ones, have
these as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULE, VERSION, NOMINAL, PREVIOUS = "schedule", "schedule_version", "occurrence", "previous_occurrence"
DUE = "occurrence_due"  # absent if it was due at its nominal instant
HEADERS = (SCHEDULE, VERSION, NOMINAL, PREVIOUS, DUE)
PACKED, PACKED_DUE = "@occurrence", "@due"  # not names that people can give a header
NO_PREVIOUS = "-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOccurrence:
    """A nominal instant of a schedule: the one the run is for, whenever it starts.

    A report about the past day covers the `interval`, from the instant before to this one: also if it starts late, is
    retried, or is made up for long after.
    """

    schedule: str
    version: int
    nominal_at: datetime
    due_at: datetime  # when it could start: later than the nominal instant if the schedule is spread
    previous_at: datetime | None  # None: there is none before

    @property
    def interval(self) -> tuple[datetime | None, datetime]:
        """What has passed since the instant before."""
        return self.previous_at, self.nominal_at


def occurrence_of(headers: Mapping[str, str]) -> RunOccurrence | None:
    """None for a run that no schedule made, or that somebody triggered by hand."""
    if NOMINAL not in headers:
        return None
    nominal, previous = headers[NOMINAL], headers.get(PREVIOUS)
    return RunOccurrence(
        schedule=headers[SCHEDULE],
        version=int(headers[VERSION]),
        nominal_at=datetime.fromisoformat(nominal),
        due_at=datetime.fromisoformat(headers.get(DUE, nominal)),
        previous_at=None if previous is None else datetime.fromisoformat(previous),
    )


def unpacked(headers: dict[str, str]) -> dict[str, str]:
    """The headers with those that say which occurrence the run is for, instead of what it carries."""
    packed, later = headers.pop(PACKED, None), headers.pop(PACKED_DUE, None)
    if packed is None:
        return headers
    version, nominal, since_previous, schedule = packed.split(" ", 3)
    headers |= {SCHEDULE: schedule, VERSION: version, NOMINAL: _instant_text(Decimal(nominal))}
    if since_previous != NO_PREVIOUS:
        headers[PREVIOUS] = _instant_text(Decimal(nominal) - Decimal(since_previous))
    if later is not None:
        headers[DUE] = _instant_text(Decimal(nominal) + Decimal(later))
    return headers


def _instant_text(seconds: Decimal) -> str:
    instant = _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
