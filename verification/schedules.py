"""Compares our cron with other programs around every jump of every zone's clock, and in a quiet week of every year."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from mainspring.schedule.cron import Cron
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.zones import NO_SHIFT, TZDATA_VERSION, segments_of, zone_named, zone_names
from verification.corpus import ALL, FIRST
from verification.oracles import ORACLES, SECOND, Knows, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mainspring.schedule.zones import Segment

YEARS = range(1990, 2038)
AROUND, HOUR = timedelta(days=2), timedelta(hours=1)
NEAR = timedelta(hours=26)  # so far does a jump reach: a day, and what the largest shifts but one add to it
BESIDE = timedelta(days=40)
PIECE = 20  # windows that one process compares at a time
SHOWN = 20


class Window(NamedTuple):
    """A stretch of time in a zone; `jump` is the one in its middle, if any.

    It is usual if by one hour, on the hour, and lasting if the clock does not jump again soon.
    """

    zone: str
    begin: datetime
    end: datetime
    jump: datetime | None = None
    is_usual: bool = True
    is_lasting: bool = True

    @staticmethod
    def around(zone: str, segment: Segment) -> Window:
        jump = segment.start
        is_usual = abs(segment.shift_in) == HOUR and segment.wall(jump).minute == segment.wall(jump).second == 0
        is_lasting = segment.shift_out == NO_SHIFT or segment.end - jump > BESIDE
        return Window(zone, jump - AROUND, jump + AROUND, jump, is_usual, is_lasting)

    def is_left_out_for(self, oracle: Oracle) -> bool:
        """Whether the hours around the jump say nothing about us."""
        if self.jump is None or oracle.knows is Knows.EVERY_JUMP:
            return False
        if oracle.knows is Knows.LASTING_JUMPS and not self.is_lasting:
            return True
        return oracle.knows is Knows.NO_JUMP or not self.is_usual


class Comparison(NamedTuple):
    oracle: str
    text: str
    window: Window
    missing: tuple[datetime, ...]  # the oracle has them and we do not
    extra: tuple[datetime, ...]

    def __str__(self) -> str:
        missing, extra = ([str(each) for each in side] for side in (self.missing, self.extra))
        return f"{self.window.zone} {self.text!r} {self.oracle}: missing {missing} extra {extra}"


@dataclass
class Report:
    """How often whom was asked, how often a jump was left out by ruling, and what nobody ruled on."""

    tzdata: str = TZDATA_VERSION
    zones: int = 0
    windows: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    ruled: Counter[str] = field(default_factory=Counter)
    unexplained: list[Comparison] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.zones += other.zones
        self.windows += other.windows
        self.compared += other.compared
        self.ruled += other.ruled
        self.unexplained += other.unexplained[:SHOWN]


def distinct_zones() -> list[str]:
    """One name for each set of rules: many names are links."""
    by_rules: dict[bytes, str] = {}
    for name in sorted(zone_names()):
        rules = (resources.files("tzdata") / "zoneinfo").joinpath(*name.split("/")).read_bytes()
        by_rules.setdefault(rules, name)
    return sorted(by_rules.values())


def windows_of(zone: str, years: Iterable[int] = YEARS) -> Iterator[Window]:
    """Two days before and after every jump, and a week of July, near the middle of the quiet half of most years."""
    for year in years:
        segments = segments_of(zone_named(zone), year)
        jumps = [Window.around(zone, each) for each in segments if each.shift_in != NO_SHIFT]
        yield from jumps
        july = datetime(year, 7, 10, tzinfo=UTC)
        week = Window(zone, july, july + timedelta(days=7))
        if not any(
            week.begin - AROUND <= jump.begin and jump.end <= week.end + AROUND for jump in jumps
        ):  # Morocco's clock jumps then, too
            yield week


def distinct_jumps(zones: Iterable[str], years: Iterable[int]) -> list[Window]:
    """One window for each kind of jump there is: by how far, what the clock showed, and whether the year ended then."""
    found: dict[tuple[timedelta, str, bool], Window] = {}
    for zone in zones:
        for year in years:
            for segment in segments_of(zone_named(zone), year):
                if segment.shift_in != NO_SHIFT:
                    window = Window.around(zone, segment)
                    ends_year = window.begin.year != window.end.year
                    kind = segment.shift_in, f"{segment.wall(segment.start):%H%M%S}", ends_year
                    found.setdefault(kind, window)
    return list(found.values())


def compare(window: Window, text: str, oracle: Oracle) -> Comparison:
    """What the oracle says and we do not, and the other way round, under the oracle's policies."""
    schedule = Schedule(when=Cron.parse(text), zone=window.zone, gap=oracle.gap, repeat=oracle.repeat)
    ours = {found.nominal_at for found in schedule.between(window.begin, window.end)}
    if window.jump is not None and window.is_left_out_for(oracle):
        theirs = _asked_apart(window, window.jump, text, oracle)
        ours = {each for each in ours if abs(each - window.jump) > NEAR}
    else:
        theirs = set(oracle.instants(text, window.zone, window.begin, window.end))
    return Comparison(oracle.name, text, window, tuple(sorted(theirs - ours)), tuple(sorted(ours - theirs)))


def _asked_apart(window: Window, jump: datetime, text: str, oracle: Oracle) -> set[datetime]:
    """Asked before and after the jump, never across: some oracles do not come back from there."""
    before = oracle.instants(text, window.zone, window.begin, jump - NEAR)
    after = oracle.instants(text, window.zone, jump + NEAR + SECOND, window.end)
    return {*before, *after}


def check_windows(windows: Iterable[Window], texts: Iterable[str], oracles: Iterable[Oracle] = ORACLES) -> Report:
    report = Report()
    texts, oracles = tuple(texts), tuple(oracles)
    for window in windows:
        report.windows += 1
        for oracle in oracles:
            for text in texts:
                result = compare(window, text, oracle)
                report.compared[oracle.name] += 1
                report.ruled[oracle.name] += window.is_left_out_for(oracle)
                if result.missing or result.extra:
                    report.unexplained.append(result)
    return report


def distinct_windows(zones: Iterable[str], years: Iterable[int]) -> list[Window]:
    """The windows of all zones, one for those in which the clocks of several zones show the same all the time."""
    found: dict[tuple[object, ...], Window] = {}
    for zone in zones:
        for window in windows_of(zone, years):
            found.setdefault(_what_its_clock_shows(window), window)
    return list(found.values())


def _what_its_clock_shows(window: Window) -> tuple[object, ...]:
    """The offsets from UTC in a window and for some days beside it: other programs look beyond what they are asked."""
    begin, end = window.begin - BESIDE, window.end + BESIDE
    segments = [each for year in {begin.year, end.year} for each in segments_of(zone_named(window.zone), year)]
    shown = {(max(each.start, begin), each.offset) for each in segments if each.start < end and each.end > begin}
    return window.begin, window.end, frozenset(shown)


def check_some(windows: list[Window], *, quick: bool) -> Report:
    return check_windows(windows, FIRST[:2] if quick else ALL)


def sweep(*, quick: bool) -> Iterator[tuple[int, int, Report]]:
    """The report so far, after every few windows: done, of how many, report. `quick` takes a sample."""
    zones = distinct_zones()[:: 25 if quick else 1]
    windows = distinct_windows(zones, (2011, 2026) if quick else YEARS)
    pieces = [windows[start : start + PIECE] for start in range(0, len(windows), PIECE)]
    total, done = Report(zones=len(zones)), 0
    with ProcessPoolExecutor(max_workers=1 if quick else os.cpu_count()) as pool:
        for report in pool.map(partial(check_some, quick=quick), pieces):
            total.add(report)
            done += report.windows
            yield done, len(windows), total
