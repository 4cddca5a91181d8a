"""Schedules as text and as JSON documents, in the one way that equal schedules share. What is as usual is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.schedule.calendar import Calendar, CalendarUse, Use
from mainspring.schedule.instants import instant_text
from mainspring.schedule.interval import span_text
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Schedule

_KEYS = {Use.INCLUDE: "only", Use.EXCLUDE: "not", Use.BLACKOUT: "blackout"}


def text_of(schedule: Schedule) -> str:
    settings = [f"{key}={value}" for key, value in _settings(schedule).items()]
    return " ".join([schedule.when.text, *settings, *map(_use_text, schedule.calendars)])


def document_of(schedule: Schedule) -> dict[str, Any]:
    document: dict[str, Any] = {"when": schedule.when.text, **_settings(schedule)}
    if schedule.calendars:
        document["calendars"] = [_use_document(each) for each in schedule.calendars]
    return document


def _settings(schedule: Schedule) -> dict[str, str | int]:
    settings: dict[str, str | int] = {}
    if schedule.zone != "UTC":
        settings["zone"] = schedule.zone
    if schedule.gap is not GapPolicy.AS_CRON:
        settings["gap"] = schedule.gap.value
    if schedule.repeat is not RepeatPolicy.AS_CRON:
        settings["repeat"] = schedule.repeat.value
    if schedule.starts_at is not None:
        settings["starts"] = instant_text(schedule.starts_at)
    if schedule.ends_at is not None:
        settings["ends"] = instant_text(schedule.ends_at)
    if schedule.max_runs is not None:
        settings["runs"] = schedule.max_runs
    if schedule.spread is not None:
        settings["spread"] = span_text(elapsed=schedule.spread)
    return settings


def _use_text(each: CalendarUse) -> str:
    return f"{_KEYS[each.use]}={each.calendar.name}" + (f":{each.then.value}" if each.use is Use.BLACKOUT else "")


def _use_document(each: CalendarUse) -> dict[str, Any]:
    document: dict[str, Any] = {"use": each.use.value}
    if each.is_stored:
        document["stored"] = each.calendar.name
    else:
        document["calendar"] = calendar_document(each.calendar)
    return document | {"then": each.then.value} if each.use is Use.BLACKOUT else document


def calendar_document(calendar: Calendar) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": calendar.name,
        "dates": [day.isoformat() for day in sorted(calendar.dates)],
        "weekdays": sorted(calendar.weekdays),
        "ranges": [[first.isoformat(), last.isoformat()] for first, last in calendar.ranges],
        "yearly": [f"{month:02}-{day:02}" for month, day in sorted(calendar.yearly)],
        "windows": [[begin.isoformat(), end.isoformat()] for begin, end in calendar.windows],
    }
    return {key: value for key, value in document.items() if value}
