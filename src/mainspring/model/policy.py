"""Policies: what happens when an attempt fails. Pure arithmetic; the store adds the delay to the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring.errors import InvalidInput

MAX_ATTEMPTS = 1_000
MAX_BACK_OFF = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off: `first_delay`, then `factor` times as long each time, never longer than `cap`."""

    max_attempts: int = 5
    first_delay: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        _check(1 <= self.max_attempts <= MAX_ATTEMPTS, "max_attempts", self.max_attempts, f"1 to {MAX_ATTEMPTS}")
        _check(1.0 <= self.factor <= 100.0, "factor", self.factor, "1 to 100")
        zero = timedelta(0)
        _check(zero <= self.first_delay <= MAX_BACK_OFF, "first_delay", self.first_delay, "0 to 30 days")
        _check(self.first_delay <= self.cap <= MAX_BACK_OFF, "cap", self.cap, "first_delay to 30 days")

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


def _check(holds: bool, field: str, value: object, rule: str) -> None:
    if not holds:
        raise InvalidInput(
            f"retry.{field} is {value}; it must be {rule}.",
            code="invalid-retry-policy",
            field=f"retry.{field}",
            value=str(value),
            rule=rule,
        )
