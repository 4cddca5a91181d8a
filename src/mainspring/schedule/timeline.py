"""What every form of a schedule becomes: something that knows the instant after and the instant before another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from mainspring.schedule.daylight import GapPolicy, RepeatPolicy

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2500, 1, 1, tzinfo=UTC)


class Timeline(Protocol):
    """A set of instants in order. Both answers are strict: never the instant that was asked about."""

    def next_after(self, instant: datetime) -> datetime | None: ...

    def prev_before(self, instant: datetime) -> datetime | None: ...

    def __hash__(self) -> int: ...  # by identity: answers are remembered for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a form has to know besides itself to become a timeline."""

    zone: ZoneInfo
    gap: GapPolicy = GapPolicy.AS_CRON
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON
    starts_at: datetime | None = None  # where intervals without an anchor begin
    job: str = ""  # what `H` hashes
