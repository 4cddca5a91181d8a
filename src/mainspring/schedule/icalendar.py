"""Calendars from iCalendar files, and previews as iCalendar files (RFC 5545).

What a file says is read by the library `icalendar`; what of it a calendar can hold is decided here. Whole days become
dates, ranges and yearly dates. What is only a part of a day cannot be said by a calendar of days; it is left out, and
told.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidSchedule, extra_missing
from mainspring.model.payload import printable
from mainspring.schedule.calendar import MAX_DATES, Calendar
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.rule import Rule
from mainspring.schedule.timeline import begin_search
from mainspring.schedule.zones import zone_named

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from zoneinfo import ZoneInfo

    from mainspring.schedule.preview import Preview

MAX_BYTES = 1 << 20
MAX_EVENTS = 5_000
MAX_TOLD = 20
YEARS_AHEAD = 20  # days that recur in another way than once a year are written out so far
DAY = timedelta(days=1)
# What the library raises over files that are none; it promises ValueError and does not always keep it.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The calendar, how many events it was made of, and what could not be taken over, with the reasons."""

    calendar: Calendar
    events: int
    left_out: tuple[str, ...]


def read_calendar(data: bytes, *, name: str, since: date, zone: str = "UTC") -> Imported:
    """The days of an iCalendar file. Those that recur are written out from `since` on, for twenty years."""
    if len(data) > MAX_BYTES:
        raise _refused(f"{len(data):,} bytes", f"must have at most {MAX_BYTES:,} bytes", "icalendar-too-large")
    if (count := data.upper().count(b"BEGIN:VEVENT")) > MAX_EVENTS:
        raise _refused(f"{count:,} events", f"must have at most {MAX_EVENTS:,} events", "icalendar-too-large")
    days = _Days(since, zone_named(zone))
    for event in _events(data):
        days.add(event)
    return Imported(calendar=days.calendar(name), events=days.events, left_out=tuple(days.left_out))


def _library() -> ModuleType:
    """Imported when it is used: that takes a tenth of a second, and not everyone has it."""
    try:
        import icalendar
    except ModuleNotFoundError as error:
        raise extra_missing("Reading and writing iCalendar files", error.name, "icalendar") from error
    return icalendar


def _events(data: bytes) -> list[Any]:
    icalendar = _library()
    try:
        return [event for each in icalendar.Calendar.from_ical(data, multiple=True) for event in each.walk("VEVENT")]
    except UNREADABLE as error:
        raise _refused(data[:60], f"cannot be read: {printable(str(error), 120)}", "invalid-icalendar") from error


def _refused(value: object, rule: str, code: str) -> InvalidSchedule:
    hint = "Export the calendar again, or only the years that matter."
    return broken_rule("icalendar", value, rule, code=code, hint=hint)


@dataclass(slots=True)
class _Days:
    """The days that were found so far."""

    since: date
    zone: ZoneInfo
    events: int = 0
    dates: set[date] = field(default_factory=set)
    ranges: set[tuple[date, date]] = field(default_factory=set)
    yearly: set[tuple[int, int]] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def add(self, event: Any) -> None:
        self.events += 1
        try:
            reason = self._add(event)
        except (*UNREADABLE, InvalidSchedule) as error:
            reason = printable(str(error), 120)
        if reason and len(self.left_out) <= MAX_TOLD:
            more = "more events were left out" if len(self.left_out) == MAX_TOLD else ""
            self.left_out.append(more or f"{printable(str(event.get('SUMMARY', 'an event')), 60)}: {reason}")

    def calendar(self, name: str) -> Calendar:
        if not (self.dates or self.ranges or self.yearly):  # a calendar that names no day would mean every day
            told = f": {'; '.join(self.left_out[:3])}" if self.left_out else ""
            raise _refused(f"{self.events} events", f"must have events of whole days{told}", "icalendar-without-days")
        if len(self.dates) > MAX_DATES:
            raise _refused(f"{len(self.dates):,} dates", f"must have at most {MAX_DATES:,}", "icalendar-too-large")
        return Calendar(
            name=name, dates=frozenset(self.dates), ranges=tuple(self.ranges), yearly=frozenset(self.yearly)
        )

    def _add(self, event: Any) -> str | None:
        """Take over one event, or answer why not."""
        if "DTSTART" not in event:
            return "it has no date"
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            return "it is cancelled"
        if "RECURRENCE-ID" in event:
            return "it changes one occurrence of another event"
        span = self._whole_days(event)
        if span is None:
            return "it is not about whole days"
        first, last = span
        if "RRULE" in event or "RDATE" in event:
            return self._add_recurring(event, first, last)
        if first == last:
            self.dates.add(first)
        else:
            self.ranges.add((first, last))
        return None

    def _whole_days(self, event: Any) -> tuple[date, date] | None:
        """The first and the last day, if the event begins and ends with a day."""
        begin = event.get("DTSTART").dt
        end = event["DTEND"].dt if "DTEND" in event else None
        length = event["DURATION"].dt if end is None and "DURATION" in event else None
        if isinstance(begin, datetime):
            length = length or timedelta(0)
            begin, end = self._wall(begin), self._wall(begin + length if end is None else end)
            if begin.time() != time(0) or end.time() != time(0):
                return None
            begin, end = begin.date(), end.date()
        elif end is None:
            end = begin + (length or DAY)
        return begin, max(begin, end - DAY)

    def _wall(self, at: datetime) -> datetime:
        return at if at.tzinfo is None else at.astimezone(self.zone).replace(tzinfo=None)

    def _add_recurring(self, event: Any, first: date, last: date) -> str | None:
        if first == last and _is_once_a_year(event, first):
            self.yearly.add((first.month, first.day))
            return None
        excluded = set(self._listed(event, "EXDATE"))
        starts = set(self._listed(event, "RDATE")) | {first}
        for rule in _all(event.get("RRULE")):
            starts.update(self._written_out(rule.to_ical().decode(), first))
        length = (last - first).days + 1
        if (len(self.dates) + len(starts)) * length > MAX_DATES:
            return f"it has more than {MAX_DATES:,} days"
        self.dates.update(start + DAY * step for start in starts - excluded for step in range(length))
        return None

    def _listed(self, event: Any, key: str) -> Iterable[date]:
        for each in _all(event.get(key)):
            for stamp in each.dts:
                yield self._wall(stamp.dt).date() if isinstance(stamp.dt, datetime) else stamp.dt

    def _written_out(self, text: str, first: date) -> Iterable[date]:
        if any(f"FREQ={each}" in text.upper() for each in ("HOURLY", "MINUTELY", "SECONDLY")):
            raise ValueError("it recurs within days")
        begin = max(first, self.since)
        end = datetime(begin.year + YEARS_AHEAD, begin.month, 1)  # noqa: DTZ001 - a wall
        begin_search()
        pattern = Rule.parse(text, datetime.combine(first, time(0))).pattern(self.zone)
        found = pattern.next_wall(datetime.combine(begin, time(0)) - timedelta(microseconds=1))
        for _ in range(MAX_DATES + 1):
            if found is None or found >= end:
                return
            yield found.date()
            begin_search()
            found = pattern.next_wall(found)


def _is_once_a_year(event: Any, first: date) -> bool:
    """Whether it is simply the same date every year, for ever."""
    rule = event.get("RRULE")
    if rule is None or isinstance(rule, list) or "EXDATE" in event or "RDATE" in event:
        return False
    implied = {"FREQ": ["YEARLY"], "INTERVAL": [1], "BYMONTH": [first.month], "BYMONTHDAY": [first.day]}
    return rule.get("FREQ") == ["YEARLY"] and all(implied.get(key) == list(value) for key, value in rule.items())


def _all(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def write_preview(preview: Preview, *, title: str, stamp: datetime) -> bytes:
    """The occurrences of a preview as events, dated by `stamp`. Equal occurrences have equal ids."""
    icalendar = _library()
    calendar = icalendar.Calendar()
    calendar.add("PRODID", "-//Mainspring//schedule preview//EN")
    calendar.add("VERSION", "2.0")
    for entry in preview.entries:
        if not entry.fires:
            continue
        event = icalendar.Event()
        named = f"{preview.schedule.text}\0{title}\0{entry.nominal_at.isoformat()}"
        event.add("UID", f"{hashlib.sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}@mainspring")
        event.add("DTSTAMP", stamp.astimezone(UTC))
        event.add("DTSTART", entry.due_at.replace(microsecond=0))
        event.add("SUMMARY", title)
        event.add("DESCRIPTION", "\n".join([preview.words, *entry.notes]))
        event.add("TRANSP", "TRANSPARENT")
        calendar.add_component(event)
    data: bytes = calendar.to_ical()
    return data
