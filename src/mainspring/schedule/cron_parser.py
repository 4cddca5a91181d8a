"""Reads cron expressions, field by field, and says exactly what is wrong with those that are none."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import (
    DAY,
    HOUR,
    LAST_HASHED_DAY,
    MINUTE,
    MONTH,
    SECOND,
    UNITS,
    WEEKDAY,
    CronField,
    Hashed,
    LastDay,
    LastWeekday,
    NearestWeekday,
    Nth,
    Special,
    Unit,
)
from mainspring.schedule.faults import fault

if TYPE_CHECKING:
    from mainspring.errors import InvalidSchedule

MAX_LENGTH = 500
_FIELD = re.compile(r"\S+")
_HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d+))?", re.ASCII)
_SPECIAL_DAY = re.compile(r"L(?:-(?P<back>\d+))?|(?P<day>\d+|L)W", re.ASCII)
_SPECIAL_WEEKDAY = re.compile(r"(?P<weekday>\w+)#(?P<nth>\d+)|(?P<last>[0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)L", re.ASCII)
_ALLOWED = {
    DAY: "* ? 1-31 L L-3 LW 15W H, lists, ranges and steps",
    WEEKDAY: "* ? 0-7 SUN-SAT 5L 2#1 H, lists, ranges and steps",
    MONTH: "* 1-12 JAN-DEC H, lists, ranges and steps",
}


def read_fields(text: str) -> tuple[CronField, ...]:
    """The six fields of an expression of five or six (with leading seconds)."""
    if len(text) > MAX_LENGTH:
        raise fault(
            text, MAX_LENGTH, f"a cron expression has at most {MAX_LENGTH} characters", code="schedule-too-large"
        )
    found = list(_FIELD.finditer(text))
    if len(found) not in (5, 6):
        raise _wrong_number(text, len(found))
    units = UNITS if len(found) == 6 else UNITS[1:]
    fields = [
        _FieldReader(text, match.start(), match.group(), unit).read() for match, unit in zip(found, units, strict=True)
    ]
    return tuple(fields) if len(fields) == 6 else (CronField(SECOND, (0,)), *fields)


def _wrong_number(text: str, count: int) -> InvalidSchedule:
    missing = " ".join([text.strip(), *["*"] * (5 - count)]) if 1 <= count < 5 else " ".join(text.split()[:6])
    return fault(
        text,
        min(len(text), 0 if count < 5 else _FIELD.search(text).end()) if count else 0,  # type: ignore[union-attr]
        f"a cron expression has 5 fields, or 6 with seconds in front; this has {count}",
        allowed="minute hour day-of-month month day-of-week",
        suggestion=missing if len(missing) < 60 else "",
        code="invalid-cron",
    )


class _FieldReader:
    """Reads one field. `begin` is where it stands in the whole text, so that errors can point."""

    def __init__(self, text: str, begin: int, field: str, unit: Unit) -> None:
        self._text, self._begin, self._field, self._unit = text, begin, field, unit
        self._values: set[int] = set()
        self._specials: set[Special] = set()

    def read(self) -> CronField:
        position = 0
        for item in self._field.split(","):
            self._read_item(item.upper(), position)
            position += len(item) + 1
        values = tuple(sorted(self._values))
        specials = tuple(sorted(self._specials, key=str))
        return CronField(self._unit, values, specials, self._is_starred(values))

    def _is_starred(self, values: tuple[int, ...]) -> bool:
        """Whether cron sees a wildcard: a star in front. Where that changes nothing, equal sets are equal fields."""
        if self._unit in (SECOND, MONTH):
            return len(values) == len(self._unit.everything)
        return self._field[0] in "*?" or bool(re.match(r"[Hh]/", self._field))

    def _read_item(self, item: str, at: int) -> None:
        if not item:
            raise self._wrong(at, "an item is missing", suggestion=",".join(filter(None, self._field.split(","))))
        if not (self._read_special(item, at) or self._read_hashed(item, at)):
            self._read_range(item, at)

    def _read_special(self, item: str, at: int) -> bool:
        if self._unit is DAY and (match := _SPECIAL_DAY.fullmatch(item)):
            self._specials.add(self._special_day(match, at))
        elif self._unit is WEEKDAY and (match := _SPECIAL_WEEKDAY.fullmatch(item)):
            self._specials.add(self._special_weekday(match, at))
        else:
            return False
        return True

    def _special_day(self, match: re.Match[str], at: int) -> Special:
        if match["day"] == "L":
            return NearestWeekday(None)
        if match["day"]:
            return NearestWeekday(self._number(match["day"], at))
        back = int((match["back"] or "0")[:4])
        if back > 30:
            raise self._wrong(at + 2, "no month has so many days before its last", allowed="L-1 to L-30")
        return LastDay(back)

    def _special_weekday(self, match: re.Match[str], at: int) -> Special:
        if match["last"]:
            return LastWeekday(self._number(match["last"], at) % 7)
        weekday, nth = self._number(match["weekday"], at) % 7, match["nth"]
        if nth not in ("1", "2", "3", "4", "5"):
            raise self._wrong(at + match.start("nth"), "a month has at most five of a weekday", allowed="#1 to #5")
        return Nth(weekday, int(nth))

    def _read_hashed(self, item: str, at: int) -> bool:
        match = _HASHED.fullmatch(item)
        if not match:
            return False
        first, last = self._unit.least, LAST_HASHED_DAY if self._unit is DAY else self._unit.most
        if match[1]:
            first = self._number(match[1], at + match.start(1))
            last = self._number(match[2], at + match.start(2))
            if last < first:
                raise self._wrong(at + 2, "H needs a range that does not wrap around", suggestion=f"H({last}-{first})")
        step = self._step(match[3], at + match.start(3), last - first + 1) if match[3] else None
        self._specials.add(Hashed(first, last, step, whole=not match[1]))
        return True

    def _read_range(self, item: str, at: int) -> None:
        match = _RANGE.match(item)
        if not match:
            raise self._wrong(at, f"{item[:1]!r} cannot begin an item")
        if match.end() < len(item):
            raise self._wrong(
                at + match.end(), f"{item[match.end()]!r} cannot stand here", suggestion=self._guess(item)
            )
        numbers = self._numbers(match, at)
        step = self._step(match["step"], at + match.start("step"), len(numbers)) if match["step"] else 1
        self._values.update(n % 7 if self._unit is WEEKDAY else n for n in numbers[::step])

    def _numbers(self, match: re.Match[str], at: int) -> list[int]:
        """All numbers of a range; one that wraps around (22-2, FRI-MON) goes through the end of the unit."""
        first, last, everything = match["first"], match["last"], self._unit.everything
        if first in "*?":
            if last:
                raise self._wrong(at + match.start("last") - 1, "a star has no range", suggestion=f"*/{last}")
            return list(everything)
        low = self._number(first, at)
        high = self._number(last, at + match.start("last")) if last else (self._unit.most if match["step"] else low)
        if low <= high:
            return list(range(low, high + 1))
        return [*range(low, self._unit.most + 1), *range(self._unit.least, high + 1)]

    def _step(self, digits: str, at: int, most: int) -> int:
        step = int(digits) if len(digits) <= 4 else 0
        if not 1 <= step <= most:
            raise self._wrong(
                at, f"a step of {digits[:12]} leads nowhere", allowed=f"1 to {most}", suggestion=self._other(step)
            )
        return step

    def _other(self, step: int) -> str:
        """People who write */90 mean every 90 minutes, which cron cannot say."""
        letter = {SECOND: "s", MINUTE: "m", HOUR: "h"}.get(self._unit)
        return f"@every {step}{letter}" if letter and step else ""

    def _number(self, word: str, at: int) -> int:
        if word.isascii() and word.isdigit():
            number = int(word) if len(word) <= 3 else self._unit.most + 99
            if number in self._unit.everything or (self._unit is WEEKDAY and number == 7):
                return number
            raise self._wrong(at, f"{word[:12]} is no {self._unit.name}")
        if word in self._unit.names:
            return self._unit.names.index(word) + self._unit.least
        raise self._wrong(at, f"{word[:12]!r} is no {self._unit.name}", suggestion=self._guess(word))

    def _guess(self, word: str) -> str:
        shortened = difflib.get_close_matches(word[:3], self._unit.names, n=1)
        if shortened and word[:1].isalpha():
            return shortened[0]
        numbers = [min(int(digits[:9]), self._unit.most) for digits in re.findall(r"[0-9]+", word[:40])]
        return "-".join(map(str, numbers)) if len(numbers) == 2 and "-" in word else ""

    def _wrong(self, at: int, problem: str, *, allowed: str = "", suggestion: str = "") -> InvalidSchedule:
        unit = self._unit
        usual = _ALLOWED.get(unit, f"* {unit.least}-{unit.most} H, lists, ranges and steps")
        problem = f"{unit.name}: {problem}"
        return fault(
            self._text, self._begin + at, problem, allowed=allowed or usual, suggestion=suggestion, code="invalid-cron"
        )
