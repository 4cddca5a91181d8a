"""How fast runs may start: so many per second on average, and a few at once (a token bucket). Pure arithmetic.

A bucket holds tokens, of which each run that passes takes one. It fills at the rate, up to the burst and the little
that lets whoever releases come by now and then instead of for each token.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.payload import quoted

SLACK_SECONDS = (
    0.05  # what fills the bucket between two looks, beyond the burst: no 100 ms see more than 0.15 of the rate
)
TICK_SECONDS = 0.03  # not before this is it worth to look again
CLOCK_STEP_SECONDS = 5.0  # an instant so far ahead was written before the clock was set back
LOWEST, HIGHEST = 1 / 86_400, 1_000_000.0
MAX_BURST = 1_000_000
UNITS = {"s": 1, "second": 1, "m": 60, "minute": 60, "h": 3_600, "hour": 3_600, "d": 86_400, "day": 86_400}
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*([a-z]+)\s*")
_EPSILON = 1e-9  # a token that is there but for rounding is there


class TokenBucket(NamedTuple):
    """How many tokens there were, and when."""

    tokens: float
    at: float  # seconds since 1970, by the database's clock


class Rate(NamedTuple):
    """So many per second, and so many at once after a pause."""

    per_second: float
    burst: int

    @property
    def capacity(self) -> float:
        return self.burst + SLACK_SECONDS * self.per_second

    def filled(self, bucket: TokenBucket | None, now: float) -> TokenBucket:
        """The bucket as it is now; one that nobody has used lately is full."""
        if bucket is None:
            return TokenBucket(self.capacity, now)
        if bucket.at > now:  # somebody else looked a moment later, or the clock was set back
            return bucket._replace(at=now) if bucket.at > now + CLOCK_STEP_SECONDS else bucket
        return TokenBucket(min(self.capacity, bucket.tokens + (now - bucket.at) * self.per_second), now)

    def seconds_until(self, tokens: float, bucket: TokenBucket) -> float:
        """How long until so many tokens are there."""
        return max(0.0, (tokens - bucket.tokens) / self.per_second)


def whole_tokens(bucket: TokenBucket) -> int:
    return max(0, int(bucket.tokens + _EPSILON))


def rate_of(rate: Any, burst: Any) -> Rate | None:
    """A rate as people write it: "100/s", "30/minute", or a number per second. Without a burst, one at a time."""
    if rate is None:
        if burst is not None:
            raise InvalidInput(
                f"burst is {quoted(burst)}, but there is no rate.",
                code="burst-without-rate",
                hint='Add rate="100/s".',
                field="burst",
            )
        return None
    per_second = _per_second(rate)
    if not LOWEST <= per_second <= HIGHEST:
        raise invalid("rate", rate, f"must be from 1 per day to {HIGHEST:,.0f} per second")
    if burst is None:
        burst = 1
    if not isinstance(burst, int) or isinstance(burst, bool) or not 1 <= burst <= MAX_BURST:
        raise invalid("burst", burst, f"must be a whole number from 1 to {MAX_BURST:,}")
    return Rate(per_second, burst)


def _per_second(rate: Any) -> float:
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        return float(min(max(rate, 0), 2 * HIGHEST)) if rate == rate else 0.0  # NaN is no number, and some do not fit
    match = _RATE.fullmatch(rate) if isinstance(rate, str) and len(rate) < 50 else None
    if match is None or match[2] not in UNITS:
        raise invalid(
            "rate", rate, 'must be a number per second, or such as "100/s", "30/minute", "5/hour", "1000/day"'
        )
    return float(match[1]) / UNITS[match[2]]


def rate_text(rate: Rate) -> str:
    """As people write it, in the unit that shows it best."""
    for unit, seconds in (("s", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)):
        if rate.per_second * seconds >= 1 - _EPSILON:
            return f"{rate.per_second * seconds:g}/{unit}"
    return f"{rate.per_second * 86_400:g}/day"
