"""Independent programs, asked for the instants between two others; and what we ruled where they differ.

`docs/explanation/schedule-disagreements.md` has the reasons. A ruling is as exact as it can be: where an oracle follows
another policy throughout, it has to agree with us *under that policy*; only where it follows none, jumps are left out.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]
from cron_converter import Cron as ConvertedCron
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim

from mainspring.schedule.timeline import GapPolicy, RepeatPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

zoneinfo.reset_tzpath(to=[])  # the oracles shall read the same tzdata as we do
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class Knows(StrEnum):
    """Around which jumps an oracle can be believed."""

    EVERY_JUMP = "every jump"
    USUAL_JUMPS = "usual jumps"  # of one hour, on the hour
    LASTING_JUMPS = "lasting jumps"  # usual ones, after which the clock does not jump again within weeks
    NO_JUMP = "no jump"


@dataclass(frozen=True)
class Oracle:
    """What it says, by which policies, and around which jumps."""

    name: str
    instants: Callable[[str, str, datetime, datetime], list[datetime]]
    gap: GapPolicy = GapPolicy.AS_CRON
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON
    knows: Knows = Knows.EVERY_JUMP


@lru_cache(maxsize=1)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(name)


def by_cronsim(text: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    return _until(end, iter(CronSim(text, (begin - SECOND).astimezone(_zone(zone)))))


def by_croniter(text: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    found: Any = croniter(text, (begin - SECOND).astimezone(_zone(zone)), ret_type=datetime)
    return _until(end, iter(lambda: found.get_next(datetime), None))


def by_apscheduler(text: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    minute, hour, day, month, weekday = text.split()
    for number in range(7):  # it counts weekdays from Monday: names say which is meant
        weekday = weekday.replace(str(number), NAMES[number])
    trigger = CronTrigger(minute=minute, hour=hour, day=day, month=month, day_of_week=weekday, timezone=_zone(zone))
    return _until(end, _fired(trigger, begin.astimezone(_zone(zone))))


def _fired(trigger: Any, now: datetime) -> Iterator[datetime]:
    last = None
    while (found := trigger.get_next_fire_time(last, now)) is not None:
        yield found
        last, now = found, (found.astimezone(UTC) + SECOND / 1000).astimezone(found.tzinfo)


def by_cron_converter(text: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    found: Any = ConvertedCron(text).schedule((begin - SECOND).astimezone(_zone(zone)))
    return _until(end, iter(found.next, None))


def _until(end: datetime, found: Iterator[datetime]) -> list[datetime]:
    instants: list[datetime] = []
    for each in found:
        instant = each.astimezone(UTC)
        if instant >= end or len(instants) > 10_000:
            break
        instants.append(instant)
    return instants


def by_definition(text: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """Debian cron's rule, word by word: look at the clock every minute; at a jump, look at what was jumped over."""
    sim = CronSim(text, datetime(2000, 1, 1))  # noqa: DTZ001 - only its fields are used, which are not ours
    fixed = not (text.split()[0].startswith("*") or text.split()[1].startswith("*"))

    def matches(wall: datetime) -> bool:
        return (
            wall.minute in sim.minutes
            and wall.hour in sim.hours
            and wall.month in sim.months
            and sim.match_day(wall.date())
        )

    found = []
    for instant, wall, missed, is_repeated in _looks(zone, begin, end):
        if fixed and any(map(matches, missed)):
            found.append(_jump(instant, zone))
        if wall.second == 0 and not (fixed and is_repeated) and matches(wall):
            found.append(instant)
    return sorted(set(found))


class Look(NamedTuple):
    """What the clock shows, which minutes it jumped over since the look before, and whether it showed this already."""

    instant: datetime
    wall: datetime
    missed: tuple[datetime, ...]
    is_repeated: bool


@lru_cache(maxsize=1)
def _looks(zone: str, begin: datetime, end: datetime) -> list[Look]:
    looks, instant = [], begin
    before = latest = _shown(begin - MINUTE, zone)
    while instant < end:
        wall = _shown(instant, zone)
        missed = _minutes_between(max(before, latest), wall)
        looks.append(Look(instant, wall, missed, wall <= latest))
        before, latest = wall, max(latest, wall)
        instant += MINUTE if wall.second == 0 else (60 - wall.second) * SECOND
    return looks


def _minutes_between(before: datetime, wall: datetime) -> tuple[datetime, ...]:
    first, last = before.replace(second=0) + MINUTE, wall.replace(second=0)
    count = max(0, (last - first) // MINUTE)
    return tuple(first + number * MINUTE for number in range(count))


def _shown(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(_zone(zone)).replace(tzinfo=None, fold=0)


def _jump(after: datetime, zone: str) -> datetime:
    """The first instant with the offset that holds after a jump within the last minute."""
    offset, at = after.astimezone(_zone(zone)).utcoffset(), after
    while (at - SECOND).astimezone(_zone(zone)).utcoffset() == offset:
        at -= SECOND
    return at


ORACLES = (
    Oracle("definition", by_definition),
    Oracle("cronsim", by_cronsim, knows=Knows.USUAL_JUMPS),
    Oracle("croniter", by_croniter, GapPolicy.RUN_AFTER, RepeatPolicy.BOTH, Knows.LASTING_JUMPS),
    Oracle("APScheduler", by_apscheduler, knows=Knows.NO_JUMP),
    Oracle("cron-converter", by_cron_converter, GapPolicy.SHIFT, RepeatPolicy.FIRST, Knows.USUAL_JUMPS),
)
