"""Which walls a recurrence rule names: days of years, times of these days, dates added and dates taken away.

Every year that is looked at, and every day whose times are looked at in vain, counts as steps of the search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from mainspring.schedule.rule_days import RuleDays, days_of
from mainspring.schedule.rule_times import A_DAY, RuleTimes, place_of
from mainspring.schedule.timeline import EARLIEST, LATEST, MAX_STEPS, step, step_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Place = tuple[int, int]  # the day, and the second of the day

STEPS_A_YEAR = 4
FIRST_YEAR, LAST_YEAR = EARLIEST.year - 1, LATEST.year + 1  # nobody asks about other years
_FIRST, _LAST = date(FIRST_YEAR, 1, 1).toordinal(), date(LAST_YEAR, 12, 31).toordinal()
END = datetime(LAST_YEAR, 12, 31)  # noqa: DTZ001 - a wall


class RulePattern:
    """A pattern over walls. `until` is the last wall of the rule that counts; COUNT has its own.

    `added` are walls besides those of the rule; `without` are walls and whole days that do not count.
    """

    def __init__(
        self,
        parts: dict[str, str],
        starts: datetime,
        until: datetime = END,
        *,
        added: Iterable[datetime] = (),
        without: Iterable[datetime | date] = (),
    ) -> None:
        self._parts, self._starts, self._until = parts, place_of(starts), place_of(min(until, END))
        self._first_year = starts.year
        self._days, self._times = RuleDays.of(parts, starts.date()), RuleTimes.of(parts, starts)
        self._no_walls = {place_of(each) for each in without if isinstance(each, datetime)}
        self._no_days = {each.toordinal() for each in without if not isinstance(each, datetime)}
        self._added = sorted({place_of(each) for each in added if not self._is_without(place_of(each))})

    def next_wall(self, wall: datetime) -> datetime | None:
        place = place_of(wall)
        at = bisect_right(self._added, place)
        found = self._next_that_counts(max(place, _just_before(self._starts)))
        return _wall(min(filter(None, (found, *self._added[at : at + 1])), default=None))

    def prev_wall(self, wall: datetime) -> datetime | None:
        day, second = place_of(wall)
        place = (day, second + (wall.microsecond > 0))
        at = bisect_left(self._added, place)
        found = self._prev_that_counts(min(place, _just_after(self._last)))
        return _wall(max(filter(None, (found, *self._added[:at][-1:])), default=None))

    @property
    def _last(self) -> Place:
        """The last place of the rule that counts. To count to it is work, for each search that needs it."""
        if "COUNT" not in self._parts:
            return self._until
        last, steps = self._counted
        step_once(self, steps)
        return last

    def _next_that_counts(self, place: Place) -> Place | None:
        last = self._last
        while place < last:
            found = self._next(place)
            if found is None or found > last:
                return None
            if not self._is_without(found):
                return found
            step()
            place = (found[0], A_DAY) if found[0] in self._no_days else found
        return None

    def _prev_that_counts(self, place: Place) -> Place | None:
        while place > self._starts:
            found = self._prev(place)
            if found is None or found < self._starts:
                return None
            if not self._is_without(found):
                return found
            step()
            place = (found[0], 0) if found[0] in self._no_days else found
        return None

    def _is_without(self, place: Place) -> bool:
        return place[0] in self._no_days or place in self._no_walls

    def _next(self, place: Place) -> Place | None:
        """The first place of the rule after another."""
        skipped = 0
        for day in self._days_from(max(place[0], _FIRST)):
            if day < skipped:
                continue
            second = self._times.after(day, place[1] if day == place[0] else -1)
            if second is not None:
                return day, second
            step()
            skipped = self._times.next_day(day)
        return None

    def _prev(self, place: Place) -> Place | None:
        for day in self._days_back_from(min(place[0], _LAST)):
            second = self._times.before(day, place[1] if day == place[0] else A_DAY)
            if second is not None:
                return day, second
            step()
        return None

    def _days_from(self, day: int) -> Iterator[int]:
        for year in range(date.fromordinal(day).year, LAST_YEAR + 1):
            if self._days.is_in_step(year):
                step(STEPS_A_YEAR)
                days = days_of(self._days, year)
                yield from days[bisect_left(days, day) :]

    def _days_back_from(self, day: int) -> Iterator[int]:
        for year in range(date.fromordinal(day).year, max(self._first_year, FIRST_YEAR) - 1, -1):
            if self._days.is_in_step(year):
                step(STEPS_A_YEAR)
                days = days_of(self._days, year)
                yield from reversed(days[: bisect_right(days, day)])

    @cached_property
    def _counted(self) -> tuple[Place, int]:
        """Where COUNT ends, and how many steps it takes to count so far; it is given up when they are too many."""
        left, walked, last = int(self._parts["COUNT"]), 0, self._until
        for day in islice(self._days_to_count(), MAX_STEPS + 1):
            walked += 1 if self._times.counts_at_once else 8
            if day != self._starts[0] and (count := self._times.count(day)) < left:
                left -= count
                continue
            places = self._places(day, left)
            left, walked = left - len(places), walked + 2 * len(places)
            if left == 0:
                last = places[-1]
                break
        years = max(0, date.fromordinal(last[0]).year - self._first_year)
        return last, STEPS_A_YEAR * years + walked // 8

    def _days_to_count(self) -> Iterator[int]:
        following = self._starts[0]
        for year in filter(self._days.is_in_step, range(self._first_year, LAST_YEAR + 1)):
            for day in days_of(self._days, year):
                if day >= following:
                    following = self._times.next_day(day)
                    yield day

    def _places(self, day: int, most: int) -> list[Place]:
        """The first places of a day, from DTSTART on."""
        found: list[Place] = []
        second = self._starts[1] - 1 if day == self._starts[0] else -1
        while len(found) < most and (following := self._times.after(day, second)) is not None:
            found.append((day, following))
            second = following
        return found


def _just_before(place: Place) -> Place:
    return place[0], place[1] - 1


def _just_after(place: Place) -> Place:
    return place[0], place[1] + 1


def _wall(place: Place | None) -> datetime | None:
    if place is None:
        return None
    return datetime.fromordinal(place[0]) + timedelta(seconds=place[1])
