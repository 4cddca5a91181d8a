"""Times of day as fields of cron: the fewest second, minute and hour fields that together are these times."""

from __future__ import annotations

from collections import defaultdict
from datetime import time
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

Fields = tuple[str, str, str]  # second, minute, hour

DAY_SECONDS = 86_400


def field(values: Set[int], first: int, last: int) -> str:
    """A set of numbers as a list or a range; all of them as a star."""
    numbers = sorted(values)
    if len(numbers) == last - first + 1:
        return "*"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers))


def stepped(values: Set[int], size: int) -> str:
    """A set of numbers from 0 up to a size, as a step if it is one: */15, 10-50/10.

    A star is more than a spelling: on days when the clock jumps, cron treats `*/6` as elapsed time and `0,6,12,18` as
    times of day. So steps are spelled for steps only.
    """
    numbers = sorted(values)
    steps = {after - before for before, after in pairwise(numbers)}
    step = steps.pop() if len(steps) == 1 else 0
    if step > 1 and numbers[0] == 0 and len(numbers) == -(-size // step):
        return f"*/{step}"
    if step > 1 and len(numbers) > 2:
        return f"{numbers[0]}-{numbers[-1]}/{step}"
    return field(values, 0, size - 1)


def clock_fields(times: Iterable[time], spell: Callable[[Set[int], int], str]) -> list[Fields]:
    """The fewest second, minute and hour fields that together are these times of day, hours of equal minutes joined."""
    minutes: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for each in times:
        minutes[each.hour][each.minute].add(each.second)
    hours: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for hour, seconds_of in minutes.items():
        for second, minute in _minute_fields(seconds_of, spell):
            hours[second, minute].add(hour)
    return [(second, minute, _hours(set_of_hours)) for (second, minute), set_of_hours in hours.items()]


def _hours(values: set[int]) -> str:
    return "0-23" if len(values) == 24 else stepped(values, 24).replace("*/", "0-23/")


def listed_numbers(values: Set[int], size: int) -> str:
    """Times of day that were named one by one stay a list."""
    return ",".join(map(str, sorted(values))) if len(values) < size else f"0-{size - 1}"


def _minute_fields(seconds_of: dict[int, set[int]], spell: Callable[[Set[int], int], str]) -> list[tuple[str, str]]:
    groups: defaultdict[str, set[int]] = defaultdict(set)
    for minute, seconds in seconds_of.items():
        groups[spell(seconds, 60)].add(minute)
    return [(second, spell(minutes, 60)) for second, minutes in groups.items()]


def times_within(begin: time, end: time, step: int, *, has_end: bool) -> list[time]:
    """Every `step` seconds from `begin` to `end`, over midnight if the end is earlier."""
    first, last = second_of(begin), second_of(end)
    last += DAY_SECONDS if last < first else 0
    return [time_at(second % DAY_SECONDS) for second in range(first, last + has_end, step)]


def second_of(at: time) -> int:
    return at.hour * 3600 + at.minute * 60 + at.second


def time_at(second: int) -> time:
    return time(second // 3600, second // 60 % 60, second % 60)
