"""Recurrence rules from text: the properties DTSTART, RRULE, RDATE and EXDATE of an event (RFC 5545)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from mainspring.schedule.faults import fault
from mainspring.schedule.interval import DEFAULT_ANCHOR
from mainspring.schedule.rule import Rule, read_wall, wall_text
from mainspring.schedule.rule_days import WEEKDAYS
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.zones import first_instant_at, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.errors import InvalidSchedule

MAX_LENGTH = 1_000  # of RRULE
MAX_DATES = 400  # of RDATE and of EXDATE
MAX_COUNT = 10_000
MAX_INTERVAL = 10_000
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
_RANGES = {
    "BYMONTH": (1, 12),
    "BYWEEKNO": (-53, 53),
    "BYYEARDAY": (-366, 366),
    "BYMONTHDAY": (-31, 31),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
    "BYSETPOS": (-366, 366),
}
KEYS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY",
        "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS")  # fmt: skip
_PROPERTY = re.compile(
    r"(?<!\S)(DTSTART|DTEND|DURATION|RRULE|EXRULE|RDATE|EXDATE)((?:;[A-Z-]+=[^\s;:]*)*)[:=]", re.IGNORECASE | re.ASCII
)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_NAMES = ("DTSTART", "RRULE", "RDATE", "EXDATE")
_DATES = "20261231, 20261231T090000 or 20261231T090000Z"


class _Property(NamedTuple):
    name: str
    zone: str  # the TZID
    value: str
    at: int  # where the value begins


class RuleReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, starts: datetime | None) -> Rule:
        found: dict[str, list[_Property]] = {}
        for each in self._properties():
            found.setdefault(each.name, []).append(each)
        start = self._single(found, "DTSTART")
        zone, starts = self._start(start) if start else (None, starts or DEFAULT_ANCHOR)
        rule = self._single(found, "RRULE")
        if rule is None:
            raise self._wrong(len(self._text), "RRULE is missing", allowed="RRULE:FREQ=…")
        added, without = (self._dates(found.get(name, []), zone) for name in ("RDATE", "EXDATE"))
        return Rule(self._parts(rule.value, rule.at), starts, zone, added, without)

    # ── properties ──────────────────────────────────────────────────────────────────────────────────────────

    def _properties(self) -> Iterator[_Property]:
        """What the text is made of. What stands before the first name is the rule itself."""
        matches = list(_PROPERTY.finditer(self._text))
        ends = [*(match.start() for match in matches), len(self._text)]
        if (head := self._text[: ends[0]]).strip():
            yield _Property("RRULE", "", head.rstrip(), 0)
        for match, end in zip(matches, ends[1:], strict=True):
            name, value = match[1].upper(), self._text[match.end() : end]
            if name not in _NAMES:
                hint = "a schedule says 'A but not B' instead" if name == "EXRULE" else "a schedule has no length"
                raise self._wrong(
                    match.start(), f"{name} is not known: {hint}", allowed="DTSTART, RRULE, RDATE, EXDATE"
                )
            yield _Property(name, self._zone(match), value.rstrip(), match.end())

    def _zone(self, match: re.Match[str]) -> str:
        """The TZID of a property. VALUE is what the value looks like anyway."""
        zone = ""
        for parameter in match[2].split(";")[1:]:
            key, _, value = parameter.partition("=")
            kind = value.upper()
            if key.upper() == "TZID" and match[1].upper() != "RRULE":
                zone = zone_named(value.strip('"')).key
            elif key.upper() != "VALUE" or kind not in ("DATE", "DATE-TIME"):
                allowed = "TZID=Europe/Berlin, VALUE=DATE, VALUE=DATE-TIME"
                raise self._wrong(match.start(2), f"{parameter[:30]!r} does not fit", allowed=allowed)
        return zone

    def _single(self, found: dict[str, list[_Property]], name: str) -> _Property | None:
        given = found.get(name, [])
        if len(given) > 1:
            hint = "; several rules are a union: 'A | B'" if name == "RRULE" else ""
            raise self._wrong(given[1].at, f"{name} is given twice{hint}")
        return given[0] if given else None

    def _start(self, start: _Property) -> tuple[str | None, datetime]:
        wall = read_wall(start.value)
        if wall is None:
            raise self._wrong(start.at, "DTSTART cannot be read", allowed=_DATES)
        is_utc = self._is_utc(start, start.value, start.at)
        return ("UTC" if is_utc else start.zone or None), wall

    def _is_utc(self, given: _Property, value: str, at: int) -> bool:
        is_utc = value.strip().upper().endswith("Z")
        if is_utc and given.zone not in ("", "UTC"):
            raise self._wrong(at, f"Z is UTC, but TZID is {given.zone}")
        return is_utc

    def _dates(self, given: list[_Property], zone: str | None) -> tuple[str, ...]:
        """Dates as they are kept: walls of the rule's zone as such, others as instants."""
        if sum(each.value.count(",") + 1 for each in given) > MAX_DATES:
            problem = f"RDATE and EXDATE have at most {MAX_DATES} dates each"
            raise fault(self._text, given[0].at, problem, code="schedule-too-large")
        return tuple(sorted({date for each in given for date in self._dates_of(each, zone)}))

    def _dates_of(self, given: _Property, zone: str | None) -> Iterator[str]:
        at = given.at
        for piece in given.value.split(","):
            wall = read_wall(piece)
            if wall is None or not EARLIEST.year <= wall.year < LATEST.year:
                problem = f"{piece.strip()[:30]!r} is no date between the years {EARLIEST.year} and {LATEST.year}"
                raise self._wrong(at, problem, allowed=_DATES)
            yield self._date(given, piece.strip().upper(), wall, zone, at)
            at += len(piece) + 1

    def _date(self, given: _Property, piece: str, wall: datetime, zone: str | None, at: int) -> str:
        if self._is_utc(given, piece, at):
            return wall_text(wall) + ("" if zone == "UTC" else "Z")
        if "T" not in piece:
            return wall_text(wall)[:8]
        if given.zone in ("", zone):
            return wall_text(wall)
        instant = first_instant_at(zone_named(given.zone), wall).astimezone(UTC)
        return wall_text(instant.replace(tzinfo=None)) + ("" if zone == "UTC" else "Z")

    # ── the rule itself ─────────────────────────────────────────────────────────────────────────────────────

    def _parts(self, text: str, at: int) -> tuple[tuple[str, str], ...]:
        if len(text) > MAX_LENGTH:
            problem = f"a recurrence rule has at most {MAX_LENGTH} characters"
            raise fault(self._text, at + MAX_LENGTH, problem, code="schedule-too-large")
        found: dict[str, str] = {}
        for part in text.rstrip(";").split(";"):
            key, value = self._part(part, at)
            if key in found:
                raise self._wrong(at, f"{key} is given twice")
            found[key] = value
            at += len(part) + 1
        self._check_together(found)
        return tuple((key, found[key]) for key in KEYS if key in found and not _is_default(key, found[key]))

    def _part(self, part: str, at: int) -> tuple[str, str]:
        key, equals, value = part.strip().upper().partition("=")
        if key not in KEYS or not equals:
            raise self._wrong(at, f"{key[:20]!r} is no part of a rule", allowed=", ".join(KEYS))
        return key, self._value(key, value, at + len(key) + 1)

    def _value(self, key: str, value: str, at: int) -> str:
        match key:
            case "FREQ":
                return self._one_of(FREQUENCIES, value, at)
            case "WKST":
                return self._one_of(WEEKDAYS, value, at)
            case "INTERVAL":
                return str(self._number(value, 1, MAX_INTERVAL, at))
            case "COUNT":
                return str(self._number(value, 1, MAX_COUNT, at))
            case "UNTIL":
                wall = read_wall(value)
                if wall is None:
                    raise self._wrong(at, "UNTIL cannot be read", allowed="20261231 or 20261231T235959")
                return wall_text(wall) + ("Z" if value.endswith("Z") else "")
            case "BYDAY":
                return self._days(value, at)
            case _:
                return self._listed(key, value, at)

    def _listed(self, key: str, value: str, at: int) -> str:
        least, most = _RANGES[key]
        numbers = {
            self._number(each, least, most, at, no_zero=least < 0 or key == "BYMONTH") for each in value.split(",")
        }
        return ",".join(map(str, sorted(numbers)))

    def _days(self, value: str, at: int) -> str:
        found = set()
        for each in value.split(","):
            match = _DAY.fullmatch(each)
            if not match or (match[1] and not 1 <= abs(int(match[1])) <= 53):
                raise self._wrong(at, f"{each[:12]!r} is no weekday", allowed="MO to SU, also numbered: 1MO, -1FR")
            found.add((WEEKDAYS.index(match[2]), int(match[1] or 0)))
        return ",".join(f"{nth or ''}{WEEKDAYS[day]}" for day, nth in sorted(found))

    def _one_of(self, words: tuple[str, ...], value: str, at: int) -> str:
        if value not in words:
            raise self._wrong(at, f"{value[:20]!r} is not known", allowed=", ".join(words))
        return value

    def _number(self, value: str, least: int, most: int, at: int, *, no_zero: bool = False) -> int:
        if re.fullmatch(r"[+-]?\d{1,9}", value):
            number = int(value)
            if least <= number <= most and (number or not no_zero):
                return number
        raise self._wrong(
            at, f"{value[:20]!r} does not fit", allowed=f"{least} to {most}" + (", not 0" if no_zero else "")
        )

    def _check_together(self, found: dict[str, str]) -> None:
        if "FREQ" not in found:
            raise self._wrong(0, "FREQ is missing", allowed="FREQ=" + "|".join(FREQUENCIES))
        if "COUNT" in found and "UNTIL" in found:
            at = self._text.upper().find("UNTIL")
            raise self._wrong(at, "COUNT and UNTIL exclude each other", allowed="one of the two")
        frequency = found["FREQ"]
        if any(character.isdigit() for character in found.get("BYDAY", "")) and (
            frequency not in ("MONTHLY", "YEARLY") or "BYWEEKNO" in found
        ):
            problem, allowed = "numbered weekdays need FREQ=MONTHLY or YEARLY", "MO without a number, or another FREQ"
            raise self._wrong(self._text.upper().find("BYDAY"), problem, allowed=allowed)
        if "BYWEEKNO" in found and frequency != "YEARLY":
            allowed = "weeks of the year with FREQ=YEARLY; days of the month are BYMONTHDAY=15 or BYDAY=3MO"
            raise self._wrong(self._text.upper().find("BYWEEKNO"), "BYWEEKNO needs FREQ=YEARLY", allowed=allowed)
        if "BYSETPOS" in found:
            self._check_positions(found)
        if found.get("INTERVAL", "1") != "1":
            self._check_steps(found)

    def _check_steps(self, found: dict[str, str]) -> None:
        """A step and a filter of the same kind may never meet, and the search for that would be long."""
        refused = {"HOURLY": ("BYHOUR",), "MINUTELY": ("BYMINUTE",), "SECONDLY": ("BYMINUTE", "BYSECOND")}
        for key in refused.get(found["FREQ"], ()):
            if key in found:
                problem = f"{key} does not go with FREQ={found['FREQ']} and an INTERVAL; name the times themselves"
                allowed = "FREQ=DAILY with BYHOUR, BYMINUTE and BYSECOND"
                raise self._wrong(self._text.upper().find(key), problem, allowed=allowed)

    def _check_positions(self, found: dict[str, str]) -> None:
        """Positions among times of day are refused: who wants the third second of a day can say BYSECOND=2."""
        several = any("," in found.get(key, "") for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
        if several or found["FREQ"] not in ("YEARLY", "MONTHLY", "WEEKLY"):
            at = self._text.upper().find("BYSETPOS")
            problem = "BYSETPOS counts days here; it needs FREQ=WEEKLY or slower and one time of day"
            raise self._wrong(at, problem, allowed="FREQ=WEEKLY, MONTHLY or YEARLY, and one BYHOUR")

    def _wrong(self, at: int, problem: str, *, allowed: str = "") -> InvalidSchedule:
        return fault(self._text, max(at, 0), problem, allowed=allowed, code="invalid-rrule")


def _is_default(key: str, value: str) -> bool:
    return (key, value) in (("INTERVAL", "1"), ("WKST", "MO"))
