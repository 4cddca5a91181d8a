"""How many of a set of schedules fall on each second or minute of a range.

The set is kept in *groups*: schedules that mean the same instants (equal in all they say, equal numbers in place of H)
are one group with a weight, so that ten million schedules cost as much as the few thousand different ones among them. A
group is walked once; what it found is remembered, so that adding to it again is plain addition.

A weight stands for as many jobs, each with an id of its own: with H, each has its own numbers. Of a herd of more than
`MAX_SEEDS`, each time of day that H leaves open gets an equal share; where H stands for days, beside other numbers or
within a union, so many ids, evenly weighted, are counted as if they were all of it.

A spread is counted as what is to be expected: each occurrence in equal shares over its window. Which job of a herd gets
which second is known to the job's own schedule; where the herd as a whole goes is what a forecast wants to know.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.cron_hash import all_choices, is_even
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.sets import forms_of
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import TZDATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.schedule import Schedule

MAX_BUCKETS = 100_000  # a day of seconds, or two months of minutes
MAX_REMEMBERED = 4_000_000  # numbers over all groups: 32 MB
MAX_SEEDS = 1_000
STEPS = (timedelta(seconds=1), timedelta(minutes=1))
MAX_COUNT = 1_000_000_000  # of one schedule
MAX_IN_BUCKET = (1 << 31) - 1  # shares are 64 bits, of which 32 are behind the point
WHOLE = 1 << 32  # shares are whole numbers of this fraction, so that taking away leaves exactly nothing
NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A second or a minute, and how many fall on it."""

    at: datetime
    count: float


@dataclass(frozen=True, slots=True)
class Group:
    """Schedules that mean the same instants. `job` matters only where an H could not be replaced by its number.

    `choices`: each of them fires at one in so many of the instants, and nobody asks which.
    """

    schedule: Schedule
    job: str
    choices: int = 1
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Groups are looked up over and over, and a schedule has many fields to hash."""
        object.__setattr__(self, "_hash", hash((self.schedule, self.job, self.choices)))

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def of(schedule: Schedule, job: str) -> Group:
        if isinstance(schedule.when, Cron) and schedule.when.is_hashed:
            return Group(replace(schedule, when=schedule.when.resolved(job)), "")
        return Group(schedule, job if _is_hashed(schedule) else "")

    @staticmethod
    def even(schedule: Schedule, cron: Cron) -> Group:
        """A herd as a whole: whatever H may become, in equal shares."""
        fields, choices = all_choices(cron.fields)
        return Group(replace(schedule, when=Cron(fields)), "", prod(choices))


class Load:
    """A histogram over a range, in steps of a second or a minute."""

    def __init__(self, begin: datetime, end: datetime, *, step: timedelta = STEPS[1]) -> None:
        if step not in STEPS:
            raise broken_rule("step", str(step), "must be a second or a minute", code="invalid-step")
        size = -((begin - end) // step) if end > begin else 0
        if not 1 <= size <= MAX_BUCKETS:
            rule = f"must be 1 to {MAX_BUCKETS:,} steps of {step} long"
            raise broken_rule("range", f"{begin.isoformat()} to {end.isoformat()}", rule, code="invalid-range")
        self.begin, self.end, self.step, self.size, self.tzdata = begin, end, step, size, TZDATA_VERSION
        # The change of the count from each bucket to the next, in shares: a window of any length costs two additions.
        self._changes = array("q", bytes(8 * (size + 1)))
        self._weights: Counter[Group] = Counter()
        self._windows: OrderedDict[Group, array[int]] = OrderedDict()
        self._remembered = 0
        self.walked = 0  # occurrences, so far

    def add(self, schedule: Schedule, *, weight: int = 1, job: str = "") -> Counter[Group]:
        """Count a schedule, `weight` times: as that many jobs, of which `job` is the first. Answers with its groups."""
        if not 1 <= weight <= MAX_COUNT:
            raise _wrong_count(weight)
        herd = _herd(schedule, job, weight)
        try:
            for group, share in herd.items():
                self._add(group, share)
        except OverflowError:  # of all that was added, more falls on one bucket than can be counted
            raise _wrong_count(weight) from None
        return herd

    def _add(self, group: Group, weight: int) -> None:
        self._weights[group] += weight
        windows, changes = self._windows_of(group), self._changes
        for place in range(0, len(windows), 3):
            first, last, share = windows[place : place + 3]
            changes[first] += share * weight
            changes[last] -= share * weight

    def add_evenly(self, every: timedelta, *, weight: int = 1) -> None:
        """Count schedules that fire as often as that, each from another instant on: as many in every bucket."""
        shares = weight * (WHOLE * self.step // every)
        self._changes[0] += shares
        self._changes[self.size] -= shares

    @property
    def schedules(self) -> int:
        return self._weights.total()

    @property
    def groups(self) -> int:
        return len(self._weights)

    def counts(self) -> list[float]:
        """How many fall on each bucket."""
        return [_as_count(shares) for shares in accumulate(self._changes[:-1])]

    def fullest(self, number: int = 10) -> list[Bucket]:
        """The buckets with the most, fullest first, of equal ones the earliest."""
        return sorted(self, key=lambda bucket: (-bucket.count, bucket.at))[:number]

    def of_groups(self, herd: Counter[Group], at: datetime) -> float:
        """How many of these groups' schedules fall on the bucket of an instant."""
        return _as_count(sum(weight * self._share(group, self._place(at)) for group, weight in herd.items()))

    def _share(self, group: Group, place: int) -> int:
        windows = self._windows_of(group)
        # Neither firsts nor lasts ever go back, from one window to the next.
        begin, end = bisect_right(windows[1::3], place), bisect_right(windows[0::3], place)
        return sum(windows[2::3][begin:end])

    def __iter__(self) -> Iterator[Bucket]:
        """Every bucket that is not empty."""
        return (Bucket(self.begin + place * self.step, count) for place, count in enumerate(self.counts()) if count)

    def _windows_of(self, group: Group) -> array[int]:
        """Bucket after bucket: the first, the one after the last, and the share that falls on each."""
        found = self._windows.get(group)
        if found is None:
            found = self._windows[group] = array("q", self._walk(group))
            self._remembered += len(found)
            self.walked += len(found) // 3
            while self._remembered > MAX_REMEMBERED and len(self._windows) > 1:
                self._remembered -= len(self._windows.popitem(last=False)[1])
        self._windows.move_to_end(group)
        return found

    def _walk(self, group: Group) -> Iterator[int]:
        spread = group.schedule.spread or NO_TIME
        plain = replace(group.schedule, spread=None)
        found = [each.nominal_at for each in plain.between(self.begin - spread, self.end, job=group.job)]
        beyond = plain.next_after(found[-1], job=group.job) if found and spread else None
        following = [*found[1:], beyond.nominal_at if beyond else None]
        for nominal_at, next_at in zip(found, following, strict=False):
            window = min(spread, next_at - nominal_at) if next_at else spread
            first = self._place(nominal_at)
            last = max(first, self._place(nominal_at + window - TICK)) + 1
            share = WHOLE // ((last - first) * group.choices)
            if last > 0:
                yield from (max(first, 0), min(last, self.size), share)

    def _place(self, instant: datetime) -> int:
        return (instant - self.begin) // self.step


def _wrong_count(count: int) -> InvalidSchedule:
    return broken_rule(
        "count",
        count,
        f"must be 1 to {MAX_COUNT:,}, and all of them at most {MAX_IN_BUCKET:,} in a minute",
        code="invalid-count",
        hint="Count fewer schedules, or those that fire less often.",
    )


def _is_hashed(schedule: Schedule) -> bool:
    return any(isinstance(form, Cron) and form.is_hashed for form in forms_of(schedule.when))


def _herd(schedule: Schedule, job: str, weight: int) -> Counter[Group]:
    if weight > MAX_SEEDS and isinstance(schedule.when, Cron) and is_even(schedule.when.fields):
        return Counter({Group.even(schedule, schedule.when): weight})
    herd: Counter[Group] = Counter()
    for seed, share in _seeds(schedule, job, weight):
        herd[Group.of(schedule, seed)] += share
    return herd


def _seeds(schedule: Schedule, job: str, weight: int) -> Iterator[tuple[str, int]]:
    """The ids that stand for the jobs, and how many jobs each stands for."""
    if not _is_hashed(schedule):
        yield job, weight
        return
    seeds = min(weight, MAX_SEEDS)
    for number in range(seeds):
        yield f"{job}#{number}" if number else job, weight // seeds + (number < weight % seeds)


def _as_count(shares: int) -> float:
    """Shares of many windows add up to a whole but for the last bits."""
    count = round(shares / WHOLE, 4)
    return int(count) if count == int(count) else count
