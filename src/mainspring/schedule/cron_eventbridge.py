"""Schedules as Amazon EventBridge writes them, for those who paste them: `cron(…)`, `rate(…)` and `at(…)`.

    cron(0 10 ? * MON-FRI 2026)     minute hour day-of-month month day-of-week year; Sunday is 1; one of the days is ?
    rate(5 minutes)                 every so much elapsed time; a day is 24 hours
    at(2026-12-24T18:00:00)         once, by the clock of the schedule's zone

They are read in their own dialect, and stored in ours: as a cron expression, an interval or an instant.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.cron_fields import SECOND, UNITS, WEEKDAY, CronField
from mainspring.schedule.cron_parser import FieldReader, split_fields
from mainspring.schedule.faults import fault
from mainspring.schedule.instants import Instants, read_instant
from mainspring.schedule.interval import Interval

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mainspring.errors import InvalidSchedule

FORM = re.compile(r"\s*(cron|rate|at)\s*\(\s*(.*?)\s*\)\s*", re.IGNORECASE | re.DOTALL)
BEGINS = re.compile(r"(?:cron|rate|at)\s*\(", re.IGNORECASE)
_RATE = re.compile(r"([0-9]{1,9})\s+([a-z]+)", re.IGNORECASE)
_AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400}
_DATES = "at(yyyy-mm-ddThh:mm:ss), without an offset"
_FIELDS = "minute hour day-of-month month day-of-week year, as in cron(0 10 ? * MON-FRI *)"


def read_eventbridge(text: str, zone: ZoneInfo, anchor: datetime | None) -> Cron | Interval | Instants:
    """What one of the three forms says. An interval without an anchor is counted as others are."""
    form = FORM.fullmatch(text)
    if form is None:
        raise _wrong(
            text, len(text.rstrip()), "the bracket is not closed", "cron(…), rate(…) or at(…), and nothing after"
        )
    match form[1].lower():
        case "cron":
            return _cron(text, form)
        case "rate":
            return _rate(text, form, anchor)
        case _:
            return _at(text, form, zone)


class _Reader(FieldReader):
    """A field in the dialect: Sunday is 1, there is no H, and L alone is the last day of the week, Saturday."""

    def _read_item(self, item: str, at: int) -> None:
        if self._unit is WEEKDAY and item == "L":
            self._values.add(6)
        else:
            super()._read_item(item, at)

    def _read_hashed(self, item: str, at: int) -> bool:
        return False

    def _counted(self, number: int) -> int:
        return number if self._unit is not WEEKDAY else number - 1 if 1 <= number <= 7 else -1

    def _usual(self) -> str:
        return super()._usual().replace(" H,", ",").replace("0-7", "1-7")


def _cron(text: str, form: re.Match[str]) -> Cron:
    blank = " " * form.start(2) + form[2]  # so that errors point into the whole text
    found = split_fields(blank)
    if len(found) != 6:
        raise _wrong(text, form.start(2), f"EventBridge's cron has 6 fields; this has {len(found)}", _FIELDS)
    days = [found[2].group(), found[4].group()]
    if days.count("?") != 1:
        at = found[4].start()
        raise _wrong(text, at, "exactly one of day-of-month and day-of-week must be ?", _FIELDS, _with_mark(found))
    fields = [_Reader(text, match, unit).read() for match, unit in zip(found, UNITS[1:], strict=True)]
    return Cron((CronField(SECOND, (0,)), *fields))


def _with_mark(found: list[re.Match[str]]) -> str:
    """The same with the ? where it may be meant: in place of a star."""
    fields = [match.group() for match in found]
    place = next((each for each in (4, 2) if fields[each] == "*"), None)
    return "" if place is None else f"cron({' '.join([*fields[:place], '?', *fields[place + 1 :]])})"


def _rate(text: str, form: re.Match[str], anchor: datetime | None) -> Interval:
    match = _RATE.fullmatch(form[2])
    allowed = "rate(value unit), as in rate(1 hour) and rate(5 minutes)"
    unit = match[2].lower().removesuffix("s") if match else ""
    if match is None or unit not in _SECONDS or int(match[1]) < 1:
        problem = "a rate is a whole number above 0 and minute(s), hour(s) or day(s)"
        raise _wrong(text, form.start(2), problem, allowed)
    count, wanted = int(match[1]), unit if int(match[1]) == 1 else f"{unit}s"
    if match[2].lower() != wanted:
        at = form.start(2) + match.start(2)
        problem = "the unit is singular after 1, and plural after other numbers"
        raise _wrong(text, at, problem, allowed, f"rate({count} {wanted})")
    return Interval(elapsed=timedelta(seconds=count * _SECONDS[unit]), anchor=anchor)


def _at(text: str, form: re.Match[str], zone: ZoneInfo) -> Instants:
    if not _AT.fullmatch(form[2]):
        raise _wrong(text, form.start(2), "this is no date and time", _DATES)
    return Instants.of(read_instant(text, form.start(2), form[2], zone, allowed=_DATES))


def _wrong(text: str, at: int, problem: str, allowed: str, instead: str = "") -> InvalidSchedule:
    offers = [instead] if instead else []
    return fault(text, min(at, len(text)), problem, allowed=allowed, offers=offers, code="invalid-cron")
