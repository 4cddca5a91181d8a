"""Schedules and calendars from their JSON documents: what `Schedule.as_document()` wrote, or people did by hand."""

from __future__ import annotations

from datetime import date, time
from typing import Any, TypeVar

import msgspec

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import MAX_DATES, BlackoutPolicy, Calendar, CalendarUse, NamedCalendar, Use
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.instants import read_instant
from mainspring.schedule.interval import read_elapsed
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.schedule_checks import MAX_CALENDARS
from mainspring.schedule.text import MAX_LENGTH
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.schedule.when_text import read_when
from mainspring.schedule.zones import zone_named

Document = TypeVar("Document", bound=msgspec.Struct)


class CalendarDocument(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    dates: list[date] = []
    weekdays: list[int] = []
    ranges: list[tuple[date, date]] = []
    yearly: list[str] = []
    windows: list[tuple[time, time]] = []


class UseDocument(msgspec.Struct, forbid_unknown_fields=True):
    calendar: CalendarDocument | None = None
    stored: str | None = None  # or the name of a stored one
    use: Use = Use.EXCLUDE
    then: BlackoutPolicy = BlackoutPolicy.DROP


class ScheduleDocument(msgspec.Struct, forbid_unknown_fields=True):
    when: str
    zone: str = "UTC"
    gap: GapPolicy = GapPolicy.AS_CRON
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON
    starts: str | None = None
    ends: str | None = None
    runs: int | None = None
    spread: str | None = None
    calendars: list[UseDocument] = []


def schedule_of(document: dict[str, Any]) -> Schedule:
    """A schedule from its document. It may never fire: a schedule that is stored stays readable.

    Stored calendars are known by their names only: see `Schedule.with_stored`.
    """
    read = _converted(document, ScheduleDocument)
    if len(read.when) > MAX_LENGTH or len(read.calendars) > MAX_CALENDARS:
        raise InvalidSchedule("The document is too large.", code="schedule-too-large", field="when", rule="bounded")
    zone = zone_named(read.zone)
    when = read_when(read.when, zone)
    if isinstance(when, Schedule):
        rule = "must not name a zone or bounds in words"
        raise InvalidSchedule(f"when {rule}.", code="invalid-document", field="when", rule=rule)
    return Schedule(
        when=when,
        zone=read.zone,
        gap=read.gap,
        repeat=read.repeat,
        calendars=tuple(_use(each) for each in read.calendars),
        starts_at=None if read.starts is None else read_instant(read.starts, 0, read.starts, zone),
        ends_at=None if read.ends is None else read_instant(read.ends, 0, read.ends, zone),
        max_runs=read.runs,
        spread=None if read.spread is None else read_elapsed(read.spread, "spread"),
    )


def calendar_of(document: dict[str, Any]) -> Calendar:
    for field in ("dates", "ranges", "yearly", "windows"):
        if len(document.get(field, ())) > MAX_DATES:  # before anything is read
            raise InvalidSchedule(
                f"calendar.{field} is too long.", code="invalid-calendar", field=field, rule="bounded"
            )
    return _calendar(_converted(document, CalendarDocument))


def _use(read: UseDocument) -> CalendarUse:
    if (read.calendar is None) == (read.stored is None):
        rule = "must have a calendar or the name of a stored one"
        raise InvalidSchedule(f"calendars {rule}.", code="invalid-document", field="calendars", rule=rule)
    calendar = NamedCalendar(name=read.stored or "") if read.calendar is None else _calendar(read.calendar)
    return CalendarUse(calendar=calendar, use=read.use, then=read.then, is_stored=read.calendar is None)


def _calendar(read: CalendarDocument) -> Calendar:
    return Calendar(
        name=read.name,
        dates=frozenset(read.dates),
        weekdays=frozenset(read.weekdays),
        ranges=tuple(read.ranges),
        yearly=frozenset(_month_and_day(text) for text in read.yearly),
        windows=tuple(read.windows),
    )


def _month_and_day(text: str) -> tuple[int, int]:
    try:
        day = date.fromisoformat(f"2000-{text}")
    except ValueError:
        rule = "must be month and day, such as 12-24"
        raise broken_rule("calendar.yearly", text, rule, code="invalid-calendar") from None
    return day.month, day.day


def _converted(document: object, kind: type[Document]) -> Document:
    try:
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as error:
        problem = f"The document is no schedule: {error}."
        raise InvalidSchedule(problem, code="invalid-document", rule=str(error)) from None
