"""Policies: what happens when an attempt fails. Pure arithmetic; the store adds the delay to the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring.errors import InvalidInput

MAX_ATTEMPTS = 1_000
NO_TIME, MAX_BACK_OFF = timedelta(0), timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off: `first_delay`, then `factor` times as long each time, never longer than `cap`."""

    max_attempts: int = 5
    first_delay: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        _check_range("max_attempts", self.max_attempts, int, 1, MAX_ATTEMPTS, f"a whole number, 1 to {MAX_ATTEMPTS}")
        _check_range("factor", self.factor, (int, float), 1, 100, "a number, 1 to 100")
        _check_range("first_delay", self.first_delay, timedelta, NO_TIME, MAX_BACK_OFF, "a timedelta, 0 to 30 days")
        _check_range("cap", self.cap, timedelta, self.first_delay, MAX_BACK_OFF, "a timedelta, first_delay to 30 days")

    def may_retry(self, attempts_spent: int) -> bool:
        return attempts_spent < self.max_attempts

    def delay_after(self, attempts_spent: int) -> timedelta:
        """How long to wait after the given number of failed attempts (at least one)."""
        cap = self.cap.total_seconds()
        seconds = self.first_delay.total_seconds()
        for _ in range(attempts_spent - 1):
            seconds *= self.factor
            if seconds >= cap:
                return self.cap
        return timedelta(seconds=min(seconds, cap))


def _check_range(field: str, value: Any, kind: type | tuple[type, ...], least: Any, most: Any, rule: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(
            f"retry.{field} is {value}; it must be {rule}.",
            code="invalid-retry-policy",
            field=f"retry.{field}",
            value=str(value),
            rule=rule,
        )
