"""Reads cron expressions, field by field, and says exactly what is wrong with those that are none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron_fields import (
    DAY,
    FULL_NAMES,
    HOUR,
    LAST_HASHED_DAY,
    MINUTE,
    MONTH,
    SECOND,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    CronField,
    Hashed,
    LastDay,
    LastWeekday,
    NearestWeekday,
    Nth,
    Special,
    Unit,
    in_week,
)
from mainspring.schedule.faults import fault
from mainspring.schedule.slips import meant_by

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LENGTH = 500
_FIELD = re.compile(r"\S+")
_HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d+))?", re.ASCII)
_SPECIAL_DAY = re.compile(r"L(?:-(?P<back>\d+))?(?P<near>W)?|(?P<day>\d+)W", re.ASCII)
_NAMED_WEEKDAY = "|".join([*WEEKDAYS, *(FULL_NAMES[name] for name in WEEKDAYS)])
_SPECIAL_WEEKDAY = re.compile(rf"(?P<weekday>\w+)#(?P<nth>\d+)|(?P<last>[0-7]|{_NAMED_WEEKDAY})L", re.ASCII)
_NUMBERED = re.compile(r"(?:^|[,-])\d", re.ASCII)  # a weekday by its number
_ALLOWED = {
    DAY: "* ? 1-31 L L-3 LW L-3W 15W H, lists, ranges and steps",
    WEEKDAY: "* ? 0-7 SUN-SAT 5L 2#1 H, lists, ranges and steps",
    MONTH: "* 1-12 JAN-DEC H, lists, ranges and steps",
    YEAR: f"* {YEAR.least}-{YEAR.most}, lists, ranges and steps",
}
EVERY_YEAR = CronField(YEAR, tuple(YEAR.everything), star=True)


def read_fields(text: str) -> tuple[CronField, ...]:
    """The seven fields of an expression of five, six (with leading seconds) or seven (with a year as well)."""
    found = split_fields(text)
    if len(found) not in (5, 6, 7):
        raise _wrong_number(text, len(found))
    _refuse_other_dialects(text, found)
    units = UNITS[1:-1] if len(found) == 5 else UNITS[: len(found)]
    fields = [FieldReader(text, match, unit).read() for match, unit in zip(found, units, strict=True)]
    seconds = [CronField(SECOND, (0,))] if len(fields) == 5 else []
    return (*seconds, *fields, *([EVERY_YEAR] if len(fields) < 7 else []))


def split_fields(text: str) -> list[re.Match[str]]:
    if len(text) > MAX_LENGTH:
        raise fault(
            text, MAX_LENGTH, f"a cron expression has at most {MAX_LENGTH} characters", code="schedule-too-large"
        )
    return list(_FIELD.finditer(text))


def _refuse_other_dialects(text: str, found: list[re.Match[str]]) -> None:
    """EventBridge has the year as its sixth field, and Quartz counts from Sunday = 1: as cron, both mean other days."""
    if len(found) == 6 and "?" in (found[2].group(), found[4].group()):
        raise fault(
            text,
            found[2 if found[2].group() == "?" else 4].start(),
            "'?' stands for a day of month or a day of week only; six fields are second to day of week",
            allowed="cron(…) around six fields of EventBridge: minute hour day-of-month month day-of-week year",
            offers=[f"cron({text.strip()})"],
            code="invalid-cron",
        )
    if len(found) > 5 and "?" in (found[3].group(), found[5].group()) and _NUMBERED.search(found[5].group()):
        raise fault(
            text,
            found[5].start(),
            "the weekday's number is not clear: with seconds and '?', Quartz counts from Sunday = 1, cron from 0",
            allowed="names such as MON, FRIL and TUE#1; or * instead of ?, and cron's numbers",
            code="invalid-cron",
        )


def _wrong_number(text: str, count: int) -> InvalidSchedule:
    return fault(
        text,
        min(len(text), 0 if count < 5 else _FIELD.search(text).end()) if count else 0,  # type: ignore[union-attr]
        f"a cron expression has 5 fields, 6 with seconds in front, or 7 with a year behind as well; this has {count}",
        allowed="minute hour day-of-month month day-of-week",
        offers=_with_five(text.split()),
        code="invalid-cron",
    )


def _with_five(words: list[str]) -> list[str]:
    """With one field too few, the last one was left out, perhaps. Words after five fields are a crontab's command."""
    if len(words) == 4:
        return [" ".join([*words, "*"])]
    is_command = len(words) > 5 and not _is_readable(" ".join(words[:6]))
    return [" ".join(words[:5])] if is_command else []


def _is_readable(text: str) -> bool:
    try:
        return bool(read_fields(text))
    except InvalidSchedule:
        return False


class FieldReader:
    """Reads one field. `found` says where it stands in the whole text, so that errors can point."""

    def __init__(self, text: str, found: re.Match[str], unit: Unit) -> None:
        self._text, self._begin, self._field, self._unit = text, found.start(), found.group(), unit
        self._values: set[int] = set()
        self._specials: set[Special] = set()

    def read(self) -> CronField:
        position = 0
        for item in self._field.split(","):
            self._read_item(item.upper(), position)
            position += len(item) + 1
        values = tuple(sorted(self._values))
        is_full = len(values) == len(self._unit.everything)  # then special items add nothing
        specials = () if is_full else tuple(sorted(self._specials, key=str))
        return CronField(self._unit, values, specials, self._is_starred(is_full=is_full))

    def _is_starred(self, *, is_full: bool) -> bool:
        """Whether cron sees a wildcard: a star in front. Where that changes nothing, equal sets are equal fields."""
        if self._unit in (SECOND, MONTH, YEAR):
            return is_full
        return self._field[0] in "*?" or bool(re.match(r"[Hh]/", self._field))

    def _read_item(self, item: str, at: int) -> None:
        if not item:
            raise self._wrong(at, "an item is missing", instead=",".join(filter(None, self._field.split(","))))
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
        if match["day"]:
            return NearestWeekday(self._number(match["day"], at))
        back = int((match["back"] or "0")[:4])
        if back > 30:
            raise self._wrong(at + 2, "no month has so many days before its last", allowed="L-1 to L-30")
        return NearestWeekday(None, back) if match["near"] else LastDay(back)

    def _special_weekday(self, match: re.Match[str], at: int) -> Special:
        if match["last"]:
            return LastWeekday(self._number(match["last"], at) % 7)
        weekday, nth = self._number(match["weekday"], at) % 7, match["nth"]
        if nth not in ("1", "2", "3", "4", "5"):
            raise self._wrong(at + match.start("nth"), "a month has at most five of a weekday", allowed="#1 to #5")
        return Nth(weekday, int(nth))

    def _read_hashed(self, item: str, at: int) -> bool:
        match = _HASHED.fullmatch(item)
        if not match or self._unit is YEAR:  # a job that picks its year would run in one only
            return False
        first, last = self._unit.least, LAST_HASHED_DAY if self._unit is DAY else self._unit.most
        if match[1]:
            first = self._number(match[1], at + match.start(1))
            last = self._number(match[2], at + match.start(2))
            if last < first:
                allowed = "H(first-last) with the smaller number first, as in H(0-29)"
                raise self._wrong(at + 2, "H needs a range that does not wrap around", allowed=allowed)
        step = self._step(match[3], at + match.start(3), last - first + 1) if match[3] else None
        self._specials.add(Hashed(first, last, step, whole=not match[1]))
        return True

    def _read_range(self, item: str, at: int) -> None:
        match = _RANGE.match(item)
        if not match:
            raise self._wrong(at, f"{item[:1]!r} cannot begin an item")
        if match.end() < len(item):
            problem = f"{item[match.end()]!r} cannot stand here"
            raise self._wrong(at + match.end(), problem, instead=self._with(at, item, _mended(item)))
        numbers = self._numbers(match, at)
        step = self._step(match["step"], at + match.start("step"), len(numbers)) if match["step"] else 1
        self._values.update(in_week(self._unit, n) for n in numbers[::step])

    def _numbers(self, match: re.Match[str], at: int) -> list[int]:
        """All numbers of a range; one that wraps around (22-2, FRI-MON) goes through the end of the unit."""
        first, last, everything = match["first"], match["last"], self._unit.everything
        if first == "?" and (self._unit not in (DAY, WEEKDAY) or self._field != "?"):
            rule = "stands for a whole day of month or day of week only"
            raise self._wrong(at, f"'?' {rule}", instead=self._field.replace("?", "*"))
        if first in "*?":
            if last:
                raise self._wrong(at + match.start("last") - 1, "a star has no range")
            return list(everything)
        low = self._number(first, at)
        high = self._number(last, at + match.start("last")) if last else (self._unit.most if match["step"] else low)
        if low <= high:
            return list(range(low, high + 1))
        if self._unit is YEAR:
            turned = self._with(at, match.group(), f"{high}-{low}")
            raise self._wrong(at, "years do not come around again", instead=turned)
        return [*range(low, self._unit.most + 1), *range(self._unit.least, high + 1)]

    def _step(self, digits: str, at: int, most: int) -> int:
        step = int(digits) if len(digits) <= 4 else 0
        if not 1 <= step <= most:
            problem = f"a step of {digits[:12]} leads nowhere"
            raise self._wrong(at, problem, allowed=f"1 to {most}", offers=self._as_interval(step))
        return step

    def _as_interval(self, step: int) -> list[str]:
        """People who write */90 mean every 90 minutes, which cron cannot say; with hours or days, nobody knows."""
        letter = {SECOND: "s", MINUTE: "m", HOUR: "h"}.get(self._unit)
        before, after = self._text[: self._begin].split(), self._text[self._begin + len(self._field) :].split()
        is_all = self._field == f"*/{step}" and set(before) <= {"0"} and set(after) <= {"*"}
        return [f"@every {step}{letter}"] if letter and step and is_all else []

    def _number(self, word: str, at: int) -> int:
        if word.isascii() and word.isdigit():
            number = self._counted(int(word)) if len(word) <= 4 else -1
            if number in self._unit.everything or (self._unit is WEEKDAY and number == 7):
                return number
            raise self._wrong(at, f"{word[:12]} is no {self._unit.name}")
        name = word if word == FULL_NAMES.get(word[:3]) else ""
        if word in self._unit.names or name[:3] in self._unit.names:
            return self._unit.names.index(word[:3]) + self._unit.least
        problem = f"{word[:12]!r} is no {self._unit.name}"
        raise self._wrong(at, problem, instead=self._with(at, word, self._name_meant(word)))

    def _counted(self, number: int) -> int:
        """What a number means; dialects count weekdays from elsewhere."""
        return number

    def _name_meant(self, word: str) -> str:
        """`TUES`, `MUNDAY`: the name of which this is a part, or a slip."""
        names = self._unit.names
        longer = [name for name in names if len(word) > 3 and FULL_NAMES[name].startswith(word)]
        return longer[0] if longer else meant_by(word, [*names, *(FULL_NAMES[name] for name in names)])

    def _with(self, at: int, piece: str, instead: str) -> str:
        """The field with something else in place of a piece of it."""
        return self._field[:at] + instead + self._field[at + len(piece) :] if instead else ""

    def _wrong(
        self, at: int, problem: str, *, allowed: str = "", instead: str = "", offers: Sequence[str] = ()
    ) -> InvalidSchedule:
        """`instead`: what may have been meant by this field. It is offered with the other fields around it."""
        problem, allowed = f"{self._unit.name}: {problem}", allowed or self._usual()
        if instead:
            before, after = self._text[: self._begin], self._text[self._begin + len(self._field) :]
            offers = [f"{before}{instead}{after}".strip()]
        return fault(self._text, self._begin + at, problem, allowed=allowed, offers=offers, code="invalid-cron")

    def _usual(self) -> str:
        return _ALLOWED.get(self._unit, f"* {self._unit.least}-{self._unit.most} H, lists, ranges and steps")


def _mended(item: str) -> str:
    """`mon..fri`, `5#-1` and `H(0-29` in the spelling that is read here; nothing if it is none of these."""
    mended = re.sub(r"\.\.|--|[–—]", "-", item)
    mended = re.sub(r"#-1$", "L", mended)  # the last of a month, counted from its end
    mended = re.sub(r"^H\([^()]*$", r"\g<0>)", mended)
    return mended if mended != item else ""
