"""Recurrence rules of RFC 5545: RRULE counted from a DTSTART, with dates added (RDATE) and excluded (EXDATE)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from mainspring.schedule.interval import DEFAULT_ANCHOR
from mainspring.schedule.rule_days import WITHIN_A_DAY
from mainspring.schedule.rule_pattern import END, FIRST_YEAR, RulePattern
from mainspring.schedule.walls import TICK, WallTimeline
from mainspring.schedule.zones import NO_SHIFT, wall_of, zone_named

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mainspring.schedule.timeline import Setting, Timeline

_WALL = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[Tt](\d\d):?(\d\d)(?::?(\d\d))?)?([Zz]?)", re.ASCII)
_DATE_LENGTH = len("20261231")
_BEGIN = datetime(FIRST_YEAR, 1, 1)  # noqa: DTZ001 - a wall
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Rule:
    """`parts` are (key, value) in canonical order and spelling; `starts` is DTSTART, before which nothing counts.

    `zone` is where its walls are read, if not in the schedule's zone: the TZID of DTSTART, or UTC. `added` (RDATE) and
    `without` (EXDATE) are dates, walls and, with a Z, instants, as text. A date is added at DTSTART's time of day, and
    excluded as a whole.
    """

    parts: tuple[tuple[str, str], ...]
    starts: datetime = DEFAULT_ANCHOR
    zone: str | None = None
    added: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str, starts: datetime | None = None) -> Rule:
        """`[DTSTART:20260101T090000] RRULE:FREQ=… [RDATE:…] [EXDATE:…]`; `starts`, a wall, stands for no DTSTART."""
        from mainspring.schedule.rule_reader import RuleReader  # it makes rules, so it knows them

        return RuleReader(text).read(starts)

    @cached_property
    def rrule(self) -> str:
        return ";".join(f"{key}={value}" for key, value in self.parts)

    @cached_property
    def text(self) -> str:
        zone = "" if self.zone in (None, "UTC") else f";TZID={self.zone}"
        found = [f"DTSTART{zone}:{wall_text(self.starts)}{'Z' if self.zone == 'UTC' else ''}", f"RRULE:{self.rrule}"]
        dates = (("RDATE", self.added), ("EXDATE", self.without))
        found += [f"{name}:{','.join(listed)}" for name, listed in dates if listed]
        return " ".join(found)

    @property
    def by_key(self) -> dict[str, str]:
        return dict(self.parts)

    @property
    def is_within_days(self) -> bool:
        """Whether it runs through the day and follows elapsed time."""
        return self.by_key["FREQ"] in WITHIN_A_DAY

    def zone_in(self, zone: ZoneInfo) -> ZoneInfo:
        """Its own zone, or the schedule's."""
        return zone if self.zone is None else zone_named(self.zone)

    def timeline(self, setting: Setting) -> Timeline:
        setting = replace(setting, zone=self.zone_in(setting.zone))
        until = self.by_key.get("UNTIL", "")
        is_instant = until.endswith("Z")  # the clock may be set back just before it: then its wall is not the last one
        pattern = self.pattern(setting.zone, later=_DAY if is_instant else NO_SHIFT)
        timeline = WallTimeline(pattern, setting, follows_elapsed_time=self.is_within_days)
        return EndedTimeline(timeline, _clamped(until).replace(tzinfo=UTC)) if is_instant else timeline

    def pattern(self, zone: ZoneInfo, *, later: timedelta = NO_SHIFT) -> RulePattern:
        """Its walls in a zone, up to UNTIL or somewhat later."""
        until = self.by_key.get("UNTIL")
        return RulePattern(
            self.by_key,
            self.starts,
            END if until is None else local_wall(until, zone) + later,
            added=[self.wall_added(each, zone) for each in self.added],
            without=[local_date(each, zone) for each in self.without],
        )

    def wall_added(self, text: str, zone: ZoneInfo) -> datetime:
        """The wall of one of the dates that are added."""
        found = local_date(text, zone)
        return found if isinstance(found, datetime) else datetime.combine(found, self.starts.time())


class EndedTimeline:
    """A timeline up to an instant."""

    def __init__(self, base: Timeline, last: datetime) -> None:
        self._base, self._last = base, last

    def next_after(self, instant: datetime) -> datetime | None:
        found = self._base.next_after(instant)
        return None if found is None or found > self._last else found

    def prev_before(self, instant: datetime) -> datetime | None:
        return self._base.prev_before(min(instant, self._last + TICK))


def read_wall(text: str) -> datetime | None:
    """A date or a local date-time in one of ISO 8601's two spellings."""
    match = _WALL.fullmatch(text.strip())
    if not match:
        return None
    try:
        return datetime(*(int(each or 0) for each in match.groups()[:6]))  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError:
        return None


def wall_text(wall: datetime) -> str:
    """`20261231T235959`; `strftime` would leave out the zeros of early years."""
    return re.sub("[-:]", "", wall.isoformat(timespec="seconds"))


def local_date(text: str, zone: ZoneInfo) -> date:
    """What one of a rule's dates says in a zone: a day, or (a datetime) a wall."""
    return _clamped(text).date() if len(text) == _DATE_LENGTH else local_wall(text, zone)


def local_wall(text: str, zone: ZoneInfo) -> datetime:
    wall = _clamped(text)
    return wall_of(zone, wall.replace(tzinfo=UTC)) if text.endswith("Z") else wall


def _clamped(text: str) -> datetime:
    """A date that was found to be one; those far away are as good as the edges of time."""
    found = read_wall(text)
    assert found is not None
    return min(max(found, _BEGIN), END)
