"""What is said to somebody whose English was not understood: where, why, and what to write instead."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from mainspring.schedule.english.vocabulary import EVERYTHING
from mainspring.schedule.faults import fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.english.reader import Reader
    from mainspring.schedule.english.tokens import Token

# One of each form; the nearest of them are offered to whoever wrote something else. A test reads them all.
FORMS = (
    "every day at 09:00",
    "every day at 09:00 and 17:30",
    "every weekday at 09:00",
    "every monday at 09:00",
    "every monday and thursday at 09:00",
    "every day except sunday at 09:00",
    "on weekends at 10:00",
    "every other tuesday at noon",
    "every 2 weeks on monday at 09:00",
    "every other day at 09:00",
    "every minute",
    "every 15 minutes",
    "every 30 seconds",
    "every hour",
    "every 2 hours",
    "every hour at 15 minutes past the hour",
    "every 15 minutes between 8am and 6pm",
    "every hour from 9am to 5pm on weekdays",
    "monthly on the 15th at 02:00",
    "on the 1st and 15th of the month at 02:00",
    "last day of the month at 23:00",
    "last friday of the month at 18:00",
    "first monday of the month at 09:00",
    "first weekday of the month at 09:00",
    "weekday nearest the 15th of the month at 09:00",
    "quarterly on the 1st at 06:00",
    "every 2 months on the 1st at 09:00",
    "every year on 24 december at 18:00",
    "every weekday at 09:00 in june and july",
    "every weekday at 09:00 in Europe/Berlin",
    "every weekday at 09:00 starting 2027-01-01",
    "tomorrow at 3pm",
    "today at 18:00",
    "in 15 minutes",
    "in 3 days at 09:00",
    "on 2026-12-24 at 18:00",
    "on 24 december 2026 at 18:00",
)


def unclear(text: str, position: int, problem: str, remedy: str, forms: Sequence[str]) -> InvalidSchedule:
    """Something was understood, and may mean two things or nothing."""
    offered = " or ".join(f"'{form}'" for form in forms)
    return _refused(text, position, problem, f"{remedy} {offered}".strip(), suggestion=forms[0] if forms else "")


def needs_now(text: str, position: int) -> InvalidSchedule:
    """It is counted from now, and nobody said what time that is."""
    words = "it is counted from now, and what time that is was not said"
    forms = ("every day at 09:00", "on 2026-12-24 at 18:00")
    return unclear(text, position, words, "Give the instant, or write", forms)


def not_understood(reader: Reader) -> InvalidSchedule:
    """Nothing that is known could stand here: what could, and the forms that look most like the text."""
    token = reader.tokens[reader.furthest]
    problem = f"'{token.text}' is not understood here" if token.kind != "end" else "it ends too early"
    allowed, forms = _either(reader.wanted[:6]), nearest_forms(reader.text)
    hint = f"{_spelling(token)}Allowed here: {allowed}. Forms like yours: {', '.join(map(repr, forms))}."
    return _refused(reader.text, token.at, problem, hint, suggestion=forms[0], allowed=allowed)


def _refused(
    text: str, position: int, problem: str, hint: str, *, suggestion: str, allowed: str = ""
) -> InvalidSchedule:
    return fault(text, position, problem, allowed=allowed, suggestion=suggestion, code="invalid-english", hint=hint)


def _spelling(token: Token) -> str:
    if token.kind != "word" or token.text in EVERYTHING:
        return ""
    near = difflib.get_close_matches(token.text[:20], EVERYTHING, n=1, cutoff=0.7)
    return f"Did you mean '{near[0]}'? " if near else ""


def nearest_forms(text: str, count: int = 3) -> list[str]:
    """The known forms that look most like this text."""
    lowered = text[:200].lower()
    return difflib.get_close_matches(lowered, FORMS, n=count, cutoff=0.35) or list(FORMS[2 : 2 + count])


def _either(wanted: list[str]) -> str:
    return wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}" if wanted else ""
