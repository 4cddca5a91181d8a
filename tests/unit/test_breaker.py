"""Circuit breakers as values: what may be said, when they open, when probes go out, and what counts as a failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from mainspring.errors import InvalidInput
from mainspring.model.breaker import (
    WHOLE_JOB,
    Breaker,
    BreakerRule,
    OpenBreakers,
    Opening,
    ProbeProgress,
    checked_breaker,
    checked_value,
    is_failure,
)
from mainspring.model.job import JobDefinition, definition_of
from mainspring.model.lifecycle import Outcome
from mainspring.model.limit_key import UNKNOWN_KEY

NOW = datetime(2026, 11, 18, 9, tzinfo=UTC)
BY_CUSTOMER = BreakerRule(1, 1, "send", Breaker(3, key="customer"))


def opened(number: int = 7, value: str = "acme", *, has_probes: bool = True, **settings: Any) -> Opening:
    breaker = Breaker(3, key="customer", **{"probe_after": 30, "max_probe_after": 100} | settings)
    return Opening(
        id=number,
        job="send",
        value=value,
        key="customer",
        opened_at=NOW,
        opened_by="worker",
        failures=3,
        attempts=None,
        within=timedelta(minutes=1),
        error=None,
        reason="",
        has_probes=has_probes,
        breaker=breaker,
    )


@pytest.mark.parametrize(
    ("breaker", "failures", "successes", "trips"),
    [
        (Breaker(3), 2, 0, False),
        (Breaker(3), 3, 1_000_000, True),
        (Breaker(3, failure_ratio=0.5), 3, 3, True),
        (Breaker(3, failure_ratio=0.5), 3, 4, False),
        (Breaker(3, failure_ratio=0.5), 2, 0, False),
        (Breaker(1, failure_ratio=1.0), 1, 0, True),
        (Breaker(1, failure_ratio=1.0), 5, 1, False),
    ],
)
def test_it_opens_by_number_and_ratio(breaker: Breaker, failures: int, successes: int, trips: bool) -> None:
    assert breaker.trips(failures, successes) is trips


def test_pauses_between_probes_double_up_to_the_longest() -> None:
    breaker = Breaker(probe_after=30, max_probe_after=200)

    assert [breaker.pause_after(probes) for probes in range(5)] == [30, 60, 120, 200, 200]
    assert breaker.pause_after(10**9) == 200
    assert Breaker(probe_after=timedelta(hours=1)).max_probe_after == timedelta(hours=1)


@pytest.mark.parametrize(("within", "seconds"), [(1, 1.0), (60, 1.0), (600, 10.0)])
def test_outcomes_are_counted_by_slices_of_a_sixtieth_of_the_window(within: float, seconds: float) -> None:
    assert Breaker(within=within).slice_seconds == seconds


def test_the_first_probe_goes_out_a_while_after_it_opened_and_the_next_when_the_last_said() -> None:
    opening, at = opened(), NOW.timestamp()

    assert opening.seconds_until_probe(None, at) == 30
    assert opening.seconds_until_probe(None, at + 31) == 0
    assert opening.seconds_until_probe(ProbeProgress(1, at + 90), at + 31) == 59
    assert opening.next_probe_at(ProbeProgress(1, at + 90), NOW + timedelta(seconds=31)) == NOW + timedelta(seconds=90)


def test_without_probes_none_goes_out() -> None:
    assert opened(has_probes=False).seconds_until_probe(None, NOW.timestamp() + 10**6) == float("inf")
    assert opened(has_probes=False).next_probe_at(None, NOW) is None


def test_a_probe_that_fails_while_somebody_releases_runs_is_not_followed_at_once() -> None:
    """Whoever releases has asked for the time before it reads when the next probe may go."""
    at = NOW.timestamp()

    assert opened(probe_after=5).seconds_until_probe(ProbeProgress(0, at + 5.001), at) == 5


def test_a_wait_that_nobody_meant_is_over() -> None:
    """The clock was set back, or somebody has shortened the pauses."""
    at = NOW.timestamp()

    assert opened().seconds_until_probe(None, at - 3600) == 0
    assert opened(probe_after=1, max_probe_after=1).seconds_until_probe(ProbeProgress(5, at + 80), at) == 0


def test_a_run_waits_where_its_value_is_open_or_the_whole_job() -> None:
    rules = {"send": BY_CUSTOMER}
    openings = OpenBreakers(rules, [opened(7, "acme")])

    assert openings.gate_for("send", b'{"customer": "acme"}') == "7"
    assert openings.gate_for("send", b'{"customer": "other"}') is None
    assert openings.gate_for("mail", b'{"customer": "acme"}') is None
    assert not openings.is_open("send", "other")
    whole = OpenBreakers(rules, [opened(7, "acme"), opened(8, WHOLE_JOB)])
    assert whole.gate_for("send", b'{"customer": "other"}') == "8"
    assert whole.is_open("send", "other")


@pytest.mark.parametrize("payload", [b"{}", b'{"customer": null}', b'{"customer": []}', b"not json"])
def test_runs_without_the_key_are_counted_together(payload: bytes) -> None:
    assert BY_CUSTOMER.value_of(payload) == UNKNOWN_KEY


@pytest.mark.parametrize(
    ("outcome", "code", "counts"),
    [
        (Outcome.FAILED, None, True),
        (Outcome.FAILED, "retry-asked", True),
        (Outcome.TIMED_OUT, "attempt-timed-out", True),
        (Outcome.FAILED, "failed-by-handler", False),
        (Outcome.FAILED, "unfit-arguments", False),
        (Outcome.FAILED, "invalid-result", False),
        (Outcome.SUCCEEDED, None, False),
        (Outcome.CRASHED, None, False),
        (Outcome.CANCELLED, None, False),
        (Outcome.SNOOZED, None, False),
        (Outcome.EXPIRED, None, False),
        (Outcome.INTERRUPTED, None, False),
    ],
)
def test_what_counts_as_a_failure(outcome: Outcome, code: str | None, counts: bool) -> None:
    assert is_failure(outcome, code) is counts


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"failures": 0}, "invalid-failures"),
        ({"failures": True}, "invalid-failures"),
        ({"failures": 1.5}, "invalid-failures"),
        ({"within": 0.5}, "invalid-within"),
        ({"within": float("nan")}, "invalid-within"),
        ({"within": float("inf")}, "invalid-within"),
        ({"within": 10**400}, "invalid-within"),
        ({"within": "60"}, "invalid-within"),
        ({"failure_ratio": 0}, "invalid-failure-ratio"),
        ({"failure_ratio": float("nan")}, "invalid-failure-ratio"),
        ({"failure_ratio": "half"}, "invalid-failure-ratio"),
        ({"key": ""}, "invalid-limit-key"),
        ({"key": "{a"}, "invalid-limit-key"),
        ({"probe_after": -1}, "invalid-probe-after"),
        ({"probe_after": 100, "max_probe_after": 99}, "invalid-max-probe-after"),
    ],
)
def test_bad_values_are_refused(given: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Breaker(**given)
    assert refused.value.code == code


def test_only_a_breaker_is_one() -> None:
    assert checked_breaker(None) is None
    with pytest.raises(InvalidInput, match="must be a Breaker"):
        JobDefinition(name="send", breaker=5)  # type: ignore[arg-type]


def test_it_is_stored_with_its_job_and_read_again_and_jobs_without_one_stay_as_they_were() -> None:
    breaker = Breaker(20, within=timedelta(minutes=5), failure_ratio=0.5, key="customer", probe_after=10)
    definition = JobDefinition(name="send", breaker=breaker)

    assert definition_of(msgspec.json.decode(msgspec.json.encode(definition.as_document()))) == definition
    assert "breaker" not in JobDefinition(name="send").as_document()


def test_a_value_is_that_of_a_key_and_on_one_line() -> None:
    assert checked_value(BY_CUSTOMER.breaker, "send", None) == WHOLE_JOB
    assert checked_value(BY_CUSTOMER.breaker, "send", "a\nb") == "a\\u000ab"
    assert checked_value(BY_CUSTOMER.breaker, "send", UNKNOWN_KEY) == UNKNOWN_KEY
    for bad in ("", "x" * 201, 5):
        with pytest.raises(InvalidInput, match="value is"):
            checked_value(BY_CUSTOMER.breaker, "send", bad)
    with pytest.raises(InvalidInput, match="has no key"):
        checked_value(Breaker(), "send", "acme")
