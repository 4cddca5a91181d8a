"""The six fields of a cron expression, as values: which numbers, which special days, and whether a star came first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Unit(NamedTuple):
    """What a field counts."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def everything(self) -> range:
        return range(self.least, self.most + 1)


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SECOND, MINUTE, HOUR = Unit("second", 0, 59), Unit("minute", 0, 59), Unit("hour", 0, 23)
DAY, MONTH, WEEKDAY = Unit("day of month", 1, 31), Unit("month", 1, 12, MONTHS), Unit("day of week", 0, 6, WEEKDAYS)
UNITS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
LAST_HASHED_DAY = 28  # H never picks a day that some months do not have


@dataclass(frozen=True, slots=True)
class Range:
    """`first-last/step`; a single number when first is last."""

    first: int
    last: int
    step: int = 1

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}-{self.last}" + (f"/{self.step}" if self.step > 1 else "")


@dataclass(frozen=True, slots=True, order=True)
class LastDay:
    """`L`, or `L-3`: so many days before the last of the month."""

    back: int = 0

    def __str__(self) -> str:
        return f"L-{self.back}" if self.back else "L"


@dataclass(frozen=True, slots=True)
class NearestWeekday:
    """`15W`: the weekday nearest to the 15th, within its month; `LW` (day is None): the last weekday of the month."""

    day: int | None

    def __str__(self) -> str:
        return "LW" if self.day is None else f"{self.day}W"


@dataclass(frozen=True, slots=True)
class Nth:
    """`2#1`: the first Tuesday of the month."""

    weekday: int
    nth: int

    def __str__(self) -> str:
        return f"{self.weekday}#{self.nth}"


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """`5L`: the last Friday of the month."""

    weekday: int

    def __str__(self) -> str:
        return f"{self.weekday}L"


@dataclass(frozen=True, slots=True)
class Hashed:
    """`H`, `H(0-29)`, `H/15`, `H(8-17)/2`: a place that the job's id decides."""

    first: int
    last: int
    step: int | None = None
    whole: bool = True  # written without brackets

    def __str__(self) -> str:
        return "H" + ("" if self.whole else f"({self.first}-{self.last})") + (f"/{self.step}" if self.step else "")

    def values(self, unit: Unit, job: str) -> range:
        digest = hashlib.blake2b(f"{unit.name}\0{job}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest)
        if self.step is None:
            chosen = self.first + number % (self.last - self.first + 1)
            return range(chosen, chosen + 1)
        return range(self.first + number % min(self.step, self.last - self.first + 1), self.last + 1, self.step)


Special = LastDay | NearestWeekday | Nth | LastWeekday | Hashed
Item = Range | Special


@dataclass(frozen=True)
class CronField:
    """One field: its numbers, its special items, and whether it began with a star, which changes how cron reads it."""

    unit: Unit
    values: tuple[int, ...]
    specials: tuple[Special, ...] = ()
    star: bool = False

    @cached_property
    def is_full(self) -> bool:
        return len(self.values) == len(self.unit.everything)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The numbers as ranges, shortest first way to say them, then the special items."""
        return (*ranges_of(self.values), *self.specials)

    @cached_property
    def text(self) -> str:
        if self.star:
            return self._starred()
        return ",".join(map(str, self.items))

    def _starred(self) -> str:
        """`*`, or `*/5`, or `*/20,7`: a star keeps its place in front."""
        everything, chosen = self.unit.everything, set(self.values)
        rest: tuple[Item, ...] = self.specials
        head = ""
        if not any(isinstance(each, Hashed) and each.whole for each in self.specials):
            step = next(n for n in range(1, len(everything) + 1) if chosen.issuperset(everything[::n]))
            head = "*" if step == 1 else f"*/{step}"
            rest = (*ranges_of(tuple(sorted(chosen.difference(everything[::step])))), *self.specials)
        return ",".join([head, *map(str, rest)] if head else map(str, rest))

    def resolved(self, job: str) -> CronField:
        """The same field with the job's own numbers in place of H."""
        hashed = [each for each in self.specials if isinstance(each, Hashed)]
        if not hashed:
            return self
        values = set(self.values).union(*(each.values(self.unit, job) for each in hashed))
        others = tuple(each for each in self.specials if not isinstance(each, Hashed))
        return CronField(self.unit, tuple(sorted(values)), others, self.star)


def ranges_of(values: tuple[int, ...]) -> tuple[Range, ...]:
    """Sorted numbers as few ranges: one with a step when that says it all, else runs of neighbours."""
    if len(values) > 2:
        step = values[1] - values[0]
        if step > 1 and values == tuple(range(values[0], values[-1] + 1, step)):
            return (Range(values[0], values[-1], step),)
    ranges: list[Range] = []
    for value in values:
        if ranges and ranges[-1].last == value - 1:
            ranges[-1] = Range(ranges[-1].first, value)
        else:
            ranges.append(Range(value, value))
    return tuple(part for each in ranges for part in _apart(each))


def _apart(neighbours: Range) -> tuple[Range, ...]:
    """Two neighbours read better as `1,2` than as `1-2`."""
    first, last = neighbours.first, neighbours.last
    return (Range(first, first), Range(last, last)) if last == first + 1 else (neighbours,)
