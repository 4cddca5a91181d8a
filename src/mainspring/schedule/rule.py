"""Recurrence rules of RFC 5545 (`RRULE`), counted from a DTSTART on the wall."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from mainspring.schedule.faults import fault
from mainspring.schedule.interval import DEFAULT_ANCHOR
from mainspring.schedule.rule_pattern import END, RulePattern
from mainspring.schedule.walls import WallTimeline
from mainspring.schedule.zones import wall_of

if TYPE_CHECKING:
    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.timeline import Setting, Timeline

MAX_LENGTH = 1_000
MAX_COUNT = 10_000
MAX_INTERVAL = 10_000
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
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
_WALL = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[Tt](\d\d):?(\d\d)(?::?(\d\d))?)?([Zz]?)", re.ASCII)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)


@dataclass(frozen=True)
class Rule:
    """`parts` are (key, value) in canonical order and spelling; `starts` is DTSTART, before which nothing counts."""

    parts: tuple[tuple[str, str], ...]
    starts: datetime = DEFAULT_ANCHOR

    @staticmethod
    def parse(text: str, starts: datetime | None = None) -> Rule:
        """`[DTSTART:20260101T090000] RRULE:FREQ=…`; `starts`, a wall, takes the place of a missing DTSTART."""
        return _RuleReader(text).read(starts)

    @cached_property
    def rrule(self) -> str:
        return ";".join(f"{key}={value}" for key, value in self.parts)

    @cached_property
    def text(self) -> str:
        return f"DTSTART:{self.starts:%Y%m%dT%H%M%S} RRULE:{self.rrule}"

    @property
    def by_key(self) -> dict[str, str]:
        return dict(self.parts)

    def timeline(self, setting: Setting) -> Timeline:
        parts = self.by_key
        within_a_day = FREQUENCIES.index(parts["FREQ"]) > FREQUENCIES.index("DAILY")
        until = read_wall(parts["UNTIL"]) if "UNTIL" in parts else None
        if until is not None and parts["UNTIL"].endswith("Z"):
            until = wall_of(setting.zone, until.replace(tzinfo=UTC))
        return WallTimeline(RulePattern(parts, self.starts, until or END), setting, follows_elapsed_time=within_a_day)


class _RuleReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, starts: datetime | None) -> Rule:
        if len(self._text) > MAX_LENGTH:
            problem = f"a recurrence rule has at most {MAX_LENGTH} characters"
            raise fault(self._text, MAX_LENGTH, problem, code="schedule-too-large")
        rule_at = self._text.upper().find("RRULE:")
        starts = self._dtstart(self._text[: max(rule_at, 0)]) or starts or DEFAULT_ANCHOR
        found: dict[str, str] = {}
        at = rule_at + len("RRULE:") if rule_at >= 0 else 0
        for part in self._text[at:].rstrip().rstrip(";").split(";"):
            key, value = self._part(part, at)
            if key in found:
                raise self._wrong(at, f"{key} is given twice")
            found[key] = value
            at += len(part) + 1
        self._check_together(found)
        return Rule(
            tuple((key, found[key]) for key in KEYS if key in found and not _is_default(key, found[key])), starts
        )

    def _dtstart(self, head: str) -> datetime | None:
        head = head.strip()
        if not head:
            return None
        match = re.fullmatch(r"DTSTART(?:;VALUE=DATE(?:-TIME)?)?[:=](\S+)", head, re.IGNORECASE)
        wall = read_wall(match[1]) if match else None
        if wall is None:
            allowed = "DTSTART:20260101T090000, local time in the schedule's zone"
            raise self._wrong(0, "DTSTART cannot be read", allowed=allowed)
        return wall

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
                return f"{wall:%Y%m%dT%H%M%S}" + ("Z" if value.endswith("Z") else "")
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
            raise self._wrong(self._text.upper().find("UNTIL"), "COUNT and UNTIL exclude each other")
        frequency = found["FREQ"]
        if any(character.isdigit() for character in found.get("BYDAY", "")) and (
            frequency not in ("MONTHLY", "YEARLY") or "BYWEEKNO" in found
        ):
            raise self._wrong(self._text.upper().find("BYDAY"), "numbered weekdays need FREQ=MONTHLY or YEARLY")
        if "BYWEEKNO" in found and frequency != "YEARLY":
            raise self._wrong(self._text.upper().find("BYWEEKNO"), "BYWEEKNO needs FREQ=YEARLY")
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
                raise self._wrong(self._text.upper().find(key), problem)

    def _check_positions(self, found: dict[str, str]) -> None:
        """Positions among times of day are refused: who wants the third second of a day can say BYSECOND=2."""
        several = any("," in found.get(key, "") for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
        if several or found["FREQ"] not in ("YEARLY", "MONTHLY", "WEEKLY"):
            at = self._text.upper().find("BYSETPOS")
            raise self._wrong(at, "BYSETPOS counts days here; it needs FREQ=WEEKLY or slower and one time of day")

    def _wrong(self, at: int, problem: str, *, allowed: str = "") -> InvalidSchedule:
        return fault(self._text, max(at, 0), problem, allowed=allowed, code="invalid-rrule")


def _is_default(key: str, value: str) -> bool:
    return (key, value) in (("INTERVAL", "1"), ("WKST", "MO"))


def read_wall(text: str) -> datetime | None:
    """A date or a local date-time in one of ISO 8601's two spellings."""
    match = _WALL.fullmatch(text.strip())
    if not match:
        return None
    try:
        return datetime(*(int(each or 0) for each in match.groups()[:6]))  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError:
        return None
