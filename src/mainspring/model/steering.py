"""How a handler steers its run: it raises or returns one of these. They are decisions, not errors.

Steering
├── Retry(after=…)      this attempt did not work out; try again (spends the attempt)
├── Snooze(for_=…)      too early; come back later (spends no attempt)
├── Cancel(reason)      not needed any more: the run ends as cancelled
└── Fail(reason)        no attempt will ever help: the run becomes a dead letter
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from mainspring.errors import InvalidInput
from mainspring.model import job as rules

# Whoever snoozes for less comes back after this long: a handler that always snoozes must not spin.
SHORTEST_SNOOZE = 1.0


class Steering(Exception):
    """What became of an attempt, in the handler's own words. Exceptions, so that they can be raised from anywhere."""

    code = "steered"
    default_reason = ""
    delay: float | None = None
    at: datetime | None = None

    def __init__(self, reason: str) -> None:
        self.reason = rules.checked_reason(reason) or self.default_reason
        super().__init__(self.reason)

    def as_document(self) -> dict[str, Any]:
        """As plain JSON, for crossing a border between processes."""
        at = self.at.isoformat() if self.at is not None else None
        kinds = (kind.__name__ for kind in type(self).__mro__ if kind in (Retry, Snooze, Cancel, Fail))
        return {"kind": next(kinds, Fail.__name__), "reason": self.reason, "delay": self.delay, "at": at}


class Retry(Steering):
    """Try again: at once after the job's usual pause, or `after` a span or an instant. Spends the attempt."""

    code = "retry-asked"
    default_reason = "The handler asked for another attempt."

    def __init__(self, reason: str = "", *, after: timedelta | float | datetime | None = None) -> None:
        super().__init__(reason)
        self.delay, self.at = _when(after, "after")


class Snooze(Steering):
    """Come back later: `until` an instant or `for_` a span. Spends no attempt; each snooze is on record."""

    code = "snoozed"
    default_reason = "The handler asked to be called later."
    delay: float

    def __init__(
        self, reason: str = "", *, until: datetime | None = None, for_: timedelta | float | None = None
    ) -> None:
        super().__init__(reason)
        if (until is None) == (for_ is None):
            raise InvalidInput(
                "A snooze needs either until or for_.",
                code="until-or-for",
                hint="Write Snooze(for_=60) or Snooze(until=datetime(…, tzinfo=UTC)).",
                field="until",
            )
        self.at = rules.checked_at(until, "until")
        self.delay = max(SHORTEST_SNOOZE, rules.checked_delay(for_, "for_") or 0.0)


class Cancel(Steering):
    """The run is not needed any more: it ends as cancelled."""

    code = "cancelled-by-handler"
    default_reason = "The handler cancelled the run."

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class Fail(Steering):
    """No attempt will ever help: the run becomes a dead letter, whatever attempts it has left."""

    code = "failed-by-handler"
    default_reason = "The handler gave the run up."

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


def steering_of(document: dict[str, Any]) -> Steering:
    """What `as_document` made of a decision: it may have been made in another process."""
    reason, delay, at = document["reason"], document["delay"], document["at"]
    at = None if at is None else datetime.fromisoformat(at)
    match document["kind"]:
        case "Retry":
            return Retry(reason, after=delay if at is None else at)
        case "Snooze":
            return Snooze(reason, until=at, for_=delay if at is None else None)
        case "Cancel":
            return Cancel(reason)
        case _:
            return Fail(reason)


def _when(after: timedelta | float | datetime | None, field: str) -> tuple[float | None, datetime | None]:
    if isinstance(after, datetime):
        return 0.0, rules.checked_at(after, field)
    return rules.checked_delay(after, field), None
