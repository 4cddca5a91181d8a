"""Back-off: pure arithmetic, so properties rather than examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.errors import InvalidInput
from mainspring.model.policy import MAX_ATTEMPTS, MAX_BACK_OFF, RetryPolicy

spans = some.timedeltas(timedelta(0), MAX_BACK_OFF)
policies = some.builds(
    lambda attempts, delays, factor: RetryPolicy(
        max_attempts=attempts, first_delay=min(delays), cap=max(delays), factor=factor
    ),
    some.integers(1, MAX_ATTEMPTS),
    some.tuples(spans, spans),
    some.floats(1, 100),
)
attempts = some.integers(1, MAX_ATTEMPTS)


@given(policy=policies, spent=attempts)
def test_a_delay_is_never_shorter_than_the_first_nor_longer_than_the_cap(policy: RetryPolicy, spent: int) -> None:
    assert policy.first_delay <= policy.delay_after(spent) <= policy.cap


@given(policy=policies, spent=attempts)
def test_delays_never_shrink(policy: RetryPolicy, spent: int) -> None:
    assert policy.delay_after(spent) <= policy.delay_after(spent + 1)


@given(policy=policies)
def test_the_first_failure_waits_for_the_first_delay(policy: RetryPolicy) -> None:
    assert policy.delay_after(1) == policy.first_delay


@given(policy=policies)
def test_there_are_exactly_as_many_attempts_as_allowed(policy: RetryPolicy) -> None:
    assert sum(policy.may_retry(spent) for spent in range(1, MAX_ATTEMPTS + 1)) == policy.max_attempts - 1


def test_the_default_doubles_from_a_second_to_an_hour() -> None:
    seconds = [RetryPolicy().delay_after(spent).total_seconds() for spent in range(1, 15)]

    assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": MAX_ATTEMPTS + 1},
        {"max_attempts": 2.5},
        {"max_attempts": "3"},
        {"max_attempts": True},
        {"factor": 0.9},
        {"factor": 101},
        {"factor": float("nan")},
        {"factor": "2"},
        {"first_delay": timedelta(seconds=-1)},
        {"first_delay": 5},
        {"first_delay": timedelta(hours=2), "cap": timedelta(hours=1)},
        {"cap": MAX_BACK_OFF + timedelta(seconds=1)},
        {"cap": None},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^retry\.\w+ is .*; it must be ") as caught:
        RetryPolicy(**options)
    assert caught.value.code == "invalid-retry-policy"
