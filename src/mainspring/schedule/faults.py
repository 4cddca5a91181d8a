"""What is wrong with a schedule: which character, what is allowed there, and the nearest form that is valid."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 72  # how much of a text is shown around the culprit


def fault(
    text: str,
    position: int,
    problem: str,
    *,
    allowed: str = "",
    offers: Sequence[str] = (),
    suggestion: str = "",
    code: str = "invalid-schedule",
    field: str = "schedule",
    hint: str | None = None,
) -> InvalidSchedule:
    """An error that points at a character of `text`. Its hint is given, or says what is allowed there.

    `offers` are texts that may have been meant instead of `text`. They are not shown as they are: see `offers.py`.
    A `suggestion` was read already, and the hint says so.
    """
    return InvalidSchedule(
        f"{shortened(text)} is not a schedule: {problem} (character {position + 1}).",
        code=code,
        hint=hint or (f"Allowed here: {allowed}." if allowed else None),
        field=field,
        value=shortened(text),
        rule=problem,
        position=position,
        allowed=allowed,
        suggestion=suggestion,
        offers=offers,
        pointer=pointer(text, position),
    )


def broken_rule(
    field: str, value: object, rule: str, *, code: str = "invalid-schedule", hint: str = ""
) -> InvalidSchedule:
    """An error about a value that is no text."""
    return InvalidSchedule(
        f"{field} is {_shown(value)}; it {rule}.",
        code=code,
        hint=hint or None,
        field=field,
        value=_shown(value),
        rule=rule,
    )


def _shown(value: object) -> str:
    """A value as people write it: dates and times as ISO 8601 does, and not as Python's source would."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value).removesuffix(", 0:00:00")
        case _:
            return shortened(value)


def pointer(text: str, position: int) -> str:
    """Two lines: the text around the culprit, and a caret below it."""
    begin = max(0, min(position - SHOWN // 2, len(text) - SHOWN))
    shown = "".join(c if c.isprintable() else "·" for c in text[begin : begin + SHOWN])
    return f"{shown}\n{' ' * (position - begin)}^"
