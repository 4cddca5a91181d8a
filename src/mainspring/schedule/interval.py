"""Intervals: every so much elapsed time, or so many days, months or years on the calendar, counted from an anchor.

Their spans are read as people write them (`PT15M`, `P1M`, `15m`, `1h30m`) and written in one canonical form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from mainspring.errors import InvalidSchedule
from mainspring.schedule.faults import broken_rule, fault
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.walls import TICK, WallTimeline, months_after
from mainspring.schedule.zones import instant_of, wall_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mainspring.schedule.timeline import Setting, Timeline

MAX_LENGTH = 60
_ISO = re.compile(
    r"P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_SHORT = re.compile(r"\s*(\d+(?:\.\d{1,6})?)\s*([a-z]+)\s*", re.ASCII)
_UNITS = {
    "years": ("y", "yr", "year", "years"),
    "months": ("mo", "mon", "month", "months"),
    "weeks": ("w", "wk", "week", "weeks"),
    "days": ("d", "day", "days"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "seconds": ("s", "sec", "secs", "second", "seconds"),
}
_BY_WORD = {word: unit for unit, words in _UNITS.items() for word in words}
# A Monday, and the first of a month, a year and a century: "every week" without an anchor means Mondays.
DEFAULT_ANCHOR = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall, in whatever zone the schedule has
NO_TIME, SHORTEST, LONGEST = timedelta(0), timedelta(seconds=1), timedelta(days=366 * 100)
LIMITS = {"months": 1_200, "days": 36_600}
_ALLOWED = "ISO 8601 such as PT15M, P1M, P1W, or 15m, 1h30m, 2 weeks"
_SPANS = "Write it as PT5M, 90s, 5m or 1h30m."


class Span(NamedTuple):
    """Months, days and elapsed time are kept apart: none of them is a fixed number of another."""

    months: int = 0
    days: int = 0
    elapsed: timedelta = timedelta(0)


def read_span(text: str) -> Span:
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise fault(text, MAX_LENGTH, f"a span has at most {MAX_LENGTH} characters", code="invalid-interval")
    counts = _iso(text) if text[:1].upper() == "P" else _short(text)
    try:
        return Span(
            months=int(12 * counts.get("years", 0) + counts.get("months", 0)),
            days=int(7 * counts.get("weeks", 0) + counts.get("days", 0)),
            elapsed=timedelta(**{unit: counts.get(unit, 0) for unit in ("hours", "minutes", "seconds")}),
        )
    except OverflowError:
        raise fault(text, 0, "the span is too long", allowed="up to 100 years", code="invalid-interval") from None


def _iso(text: str) -> dict[str, float]:
    match = _ISO.fullmatch(text.upper())
    if not match or not any(match.groupdict().values()) or text.upper().endswith("T"):
        raise _unreadable(text, len(_ISO.match(text.upper() + " ").group()) if match is None else len(text))  # type: ignore[union-attr]
    return {
        unit: float(digits) if "." in digits else int(digits) for unit, digits in match.groupdict().items() if digits
    }


def _short(text: str) -> dict[str, float]:
    counts: dict[str, float] = {}
    at = 0
    while at < len(text) or not text:
        match = _SHORT.match(text.lower(), at)
        unit = _BY_WORD.get(match[2]) if match else None
        if match is None or unit is None or unit in counts:
            raise _unreadable(text, match.start(2) if match else at)
        counts[unit] = _count(text, match, unit)
        at = match.end()
    return counts


def _count(text: str, match: re.Match[str], unit: str) -> float:
    """A number, which is whole for days and more: a day may have 23 or 25 hours, so half of one is no span."""
    if "." not in match[1]:
        return int(match[1])
    if unit not in ("hours", "minutes", "seconds"):
        problem = f"{unit} are counted whole"
        raise fault(text, match.start(1), problem, allowed="1.5h, 36h, 10 days", code="invalid-interval")
    return float(match[1])


def _unreadable(text: str, at: int) -> Exception:
    return fault(text, min(at, len(text)), "this is no span of time", allowed=_ALLOWED, code="invalid-interval")


def span_text(months: int = 0, days: int = 0, elapsed: timedelta = timedelta(0)) -> str:
    """The canonical ISO 8601 form."""
    years, months = divmod(months, 12)
    date = "".join(f"{count}{letter}" for count, letter in ((years, "Y"), (months, "M"), (days, "D")) if count)
    minutes, seconds = divmod(elapsed // timedelta(seconds=1), 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{elapsed.microseconds:06}".rstrip("0").rstrip(".") if elapsed.microseconds else ""
    time = "".join(f"{count}{letter}" for count, letter in ((hours, "H"), (minutes, "M")) if count)
    if seconds or fraction:
        time += f"{seconds}{fraction}S"
    return f"P{date}" + (f"T{time}" if time else "") if date or time else "PT0S"


def read_elapsed(value: object, field: str) -> timedelta:
    """A span without months, as elapsed time: `5m`, `PT5M` or a timedelta."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise broken_rule(field, value, "must be a timedelta, or text such as 'PT5M' or '5m'")
    try:
        span = read_span(value)
    except InvalidSchedule as error:  # about the whole text, as if it were a schedule
        raise broken_rule(field, value, "must be a span of time", code=error.code, hint=_SPANS) from error
    if span.months:
        raise broken_rule(field, value, "must be elapsed time; months differ in length")
    return timedelta(days=span.days) + span.elapsed


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One of months, days or elapsed time. The anchor says where to count from, in both directions: it is no bound.

    A naive anchor is a wall in the schedule's zone. Without one: the schedule's `starts_at`, else 2001-01-01 00:00.
    """

    months: int = 0
    days: int = 0
    elapsed: timedelta = NO_TIME
    anchor: datetime | None = None

    def __post_init__(self) -> None:
        if not (self.months or self.days or self.elapsed):
            hint = "Every 15 minutes are PT15M or 15m, and every second is PT1S."
            raise broken_rule("interval", "PT0S", "must be longer than nothing", code="invalid-interval", hint=hint)
        if sum(map(bool, (self.months, self.days, self.elapsed))) != 1:
            raise broken_rule(
                "interval",
                span_text(self.months, self.days, self.elapsed),
                "must count one thing: months and years, or days and weeks, or hours, minutes and seconds",
                code="invalid-interval",
                hint="Elapsed time says a day and a half as PT36H.",
            )
        for unit, most in LIMITS.items():
            if not 0 <= getattr(self, unit) <= most:
                raise broken_rule(
                    f"interval.{unit}", getattr(self, unit), f"must be 1 to {most}", code="invalid-interval"
                )
        if self.elapsed and not SHORTEST <= self.elapsed <= LONGEST:
            text = span_text(elapsed=abs(self.elapsed))
            raise broken_rule("interval", text, "must be from one second to 100 years", code="invalid-interval")
        if self.anchor is not None and not EARLIEST.year <= self.anchor.year <= LATEST.year:
            rule = f"must be between the years {EARLIEST.year} and {LATEST.year}"
            raise broken_rule("anchor", self.anchor, rule, code="invalid-instant")
        if self.anchor is not None and self.anchor.tzinfo is not None:
            object.__setattr__(self, "anchor", self.anchor.astimezone(UTC))

    @staticmethod
    def every(span: str | timedelta | Span, anchor: datetime | None = None) -> Interval:
        """Every `15m`, `PT15M`, `P1M` or timedelta; whole days of a timedelta are days of the calendar."""
        if isinstance(span, timedelta):
            days = span.days if span == timedelta(days=span.days) else 0
            span = Span(days=days) if days else Span(elapsed=span)
        elif isinstance(span, str):
            span = read_span(span)
        return Interval(months=span.months, days=span.days, elapsed=span.elapsed, anchor=anchor)

    @cached_property
    def text(self) -> str:
        span = span_text(self.months, self.days, self.elapsed)
        return span if self.anchor is None else f"{span}/{self.anchor.isoformat().replace('+00:00', 'Z')}"

    def timeline(self, setting: Setting) -> Timeline:
        anchor = self.anchor or setting.starts_at or DEFAULT_ANCHOR
        if self.elapsed:
            return ElapsedTimeline(self.elapsed, _as_instant(anchor, setting))
        wall = anchor if anchor.tzinfo is None else wall_of(setting.zone, anchor)
        pattern = MonthPattern(self.months, wall) if self.months else DayPattern(self.days, wall)
        return WallTimeline(pattern, setting)


def _as_instant(anchor: datetime, setting: Setting) -> datetime:
    zone: ZoneInfo = setting.zone
    if anchor.tzinfo is not None:
        return anchor
    # Without an anchor, hours are counted in UTC: the same instants in every zone.
    return anchor.replace(tzinfo=UTC) if anchor is DEFAULT_ANCHOR else instant_of(zone, anchor)


class ElapsedTimeline:
    """Every so much elapsed time, whatever clocks show."""

    def __init__(self, every: timedelta, anchor: datetime) -> None:
        self._every, self._anchor = every, anchor

    def next_after(self, instant: datetime) -> datetime | None:
        if instant >= LATEST:
            return None
        return self._anchor + ((instant - self._anchor) // self._every + 1) * self._every

    def prev_before(self, instant: datetime) -> datetime | None:
        if instant <= EARLIEST:
            return None
        return self._anchor + ((instant - TICK - self._anchor) // self._every) * self._every


class DayPattern:
    """Every so many days at one time of day."""

    def __init__(self, every: int, anchor: datetime) -> None:
        self._every, self._anchor = timedelta(days=every), anchor

    def next_wall(self, wall: datetime) -> datetime | None:
        return self._anchor + ((wall - self._anchor) // self._every + 1) * self._every

    def prev_wall(self, wall: datetime) -> datetime | None:
        return self._anchor + ((wall - TICK - self._anchor) // self._every) * self._every


class MonthPattern:
    """Every so many months on the anchor's day, or on the last day of shorter months."""

    def __init__(self, every: int, anchor: datetime) -> None:
        self._every, self._anchor = every, anchor

    def next_wall(self, wall: datetime) -> datetime | None:
        count = self._count_near(wall) - 1
        while (found := self._wall(count)) <= wall:
            count += 1
        return found

    def prev_wall(self, wall: datetime) -> datetime | None:
        count = self._count_near(wall) + 1
        while (found := self._wall(count)) >= wall:
            count -= 1
        return found

    def _count_near(self, wall: datetime) -> int:
        return (12 * (wall.year - self._anchor.year) + wall.month - self._anchor.month) // self._every

    def _wall(self, count: int) -> datetime:
        return months_after(self._anchor, count * self._every)
