"""Rates as token buckets: what people may write, how they fill, and that no window sees more than was promised."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.rate import (
    CLOCK_STEP_SECONDS,
    SLACK_SECONDS,
    TICK_SECONDS,
    Rate,
    TokenBucket,
    rate_of,
    rate_text,
    whole_tokens,
)

HUNDRED = Rate(100.0, 10)


@pytest.mark.parametrize(
    ("written", "per_second"),
    [
        ("100/s", 100),
        ("30/minute", 0.5),
        ("90 / m", 1.5),
        ("5/hour", 5 / 3600),
        ("1/day", 1 / 86_400),
        (7, 7),
        (0.5, 0.5),
    ],
)
def test_a_rate_is_read(written: Any, per_second: float) -> None:
    rate = rate_of(written, None)

    assert rate is not None
    assert rate.per_second == pytest.approx(per_second)
    assert rate.burst == 1


@pytest.mark.parametrize(
    ("rate", "burst", "code"),
    [
        ("100", None, "invalid-rate"),
        ("100/fortnight", None, "invalid-rate"),
        ("a lot", None, "invalid-rate"),
        ("-1/s", None, "invalid-rate"),
        ("0/s", None, "invalid-rate"),
        (0, None, "invalid-rate"),
        (-1, None, "invalid-rate"),
        (float("nan"), None, "invalid-rate"),
        (float("inf"), None, "invalid-rate"),
        (10**400, None, "invalid-rate"),
        ("0.9/day", None, "invalid-rate"),
        (True, None, "invalid-rate"),
        ("9" * 1_000_000 + "/s", None, "invalid-rate"),
        ("1/s", 0, "invalid-burst"),
        ("1/s", 1.5, "invalid-burst"),
        ("1/s", True, "invalid-burst"),
        ("1/s", 10**9, "invalid-burst"),
        (None, 5, "burst-without-rate"),
    ],
)
def test_what_is_no_rate_is_refused(rate: Any, burst: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        rate_of(rate, burst)

    assert refusal.value.code == code
    assert len(refusal.value.message) < 1_000


@pytest.mark.parametrize("written", ["100/s", "2.5/s", "30/minute", "5/hour", "3/day"])
def test_a_rate_is_shown_as_it_was_written(written: str) -> None:
    rate = rate_of(written, None)

    assert rate is not None
    assert rate_text(rate) == written


def test_a_bucket_that_nobody_used_is_full_and_one_that_was_used_fills() -> None:
    full = HUNDRED.filled(None, now=1_000.0)
    assert full.tokens == 10 + 100 * SLACK_SECONDS

    later = HUNDRED.filled(TokenBucket(0.0, 1_000.0), now=1_000.1)
    assert later.tokens == pytest.approx(10.0)
    assert later.at == 1_000.1
    assert HUNDRED.filled(TokenBucket(0.0, 1_000.0), now=2_000.0).tokens == full.tokens


def test_a_clock_that_is_set_back_neither_gives_tokens_nor_stops_them_for_long() -> None:
    used = TokenBucket(3.0, 1_000.0)

    assert HUNDRED.filled(used, now=999.0) == used
    assert HUNDRED.filled(used, now=1_000.0 - 2 * CLOCK_STEP_SECONDS) == TokenBucket(
        3.0, 1_000.0 - 2 * CLOCK_STEP_SECONDS
    )


def test_it_is_known_when_the_next_token_is_there() -> None:
    assert HUNDRED.seconds_until(1, TokenBucket(0.25, 1_000.0)) == pytest.approx(0.0075)
    assert HUNDRED.seconds_until(1, TokenBucket(5.0, 1_000.0)) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_no_window_sees_more_than_the_burst_and_fifteen_hundredths_of_the_rate(seed: int) -> None:
    """However irregularly somebody looks; and who looks often enough loses nothing of the rate."""
    dice = random.Random(seed)
    rate = Rate(dice.choice([3.0, 40.0, 1_000.0]), dice.choice([1, 20]))
    now, bucket, releases = 1_000.0, None, []
    while now < 1_010.0:
        filled = rate.filled(bucket, now)
        count = whole_tokens(filled)
        releases.append((now, count))
        bucket = filled._replace(tokens=filled.tokens - count)
        now += dice.uniform(TICK_SECONDS / 3, 0.04)

    for first, (began, _) in enumerate(releases):
        seen = sum(count for at, count in releases[first:] if at < began + 0.1)
        assert seen <= 0.15 * rate.per_second + rate.burst + 1e-6
    in_all = sum(count for _, count in releases)
    assert in_all >= rate.per_second * 10 - 1
    assert all(later > earlier for (earlier, _), (later, _) in pairwise(releases))
