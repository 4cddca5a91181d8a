"""The fields of a cron expression, as values: which numbers, which special days, and whether a star came first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unit(NamedTuple):
    """What a field counts."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def everything(self) -> range:
        return range(self.least, self.most + 1)


_MONTHS = (
    *("JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE"),
    *("JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"),
)
_WEEKDAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
FULL_NAMES = {name[:3]: name for name in (*_MONTHS, *_WEEKDAYS)}
MONTHS, WEEKDAYS = tuple(name[:3] for name in _MONTHS), tuple(name[:3] for name in _WEEKDAYS)
SECOND, MINUTE, HOUR = Unit("second", 0, 59), Unit("minute", 0, 59), Unit("hour", 0, 23)
DAY, MONTH, WEEKDAY = Unit("day of month", 1, 31), Unit("month", 1, 12, MONTHS), Unit("day of week", 0, 6, WEEKDAYS)
YEAR = Unit("year", 1970, 2199)  # as far as EventBridge and Quartz count
UNITS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)
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
    """`15W`: the weekday nearest to the 15th, within its month; from the end (day is None) `LW` and `L-3W`."""

    day: int | None
    back: int = 0

    def __str__(self) -> str:
        return f"{LastDay(self.back)}W" if self.day is None else f"{self.day}W"


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

    @property
    def is_starred(self) -> bool:
        """`H/15` is a wildcard for cron, as `*/15` is."""
        return self.whole and self.step is not None

    def choices(self, unit: Unit) -> list[tuple[int, ...]]:
        """All that a job may get: one number, or every so many from one of the first."""
        size = self.last - self.first + 1
        starts = range(self.first, self.first + min(self.step or size, size))
        return [tuple(in_week(unit, n) for n in range(start, self.last + 1, self.step or size)) for start in starts]


Special = LastDay | NearestWeekday | Nth | LastWeekday | Hashed
Item = Range | Special


def in_week(unit: Unit, number: int) -> int:
    """7 is Sunday too, as 0 is."""
    return number % 7 if unit is WEEKDAY else number


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

    @property
    def hashed(self) -> tuple[Hashed, ...]:
        return tuple(each for each in self.specials if isinstance(each, Hashed))

    @property
    def others(self) -> tuple[Special, ...]:
        """The special items that no job's id decides."""
        return tuple(each for each in self.specials if not isinstance(each, Hashed))

    @cached_property
    def text(self) -> str:
        """The canonical text. What stands in front decides whether cron sees a star, so it is no matter of sorting."""
        wild = [each for each in self.hashed if each.is_starred]
        tame = [each for each in self.specials if each not in wild]
        if not self.star:
            return _joined(ranges_of(self.values), tame, wild)
        if wild:
            return _joined(wild, ranges_of(self.values), tame)
        return _joined(self._starred(), tame)

    def _starred(self) -> tuple[object, ...]:
        """`*`, or `*/5`, or `*/20,7`: the longest star, then the other numbers."""
        everything, chosen = self.unit.everything, set(self.values)
        steps = range(1, len(everything) + 1)
        step = next((each for each in steps if chosen.issuperset(everything[::each])), None)
        if step is None:  # once an H/15 has become numbers, no star stands for them
            return ranges_of(self.values)
        rest = ranges_of(tuple(sorted(chosen.difference(everything[::step]))))
        return ("*" if step == 1 else f"*/{step}", *rest)


def _joined(*items: Iterable[object]) -> str:
    return ",".join(map(str, chain(*items)))


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
