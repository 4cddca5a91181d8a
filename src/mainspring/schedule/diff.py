"""Two versions of a schedule: which instants appear, vanish or move."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from mainspring.schedule.faults import broken_rule
from mainspring.schedule.zones import TZDATA_VERSION, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from mainspring.schedule.schedule import Schedule

MAX_COMPARED = 50_000
MAX_CHANGES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An instant that appears (`old_at` is None), vanishes (`new_at` is None) or moves within its day."""

    old_at: datetime | None
    new_at: datetime | None

    @property
    def at(self) -> datetime:
        at = self.old_at or self.new_at
        assert at is not None
        return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The changes in order. `compared_until` is where comparing stopped, if there was too much to compare."""

    changes: tuple[Change, ...]
    kept: int
    compared_until: datetime | None
    tzdata: str

    @property
    def appeared(self) -> list[datetime]:
        return [each.new_at for each in self.changes if each.new_at is not None and each.old_at is None]

    @property
    def vanished(self) -> list[datetime]:
        return [each.old_at for each in self.changes if each.old_at is not None and each.new_at is None]

    @property
    def moved(self) -> list[tuple[datetime, datetime]]:
        return [(each.old_at, each.new_at) for each in self.changes if each.old_at and each.new_at]


def diff(old: Schedule, new: Schedule, begin: datetime, end: datetime, *, job: str = "") -> Diff:
    """Compare the nominal instants from `begin` on and before `end`."""
    if end <= begin:
        raise broken_rule("end", end.isoformat(), f"must be after {begin.isoformat()}", code="invalid-range")
    walk = _Walk(old, new, begin, end, job)
    changes = sorted(_paired(list(walk), old), key=lambda change: change.at)
    return Diff(changes=tuple(changes), kept=walk.kept, compared_until=walk.stopped_at, tzdata=TZDATA_VERSION)


class _Walk:
    """Both schedules side by side; yields what only one of them has."""

    def __init__(self, old: Schedule, new: Schedule, begin: datetime, end: datetime, job: str) -> None:
        self._old = (each.nominal_at for each in old.between(begin, end, job=job))
        self._new = (each.nominal_at for each in new.between(begin, end, job=job))
        self.kept = 0
        self.stopped_at: datetime | None = None

    def __iter__(self) -> Iterator[Change]:
        before, after, changes = next(self._old, None), next(self._new, None), 0
        while before is not None or after is not None:
            if before == after:
                self.kept += 1
                before, after = next(self._old, None), next(self._new, None)
            elif after is None or (before is not None and before < after):
                changes += 1
                yield Change(old_at=before, new_at=None)
                before = next(self._old, None)
            else:
                changes += 1
                yield Change(old_at=None, new_at=after)
                after = next(self._new, None)
            if self.kept + changes >= MAX_COMPARED or changes >= MAX_CHANGES:
                self.stopped_at = min(filter(None, (before, after)), default=None)
                return


def _paired(changes: list[Change], old: Schedule) -> Iterator[Change]:
    """Of the same local day, the first that vanishes moved to the first that appears, and so on."""
    zone = zone_named(old.zone)

    def day_of(change: Change) -> date:
        return change.at.astimezone(zone).date()

    for _, group in groupby(sorted(changes, key=day_of), key=day_of):
        of_day = list(group)
        gone = [each.old_at for each in of_day if each.old_at is not None]
        come = [each.new_at for each in of_day if each.new_at is not None]
        pairs = min(len(gone), len(come))
        yield from (Change(old_at=a, new_at=b) for a, b in zip(gone[:pairs], come[:pairs], strict=True))
        yield from (Change(old_at=each, new_at=None) for each in gone[pairs:])
        yield from (Change(old_at=None, new_at=each) for each in come[pairs:])
