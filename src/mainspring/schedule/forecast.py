"""How many runs of many schedules will be due in each minute, who makes the peaks, and what would flatten them.

The schedules come counted, equal ones together (`SpecCount`), and may be a sample of all there are. The work is
bounded: of many different ones `MAX_SPECS` are walked, each chosen as often as its share of all schedules is, the most
frequent first; and when `MAX_WALKED` occurrences were looked at, the last ones that were walked stand for the rest.
Rare intervals, of which there is one for each instant that somebody counts from, come last, and fall evenly on all
minutes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from mainspring.errors import InvalidSchedule
from mainspring.schedule.interval import Interval
from mainspring.schedule.load import MAX_SEEDS, NO_TIME, STEPS, Load
from mainspring.schedule.walls import TICK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mainspring.schedule.load import Bucket, Group
    from mainspring.schedule.schedule import Schedule

MAX_SPECS = 1_500  # a spec for each minute of a day is counted as it is
MAX_WALKED = 20_000
LEAST_SPECS = 20
STAND_INS = 200
OFTEN = timedelta(hours=1)
MAX_MAKERS = 3
FEW = 10  # runs in one minute: nothing that would have to be flattened
SPREADS = tuple(timedelta(minutes=number) for number in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecCount:
    """Schedules that say the same: how many there are, and the names of those that matter, for H."""

    schedule: Schedule
    count: int
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMaker:
    """Schedules that say the same, and their part of a peak."""

    when: str  # the canonical text
    schedules: int
    count: float  # of their runs are due in that minute
    name: str | None  # of one of them
    spread: timedelta | None = None  # that would flatten the peak
    flattened_to: float | None = None  # and how many runs would be left of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A minute with many runs, and the schedules that have the most of them, those first."""

    at: datetime
    count: float
    makers: tuple[PeakMaker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """How many runs will be due in each step of a stretch of time. Spreads are counted in equal shares."""

    begin: datetime
    end: datetime
    step: timedelta
    schedules: int
    is_estimate: bool  # counted from a part of the schedules
    counts: tuple[float, ...]
    peaks: tuple[Peak, ...]
    left_out: int  # schedules that cannot be decided
    tzdata: str

    @property
    def total(self) -> float:
        return sum(self.counts)


def forecast(
    specs: Sequence[SpecCount],
    begin: datetime,
    end: datetime,
    *,
    step: timedelta = STEPS[1],
    share: float = 1.0,
    peaks: int = 5,
    unread: int = 0,
) -> Forecast:
    """The forecast over all schedules, of which `specs` are the given share; `unread` more cannot be read."""
    counter = _SpecCounter(Load(begin, end, step=step))
    chosen = _chosen(specs)
    counter.count(chosen)
    counts = counter.load.counts()
    counter.usual = sum(counts) / len(counts)
    wanted = sum(each.count for each in specs)
    scale = wanted / sum(each.count for each in chosen) / share if chosen else 1.0
    return Forecast(
        begin=begin,
        end=end,
        step=step,
        schedules=round((wanted + unread) / share),
        is_estimate=scale != 1.0 or len(counter.herds) < len(specs) - counter.undecided,
        counts=tuple(_scaled(count, scale) for count in counts),
        peaks=tuple(counter.peak(bucket, scale) for bucket in counter.load.fullest(peaks)),
        left_out=unread + counter.left_out,
        tzdata=counter.load.tzdata,
    )


def _chosen(specs: Sequence[SpecCount]) -> list[SpecCount]:
    """All, or as many as are walked: evenly placed picks, each of which counts as one. The most frequent first."""
    if len(specs) > MAX_SPECS:
        mixed = sorted(specs, key=lambda each: crc32(each.schedule.text.encode("utf-8", "replace")))
        ends = [0, *accumulate(each.count for each in mixed)]
        picks = [end * MAX_SPECS // ends[-1] for end in ends]
        specs = [
            SpecCount(schedule=each.schedule, count=last - first, names=each.names[: last - first])
            for each, (first, last) in zip(mixed, pairwise(picks), strict=True)
            if last > first
        ]
    few = sum(each.count for each in specs) / 50
    return sorted(specs, key=lambda each: (each.count < few and _interval(each.schedule) is not None, -each.count))


@dataclass(slots=True)
class _SpecCounter:
    load: Load
    herds: list[tuple[SpecCount, Counter[Group]]] = field(default_factory=list)
    undecided: int = 0  # specs
    left_out: int = 0  # and their schedules
    usual: float = 0.0  # in a step, on average

    def count(self, specs: Sequence[SpecCount]) -> None:
        for place, each in enumerate(specs):
            # A first one that fires every second must not leave all others uncounted.
            if self.load.walked > (MAX_WALKED if place >= LEAST_SPECS else 10 * MAX_WALKED):
                self._let_stand_in(specs[place:])
                return
            try:
                self.herds.append((each, self._herd(each)))
            except InvalidSchedule:  # so sparse that it cannot be decided; the scheduler pauses it
                self.undecided += 1
                self.left_out += each.count

    def _let_stand_in(self, rest: Sequence[SpecCount]) -> None:
        """Count, for those that are not walked, the rarest that were: what is frequent was walked for itself."""
        for each in rest:
            if (every := _interval(each.schedule)) is not None:
                self.load.add_evenly(every, weight=each.count)
        rest = [each for each in rest if _interval(each.schedule) is None]
        walked = [herd for herd in self.herds if _interval(herd[0].schedule) is None]
        stand_ins = [herd for herd in walked if herd[0].count == walked[-1][0].count][-STAND_INS:]
        for place, (each, herd) in enumerate(stand_ins):
            weight = sum(other.count for other in rest[place :: len(stand_ins)])
            if weight:
                herd.update(self.load.add(each.schedule, weight=weight, job=each.names[0] if each.names else ""))

    def _herd(self, each: SpecCount) -> Counter[Group]:
        if len(each.names) != each.count or each.count > MAX_SEEDS:
            return self.load.add(each.schedule, weight=each.count, job=each.names[0] if each.names else "")
        first, *others = each.names
        herd = self.load.add(each.schedule, job=first)
        for name in others:
            herd += self.load.add(each.schedule, job=name)
        return herd

    def peak(self, bucket: Bucket, scale: float) -> Peak:
        parts = [(self.load.of_groups(herd, bucket.at), each) for each, herd in self.herds]
        parts.sort(key=lambda part: (-part[0], part[1].schedule.text))
        count = _scaled(bucket.count, scale)
        makers = [self._maker(bucket, each, part, scale) for part, each in parts[:MAX_MAKERS] if part]
        return Peak(at=bucket.at, count=count, makers=tuple(makers))

    def _maker(self, bucket: Bucket, each: SpecCount, part: float, scale: float) -> PeakMaker:
        steps = self._flattening(bucket, each.schedule, part, scale)
        left = None if steps is None else bucket.count - part + part / steps
        return PeakMaker(
            when=each.schedule.text,
            schedules=round(each.count * scale),
            count=_scaled(part, scale),
            name=each.names[0] if each.names else None,
            spread=None if steps is None else steps * self.load.step,
            flattened_to=None if left is None else _scaled(left, scale),
        )

    def _flattening(self, bucket: Bucket, schedule: Schedule, part: float, scale: float) -> int | None:
        """Over how many steps to spread: as short as leaves no more than is usual, and not past the next instant."""
        if part * scale < FEW or schedule.spread is not None:
            return None
        room = _until_next(schedule, bucket.at)
        lengths = [length // self.load.step for length in SPREADS if self.load.step < length <= room]
        enough = (steps for steps in lengths if part / steps <= self.usual)
        return next(enough, lengths[-1] if lengths else None)


# ── one more schedule ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLoad:
    """The second in which one more schedule would meet the most runs."""

    at: datetime
    before: float  # runs that are due then without it
    added: int  # of its own
    is_estimate: bool


def busiest_second(found: Forecast, schedule: Schedule, *, name: str) -> AddedLoad | None:
    """Where a schedule meets the most of a forecast, by the second; None if it does not fire in that time."""
    due = (each.due_at for each in schedule.between(found.begin - (schedule.spread or NO_TIME), found.end, job=name))
    own = Counter((at - found.begin) // found.step for at in due if found.begin <= at < found.end)
    if not own:
        return None
    place = max(own, key=lambda each: (found.counts[each] + own[each], -each))
    at = found.begin + place * found.step
    return AddedLoad(at=at, before=found.counts[place], added=own[place], is_estimate=found.is_estimate)


# ── inside ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _interval(schedule: Schedule) -> timedelta | None:
    """How often a schedule fires that counts elapsed time, if that is many times a day."""
    when = schedule.when
    return when.elapsed if isinstance(when, Interval) and NO_TIME < when.elapsed <= OFTEN else None


def _until_next(schedule: Schedule, at: datetime) -> timedelta:
    first = schedule.next_after(at - TICK)
    following = None if first is None else schedule.next_after(first.nominal_at)
    return SPREADS[-1] if first is None or following is None else following.nominal_at - first.nominal_at


def _scaled(count: float, scale: float) -> float:
    scaled = round(count * scale, 4)
    return int(scaled) if scaled == int(scaled) else scaled
