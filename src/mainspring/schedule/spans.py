"""Spans of time as people write them: `PT15M`, `P1M`, `15m`, `1h30m`; and back, in one canonical form."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import NamedTuple

from mainspring.schedule.faults import broken_rule, fault

MAX_LENGTH = 60
_ISO = re.compile(
    r"P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_SHORT = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.ASCII)
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
        counts[unit] = int(match[1])
        at = match.end()
    return counts


def _unreadable(text: str, at: int) -> Exception:
    allowed = "ISO 8601 such as PT15M, P1M, P1W, or 15m, 1h30m, 2 weeks"
    return fault(text, min(at, len(text)), "this is no span of time", allowed=allowed, code="invalid-interval")


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
    span = read_span(value)
    if span.months:
        raise broken_rule(field, value, "must be elapsed time; months differ in length")
    return timedelta(days=span.days) + span.elapsed
