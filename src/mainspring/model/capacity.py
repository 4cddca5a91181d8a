"""How much work a queue has, how fast it moves, and how many slots it wants. Pure arithmetic over what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING

from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

DRAIN_SECONDS = 30.0  # in how long a backlog should be worked off
ROUNDS = 4  # of runs in all slots: what was finished meanwhile says how fast a line moves
UTILISATION = 0.8  # how busy slots may be on average: beyond that, waiting times explode
GUESSED_SECONDS = 1.0  # how long a run takes, as long as none has finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line at one moment: what waits, what workers hold, and what they have finished so far."""

    depth: int
    holding: int
    finished: int
    busy_seconds: float
    age: float = 0.0  # seconds ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Runs of one line that wait for their time, and how many of them were promoted lately."""

    scheduled: int
    promoted: int


NOTHING_LATER = Later(scheduled=0, promoted=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLoad:
    """One line now and a while ago."""

    id: int
    queue: str
    labels: frozenset[str] = frozenset()
    now: Sample
    then: Sample | None
    oldest_seconds: float | None
    later: Later = NOTHING_LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue as people and scalers see it. Rates are per second; None as long as there is nothing to compare."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    depth: int
    holding: int
    slots: int
    oldest_seconds: float | None
    arrivals_per_s: float | None
    finished_per_s: float | None
    mean_seconds: float | None
    wanted_slots: int
    scheduled: int  # wait for their time: delays, back-offs, and what schedules fired into a line that was full
    promoted_per_s: float | None  # of those, in line by now, or waiting at their limits


DEFAULT_HIGH_MARK = 20_000  # as `marks_of` in the database has it
MAX_MARK = 100_000_000
HIGH_UTILIZATION = 0.8  # of the high mark: from here on, producers had better slow down


class PressureLevel(StrEnum):
    """Whether producers may go on as they do."""

    LOW = "low"
    RISING = "rising"  # beyond the low mark
    HIGH = "high"  # close to the high mark, or beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePressure:
    """One line and priority of a queue: what is in line, what waits for that, and the marks."""

    priority: int
    depth: int
    waiting: int
    high: int
    low: int

    @property
    def utilization(self) -> float:
        """Of the high mark: beyond 1 there is more than workers should see."""
        return (self.depth + self.waiting) / self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How much a queue has to do, for whoever is about to give it more."""

    queue: str
    level: PressureLevel
    utilization: float  # of its high mark, where there is most
    depth: int  # in line
    waiting: int  # due, and not in line because that has too many
    high_mark: int
    low_mark: int
    finished_per_s: float | None
    drained_in: float | None  # seconds, at the present pace; None: nobody knows
    scheduled: int  # wait for their time
    promoted_per_s: float | None  # of those, in line by now, or waiting at their limits


def pressure_of(
    queue: str,
    lines: Sequence[LinePressure],
    finished_per_s: float | None,
    *,
    scheduled: int = 0,
    promoted_per_s: float | None = None,
) -> Pressure:
    """Put the lines and priorities of one queue together: the fullest decides."""
    fullest = max(lines, key=lambda line: line.utilization)
    depth, waiting = sum(line.depth for line in lines), sum(line.waiting for line in lines)
    return Pressure(
        queue=queue,
        level=_level(fullest),
        utilization=fullest.utilization,
        depth=depth,
        waiting=waiting,
        high_mark=fullest.high,
        low_mark=fullest.low,
        finished_per_s=finished_per_s,
        drained_in=(depth + waiting) / finished_per_s if finished_per_s else (None if depth + waiting else 0.0),
        scheduled=scheduled,
        promoted_per_s=promoted_per_s,
    )


def _level(line: LinePressure) -> PressureLevel:
    if line.utilization >= HIGH_UTILIZATION:
        return PressureLevel.HIGH
    return PressureLevel.RISING if line.depth + line.waiting > line.low else PressureLevel.LOW


def checked_marks(high: int | None, low: int | None) -> tuple[int | None, int | None]:
    """The low mark is half of the high one unless told; without a high mark both are as always."""
    for name, value, least in (("high", high, 1), ("low", low, 0)):
        if value is not None and (type(value) is not int or not least <= value <= MAX_MARK):
            raise _invalid_mark(name, value, f"must be a whole number from {least} to {MAX_MARK:,}")
    if low is not None and low >= (DEFAULT_HIGH_MARK if high is None else high):
        raise _invalid_mark("low", low, f"must be below the high mark, {DEFAULT_HIGH_MARK if high is None else high:,}")
    if low is not None and high is None:
        high = DEFAULT_HIGH_MARK
    return high, low


def _invalid_mark(name: str, value: object, rule: str) -> InvalidInput:
    return InvalidInput(
        f"The {name} mark is {quoted(value)}; it {rule}.",
        code="invalid-mark",
        hint="Between the two, runs that are due wait until workers have taken some.",
        field=name,
        value=quoted(value),
        rule=rule,
    )


def measured(
    lines: Sequence[LineLoad],
    *,
    slots: int,
    paused_at: datetime | None = None,
    paused_by: str | None = None,
    pause_reason: str | None = None,
) -> Queue:
    """Put the lines of one queue together."""
    now = _total([line.now for line in lines])
    then = _total([line.then for line in lines if line.then is not None]) if any(line.then for line in lines) else None
    known_now = _total([line.now for line in lines if line.then is not None])
    arrivals, finished = _rates(known_now, then)
    mean = _mean_seconds(now, known_now, then)
    return Queue(
        name=lines[0].queue,
        paused_at=paused_at,
        paused_by=paused_by,
        pause_reason=pause_reason,
        depth=now.depth,
        holding=now.holding,
        slots=slots,
        oldest_seconds=max((line.oldest_seconds for line in lines if line.oldest_seconds is not None), default=None),
        arrivals_per_s=arrivals,
        finished_per_s=finished,
        mean_seconds=mean,
        wanted_slots=0 if paused_at is not None else wanted_slots(now.depth, now.holding, arrivals or 0.0, mean),
        scheduled=sum(line.later.scheduled for line in lines),
        promoted_per_s=per_second(sum(line.later.promoted for line in lines), then),
    )


def wanted_slots(depth: int, holding: int, arrivals_per_s: float, mean_seconds: float | None) -> int:
    """Slots for what arrives, and for working off the backlog in good time."""
    if mean_seconds is None:
        mean_seconds = GUESSED_SECONDS
    steady = arrivals_per_s * mean_seconds / UTILISATION
    backlog = min(depth, depth * mean_seconds / DRAIN_SECONDS)
    return max(min(1, depth + holding), ceil(steady + backlog - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The slots of one worker, and for what they are."""

    queues: frozenset[str]
    labels: frozenset[str] = frozenset()
    slots: int

    def serves(self, queue: str, labels: frozenset[str]) -> bool:
        return queue in self.queues and labels <= self.labels


def lacking_slots(wanted: Mapping[tuple[str, frozenset[str]], int], others: Sequence[Room]) -> int:
    """What is left to wish for, by queue and labels, when others do what they can.

    What asks for most labels chooses first, and from those that have fewest: whoever can do less is asked first.
    """
    rooms = sorted(others, key=lambda room: len(room.labels))
    free = [room.slots for room in rooms]
    lacking = 0
    for (queue, labels), slots in sorted(wanted.items(), key=lambda item: -len(item[0][1])):
        missing = slots
        for number, room in enumerate(rooms):
            taken = min(missing, free[number]) if room.serves(queue, labels) else 0
            free[number] -= taken
            missing -= taken
        lacking += missing
    return lacking


def _total(samples: Sequence[Sample]) -> Sample:
    return Sample(
        depth=sum(each.depth for each in samples),
        holding=sum(each.holding for each in samples),
        finished=sum(each.finished for each in samples),
        busy_seconds=sum(each.busy_seconds for each in samples),
        age=max((each.age for each in samples), default=0.0),
    )


def per_second(count: int, then: Sample | None) -> float | None:
    """What there was since then, per second."""
    return None if then is None or then.age <= 0 else count / then.age


def starts_per_second(now: Sample, then: Sample | None, occupied: int) -> float | None:
    """How fast runs of a line that has more than workers can hold get slots, of which so many have runs of it now.

    As fast as runs have ended, if the line was full all the time. Else what ended says too little: workers had nothing
    to do at first, and what they are at counts for nothing until it ends. Then by how long a run keeps its slot.
    """
    if then is None or then.age <= 0:
        return None
    finished = max(0, now.finished - then.finished)
    seconds = now.busy_seconds - then.busy_seconds
    if not occupied or seconds <= 0 or not finished or (then.depth and finished >= ROUNDS * occupied):
        return finished / then.age
    return occupied * finished / seconds


def _rates(now: Sample, then: Sample | None) -> tuple[float | None, float | None]:
    """What arrived is what was finished and what there is more of than before."""
    if then is None or then.age <= 0:
        return None, None
    finished = max(0, now.finished - then.finished) / then.age
    growth = (now.depth + now.holding - then.depth - then.holding) / then.age
    return max(0.0, finished + growth), finished


def _mean_seconds(total: Sample, now: Sample, then: Sample | None) -> float | None:
    """How long a run takes: lately if some finished lately, else ever."""
    if then is not None and now.finished > then.finished:
        return max(0.0, now.busy_seconds - then.busy_seconds) / (now.finished - then.finished)
    return total.busy_seconds / total.finished if total.finished else None
