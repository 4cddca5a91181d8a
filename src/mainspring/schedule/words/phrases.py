"""Small phrases: lists, ordinals, spans of time, dates, days of the week and months."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import date, datetime, time, timedelta

MAX_LISTED = 12
WHERE_THERE_IS_ONE = ", where there is one,"
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def listed(words: Sequence[str], limit: int = MAX_LISTED) -> str:
    """`a`, `a and b`, `a, b and c`; of a long list the beginning, and how many more there are."""
    if len(words) > limit:
        words = [*words[: limit - 1], f"{len(words) - limit + 1} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int, unit: str) -> str:
    """`1 day`, `3 days`."""
    return f"{number} {unit}" if number == 1 else f"{number:,} {unit}s"


def every(number: int, unit: str) -> str:
    """`every day`, `every other day`, `every 3 days`."""
    return f"every {unit}" if number == 1 else f"every other {unit}" if number == 2 else f"every {number:,} {unit}s"


def span(length: timedelta, units: Sequence[tuple[int, str]] = _UNITS) -> str:
    """`15 minutes`, `1 hour and 30 minutes`."""
    rest, parts = length.days * 86_400 + length.seconds, []
    for size, unit in units:
        if rest >= size:
            parts.append(counted(rest // size, unit))
            rest %= size
    if length.microseconds or not parts:
        parts.append(f"{length.microseconds / 1000:g} milliseconds")
    return listed(parts)


def every_span(length: timedelta) -> str:
    """`every 15 minutes`, `every hour`, `every 24 hours`: no days, which are 23 or 25 hours long when clocks jump."""
    words = span(length, _UNITS[1:])
    return f"every {words.removeprefix('1 ')}" if words.count(" ") == 1 else f"every {words}"


def clock(at: time | datetime) -> str:
    if at.microsecond:
        return f"{at:%H:%M:%S}.{at.microsecond:06}".rstrip("0")
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def day(at: date) -> str:
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"


def moment(at: datetime) -> str:
    return f"{day(at)} at {clock(at)}"


def weekdays(numbers: Collection[int]) -> str:
    """Days of the week by number, as the words after `every`."""
    chosen = set(numbers)
    if len(chosen) == 7:
        return "day"
    if chosen == {1, 2, 3, 4, 5}:
        return "weekday"
    if len(chosen) == 6:
        return f"day except {WEEKDAYS[(set(range(7)) - chosen).pop()]}"
    from_monday = sorted(chosen, key=lambda number: (number - 1) % 7)
    last = (from_monday[0] + len(chosen) - 1) % 7
    if len(chosen) > 3 and from_monday[-1] == last:
        return f"day from {WEEKDAYS[from_monday[0]]} to {WEEKDAYS[last]}"
    return listed([WEEKDAYS[number] for number in from_monday])


def months(numbers: Collection[int]) -> str:
    """`January and July`, `June to August`."""
    return runs(sorted(numbers), [MONTHS[number - 1] for number in sorted(numbers)])


def runs(numbers: Sequence[int], words: Sequence[str]) -> str:
    """Names of numbers; three or more neighbours become `first to last`."""
    groups: list[list[int]] = []
    for place, number in enumerate(numbers):
        if groups and number == numbers[groups[-1][-1]] + 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    said = [
        f"{words[group[0]]} to {words[group[-1]]}" if len(group) > 2 else [words[place] for place in group]
        for group in groups
    ]
    return listed([each for item in said for each in ([item] if isinstance(item, str) else item)])


def step_of(numbers: Sequence[int]) -> int | None:
    """The one distance between neighbours, if there is only one."""
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None
