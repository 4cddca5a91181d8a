"""Back-off: pure arithmetic, so properties rather than examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.errors import InvalidInput
from mainspring.model.policy import MAX_ATTEMPTS, MAX_BACK_OFF, MICROSECOND, BackOff, Jitter, RetryPolicy

spans = some.timedeltas(timedelta(0), MAX_BACK_OFF)
policies = some.builds(
    lambda attempts, delays, factor, back_off, jitter: RetryPolicy(
        max_attempts=attempts,
        first_delay=min(delays),
        cap=max(delays),
        back_off=back_off,
        jitter=jitter,
        **({"factor": factor} if back_off is BackOff.EXPONENTIAL else {}),
    ),
    some.integers(1, MAX_ATTEMPTS),
    some.tuples(spans, spans),
    some.floats(1, 100),
    some.sampled_from(BackOff),
    some.sampled_from(Jitter),
)
attempts = some.integers(1, MAX_ATTEMPTS)
run_ids = some.uuids()
A_RUN = UUID(int=7)


@given(policy=policies, spent=attempts)
def test_a_pause_is_never_shorter_than_the_first_nor_longer_than_the_cap(policy: RetryPolicy, spent: int) -> None:
    assert policy.first_delay <= policy.longest_delay_after(spent) <= policy.cap


@given(policy=policies, spent=attempts)
def test_pauses_never_shrink(policy: RetryPolicy, spent: int) -> None:
    assert policy.longest_delay_after(spent) <= policy.longest_delay_after(spent + 1)


@given(policy=policies)
def test_the_first_failure_waits_for_the_first_delay(policy: RetryPolicy) -> None:
    assert policy.longest_delay_after(1) == policy.first_delay


@given(policy=policies, spent=attempts, run_id=run_ids)
def test_jitter_stays_within_its_bounds(policy: RetryPolicy, spent: int, run_id: UUID) -> None:
    longest, delay = policy.longest_delay_after(spent), policy.delay_after(spent, run_id)

    shortest = {Jitter.NONE: longest, Jitter.FULL: timedelta(0), Jitter.EQUAL: longest - longest // 2}
    assert shortest[policy.jitter] <= delay <= longest


@given(policy=policies, spent=attempts, run_id=run_ids)
def test_the_same_attempt_of_the_same_run_always_waits_as_long(policy: RetryPolicy, spent: int, run_id: UUID) -> None:
    assert policy.delay_after(spent, run_id) == policy.delay_after(spent, run_id)


@pytest.mark.parametrize(("jitter", "least"), [(Jitter.FULL, 0.0), (Jitter.EQUAL, 0.5)])
def test_jitter_spreads_runs_over_the_whole_of_its_range(jitter: Jitter, least: float) -> None:
    policy = RetryPolicy(first_delay=timedelta(seconds=1), jitter=jitter)
    delays = [policy.delay_after(1, UUID(int=number)).total_seconds() for number in range(1_000)]

    assert least <= min(delays) < least + 0.02
    assert 0.98 < max(delays) <= 1.0
    assert abs(sum(delays) / 1_000 - (1 + least) / 2) < 0.03


def test_the_shortest_pause_of_all_survives_jitter() -> None:
    policy = RetryPolicy(first_delay=MICROSECOND, jitter=Jitter.EQUAL)

    assert policy.delay_after(1, A_RUN) == MICROSECOND


@given(policy=policies)
def test_there_are_exactly_as_many_attempts_as_allowed(policy: RetryPolicy) -> None:
    assert sum(policy.may_retry(spent) for spent in range(1, MAX_ATTEMPTS + 1)) == policy.max_attempts - 1


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        (RetryPolicy(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]),
        (RetryPolicy(factor=10, cap=timedelta(seconds=500)), [1, 10, 100, 500, 500]),
        (RetryPolicy(back_off=BackOff.CONSTANT), [1, 1, 1]),
        (RetryPolicy(back_off=BackOff.LINEAR, cap=timedelta(seconds=4)), [1, 2, 3, 4, 4]),
        (RetryPolicy(back_off="linear", first_delay=timedelta(seconds=30)), [30, 60, 90]),
        (RetryPolicy(first_delay=timedelta(0)), [0, 0, 0]),
    ],
)
def test_how_pauses_grow(policy: RetryPolicy, seconds: list[int]) -> None:
    delays = [policy.delay_after(spent, A_RUN).total_seconds() for spent in range(1, len(seconds) + 1)]

    assert delays == seconds


# ── which errors ────────────────────────────────────────────────────────────────────────────────────────────────


class Temporary(Exception):
    pass


class Busy(Temporary):
    pass


class Gone(Busy, LookupError):
    pass


HERE = __name__


@pytest.mark.parametrize(
    ("options", "error", "is_worth_it"),
    [
        ({}, ValueError(), True),
        ({"retry_on": (Temporary,)}, Temporary(), True),
        ({"retry_on": (Temporary,)}, Busy(), True),  # what is derived from it
        ({"retry_on": (Busy,)}, Temporary(), False),  # what it is derived from
        ({"retry_on": (OSError,)}, ConnectionResetError(), True),
        ({"retry_on": (OSError,)}, ValueError(), False),
        ({"retry_on": ("OSError",)}, ConnectionResetError(), True),  # by name
        ({"retry_on": (f"{HERE}.Temporary",)}, Busy(), True),
        ({"retry_on": ("elsewhere.Temporary",)}, Temporary(), False),  # of the same name, from elsewhere
        ({"never_on": (ValueError,)}, UnicodeDecodeError("x", b"", 0, 0, ""), False),
        ({"never_on": (ValueError,)}, TypeError(), True),
        ({"retry_on": (Temporary,), "never_on": (LookupError,)}, Busy(), True),
        ({"retry_on": (Temporary,), "never_on": (LookupError,)}, Gone(), False),  # never wins
        ({"never_on": (Exception,)}, KeyboardInterrupt(), True),
        ({"never_on": (BaseException,)}, SystemExit(), False),
    ],
)
def test_which_errors_are_worth_another_attempt(
    options: dict[str, Any], error: BaseException, is_worth_it: bool
) -> None:
    assert RetryPolicy(**options).is_worth_retrying(error) is is_worth_it


def test_errors_are_kept_by_name_once_and_in_order() -> None:
    policy = RetryPolicy(retry_on=[ValueError, Temporary, "ValueError"], never_on={KeyError})

    assert policy.retry_on == ("ValueError", f"{HERE}.Temporary")
    assert policy.never_on == ("KeyError",)


# ── as it is stored ─────────────────────────────────────────────────────────────────────────────────────────────


@given(policy=policies)
def test_a_policy_comes_back_from_its_document(policy: RetryPolicy) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=RetryPolicy) == policy


def test_a_policy_that_an_older_program_stored_means_what_it_meant() -> None:
    stored = {"max_attempts": 3, "first_delay": "PT2S", "factor": 3.0, "cap": "PT60S"}

    policy = msgspec.convert(stored, RetryPolicy)

    assert policy == RetryPolicy(max_attempts=3, first_delay=timedelta(seconds=2), factor=3.0, cap=timedelta(minutes=1))


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
        {"back_off": "quadratic"},
        {"back_off": None},
        {"back_off": "constant", "factor": 3},
        {"jitter": "some"},
        {"jitter": True},
        {"retry_on": ValueError},
        {"retry_on": "ValueError"},
        {"retry_on": None},
        {"retry_on": (int,)},
        {"retry_on": (ValueError(),)},
        {"never_on": ("not a name",)},
        {"never_on": ("x" * 201,)},
        {"never_on": ("\0",)},
        {"never_on": [f"E{number}" for number in range(51)]},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^retry\.\w+ is .*; it must be ") as caught:
        RetryPolicy(**options)
    assert caught.value.code == "invalid-retry-policy"
