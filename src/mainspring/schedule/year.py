"""A year at a glance: how often a schedule fires on each day, the busiest minute, and the rows of a heat map."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.sets import Union
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import TZDATA_VERSION, instant_of, segment_at, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.schedule.schedule import Schedule

MAX_COUNTED = 200_000  # so many occurrences are counted one by one
LEVELS = 4
DAY = timedelta(days=1)
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
YEARS = range(1970, 2101)


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    """Occurrences by local day. `counted_until` is the first day not counted any more, if there were too many."""

    year: int
    counts: dict[date, int]
    busiest_minute: datetime | None
    most_in_a_minute: int
    counted_until: date | None
    tzdata: str

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def most_in_a_day(self) -> int:
        return max(self.counts.values(), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Seven rows of weeks, Monday first. A cell is a level from 0 to `LEVELS`, or None outside the year."""

    months: tuple[tuple[int, str], ...]  # the column where each month begins, and its name
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    bounds: tuple[int, ...]  # the most that each level stands for


def year_of(schedule: Schedule, year: int, *, job: str = "") -> Year:
    """Count a year, local to the schedule's zone."""
    if year not in YEARS:
        raise broken_rule("year", year, f"must be from {YEARS[0]} to {YEARS[-1]}", code="invalid-year")
    counter = _Counter(schedule, job)
    counts = {day: count for day in _days(year) if (count := counter.count(day))}
    return Year(
        year=year,
        counts=counts,
        busiest_minute=counter.busiest_minute,
        most_in_a_minute=counter.most_in_a_minute,
        counted_until=counter.stopped_at,
        tzdata=TZDATA_VERSION,
    )


def _days(year: int) -> Iterator[date]:
    day = date(year, 1, 1)
    while day.year == year:
        yield day
        day += DAY


class _Counter:
    """Counts day by day. Of cron expressions the times of day are known, and need not be gone through one by one."""

    def __init__(self, schedule: Schedule, job: str) -> None:
        self._schedule, self._job, self._zone = schedule, job, zone_named(schedule.zone)
        self._left = MAX_COUNTED
        self._next_at: datetime | None = datetime.min.replace(tzinfo=UTC)
        self._crons = self._cron_parts()
        self._counts: dict[tuple[int, ...], tuple[int, int]] = {}
        self.busiest_minute: datetime | None = None
        self.most_in_a_minute = 0
        self.stopped_at: date | None = None

    def count(self, day: date) -> int:
        begin, end = self._bounds(day)
        if self.stopped_at is not None or self._next_at is None or self._next_at >= end:
            return 0
        first = self._schedule.next_after(begin - TICK, job=self._job)
        self._next_at = None if first is None else first.nominal_at
        if first is None or first.nominal_at >= end:
            return 0
        if not self._crons or self._is_cut(begin, end):
            return self._one_by_one(day, self._schedule, begin, end)
        if self._is_calm(begin, end):
            return self._by_times_of_day(first.nominal_at, begin, end)
        return self._on_a_jump(day, begin, end)

    def _bounds(self, day: date) -> tuple[datetime, datetime]:
        """The day in UTC. Days that do not exist (Apia, 30 December 2011) are empty."""
        begin, end = (instant_of(self._zone, datetime.combine(each, time(0))) for each in (day, day + DAY))
        return begin, max(begin, end)

    def _is_cut(self, begin: datetime, end: datetime) -> bool:
        starts_at, ends_at = self._schedule.starts_at, self._schedule.ends_at
        return (starts_at is not None and starts_at > begin) or (ends_at is not None and ends_at < end)

    def _is_calm(self, begin: datetime, end: datetime) -> bool:
        """Whether the clock does not jump on that day."""
        segment = segment_at(self._zone, begin)
        stays = segment.end >= end or not segment.shift_out
        return stays and not (segment.start == begin and segment.shift_in)

    # ── cron expressions ────────────────────────────────────────────────────────────────────────────────────

    def _cron_parts(self) -> list[tuple[Cron, Schedule]]:
        """The expressions that make up the schedule, each as a schedule; none, if there is more to it."""
        when = self._schedule.when
        parts = when.parts if isinstance(when, Union) else (when,)
        if self._schedule.calendars or self._schedule.max_runs is not None:
            return []
        crons = [part.resolved(self._job) for part in parts if isinstance(part, Cron)]
        return [(cron, replace(self._schedule, when=cron)) for cron in crons] if len(crons) == len(parts) else []

    def _by_times_of_day(self, first_at: datetime, begin: datetime, end: datetime) -> int:
        """On a day on which it fires at all, an expression fires at all its times of day."""
        firing = tuple(place for place, (_, part) in enumerate(self._crons) if _fires(part, begin, end))
        if firing not in self._counts:
            seconds = set().union(*(self._crons[place][0].seconds_of_day() for place in firing))
            self._counts[firing] = len(seconds), max(Counter(second // 60 for second in seconds).values())
        count, in_a_minute = self._counts[firing]
        self._note(first_at, in_a_minute)
        return count

    def _on_a_jump(self, day: date, begin: datetime, end: datetime) -> int:
        """Clocks jump by whole minutes, which wildcards do not notice: one second of each minute will do."""
        cron, part = self._crons[0]
        if len(self._crons) > 1 or not cron.follows_elapsed_time:
            return self._one_by_one(day, self._schedule, begin, end)
        second = cron.fields[0]
        thin = Cron((replace(second, values=second.values[:1], star=False), *cron.fields[1:]))
        self._note(begin, len(second.values))
        return len(second.values) * self._one_by_one(day, replace(part, when=thin), begin, end)

    # ── one by one ──────────────────────────────────────────────────────────────────────────────────────────

    def _one_by_one(self, day: date, schedule: Schedule, begin: datetime, end: datetime) -> int:
        count, minute, in_minute = 0, None, 0
        for each in schedule.between(begin, end, job=self._job):
            this = each.nominal_at.replace(second=0, microsecond=0)
            in_minute = in_minute + 1 if this == minute else 1
            minute = this
            self._note(this, in_minute)
            count += 1
            self._left -= 1
            if self._left <= 0:
                self.stopped_at = day
                return 0
        return count

    def _note(self, instant: datetime, count: int) -> None:
        if count > self.most_in_a_minute:
            self.most_in_a_minute, self.busiest_minute = count, instant.replace(second=0, microsecond=0)


def _fires(schedule: Schedule, begin: datetime, end: datetime) -> bool:
    found = schedule.next_after(begin - TICK)
    return found is not None and found.nominal_at < end


def heat_map(year: Year) -> HeatMap:
    """The counts as levels, in rows of weeks."""
    first = date(year.year, 1, 1)
    offset = first.weekday()
    columns = (offset + (date(year.year, 12, 31) - first).days) // 7 + 1
    cells: list[list[int | None]] = [[None] * columns for _ in WEEK]
    for day in _days(year.year):
        place = offset + (day - first).days
        cells[place % 7][place // 7] = _level(year.counts.get(day, 0), year.most_in_a_day)
    starts = [(offset + (date(year.year, month, 1) - first).days) // 7 for month in range(1, 13)]
    return HeatMap(
        months=tuple((column, f"{date(year.year, month, 1):%b}") for month, column in enumerate(starts, 1)),
        rows=tuple((name, tuple(row)) for name, row in zip(WEEK, cells, strict=True)),
        bounds=tuple(year.most_in_a_day * level // LEVELS for level in range(LEVELS + 1)),
    )


def _level(count: int, most: int) -> int:
    return 0 if count == 0 else -(-count * LEVELS // most)
