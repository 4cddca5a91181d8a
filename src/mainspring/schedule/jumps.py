"""Where a zone's clock jumps, and what that does to the times a schedule names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.interval import DEFAULT_ANCHOR, Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.sets import Except, Union
from mainspring.schedule.timeline import GapPolicy, Setting, begin_search
from mainspring.schedule.walls import TICK, WallTimeline
from mainspring.schedule.words.phrases import MONTHS, clock, listed
from mainspring.schedule.zones import NO_SHIFT, segment_at, wall_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from mainspring.schedule.schedule import Schedule
    from mainspring.schedule.sets import When
    from mainspring.schedule.timeline import Timeline
    from mainspring.schedule.zones import Segment

MAX_SEGMENTS = 400
MAX_NAMED = 4
UTC_ZONE = zone_named("UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """What became of the walls of a gap: they run at an instant, or (`fires` is false) they do not run."""

    at: datetime
    wall: datetime  # the first of them
    note: str
    fires: bool


def jumps_between(schedule: Schedule, after: datetime, until: datetime, job: str = "") -> list[Jump]:
    """The gaps in a stretch of time that swallow walls which the schedule names."""
    return [
        jump
        for part in _wall_parts(schedule.when)
        for segment in _segments(_zone(schedule, part), after, until)
        if segment.shift_in > NO_SHIFT
        for jump in _jumps_of(schedule, part, segment, job)
    ]


def _zone(schedule: Schedule, part: When) -> ZoneInfo:
    """Where the walls of a part are read."""
    zone = zone_named(schedule.zone)
    return part.zone_in(zone) if isinstance(part, Rule) else zone


def _segments(zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[Segment]:
    segment = segment_at(zone, after)
    for _ in range(MAX_SEGMENTS):
        if segment.end > until:
            return
        segment = segment_at(zone, segment.end)
        yield segment


def _wall_parts(when: When) -> Iterator[When]:
    """The forms that name walls. Whatever follows elapsed time does not notice a gap."""
    match when:
        case Union(parts):
            for part in parts:
                yield from _wall_parts(part)
        case Except(base):
            yield from _wall_parts(base)
        case Cron() | Rule():
            yield when
        case Interval(elapsed=elapsed) if not elapsed:
            yield when


def _jumps_of(schedule: Schedule, part: When, segment: Segment, job: str) -> Iterator[Jump]:
    policy = _policy(schedule, part)
    begin, gap = segment.wall(segment.start), segment.shift_in
    missing = list(islice(_walls(_as_walls(schedule, part, job), begin - gap, begin), MAX_NAMED + 1))
    if not missing or policy is None:
        return
    first, place = missing[0], _place(schedule, part)
    gone = f"not exist on {first.day} {MONTHS[first.month - 1]}{place}"
    exist = f"{_named(missing)} {'does' if len(missing) == 1 else 'do'} {gone}"
    match policy:
        case GapPolicy.SKIP:
            wall = first if not place else wall_of(zone_named(schedule.zone), segment.start)
            yield Jump(at=segment.start, wall=wall, note=f"{exist}; skipped", fires=False)
        case GapPolicy.SHIFT:
            for wall in missing:
                note = f"{clock(wall)} does {gone}; runs at {_at(wall + gap, wall)}"
                yield Jump(at=segment.instant(wall + gap), wall=wall, note=note, fires=True)
        case _:
            runs = "runs" if len(missing) == 1 else "run once,"
            yield Jump(at=segment.start, wall=first, note=f"{exist}; {runs} at {_at(begin, first)}", fires=True)


def _place(schedule: Schedule, part: When) -> str:
    """Where a rule is at home, if not in the schedule's zone."""
    return f" in {part.zone}" if isinstance(part, Rule) and part.zone not in (None, schedule.zone) else ""


def _at(wall: datetime, wanted: datetime) -> str:
    """The time of day, and the day if it is another than was wanted."""
    return clock(wall) + (f" on {wall.day} {MONTHS[wall.month - 1]}" if wall.date() != wanted.date() else "")


def _named(walls: list[datetime]) -> str:
    return (
        listed([clock(wall) for wall in walls], MAX_NAMED)
        if len(walls) <= MAX_NAMED
        else f"{clock(walls[0])} and others"
    )


def _policy(schedule: Schedule, part: When) -> GapPolicy | None:
    """What happens to walls in a gap; nothing worth a note if the part simply follows elapsed time."""
    if schedule.gap is not GapPolicy.AS_CRON:
        return schedule.gap
    return None if _follows_elapsed_time(part) else GapPolicy.RUN_AFTER


def _follows_elapsed_time(part: When) -> bool:
    if isinstance(part, Rule):
        return part.is_within_days
    return isinstance(part, Cron) and part.follows_elapsed_time


def _as_walls(schedule: Schedule, part: When, job: str) -> Timeline:
    """The part in UTC, where walls and instants go in step: its instants are the walls it names."""
    if isinstance(part, Rule):
        return WallTimeline(part.pattern(_zone(schedule, part)), Setting(zone=UTC_ZONE))
    if isinstance(part, Interval):
        anchor = part.anchor or schedule.starts_at or DEFAULT_ANCHOR
        part = replace(part, anchor=anchor if anchor.tzinfo is None else wall_of(zone_named(schedule.zone), anchor))
    return part.timeline(Setting(zone=UTC_ZONE, job=job))


def _walls(timeline: Timeline, begin: datetime, end: datetime) -> Iterator[datetime]:
    begin_search()
    found = timeline.next_after(begin.replace(tzinfo=UTC) - TICK)
    while found is not None and found < end.replace(tzinfo=UTC):
        yield found.replace(tzinfo=None)
        begin_search()
        found = timeline.next_after(found)
