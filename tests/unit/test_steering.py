"""What handlers raise or return to steer their runs: values with rules of their own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Cancel, Fail, MainspringError, Retry, Snooze
from mainspring.errors import InvalidInput
from mainspring.model.steering import SHORTEST_SNOOZE, Steering, steering_of

if TYPE_CHECKING:
    from collections.abc import Callable

MIDNIGHT = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("steering", "delay", "at"),
    [
        (Retry(), None, None),  # after the policy's pause
        (Retry(after=0), 0.0, None),
        (Retry(after=1.5), 1.5, None),
        (Retry(after=timedelta(minutes=2)), 120.0, None),
        (Retry(after=MIDNIGHT), 0.0, MIDNIGHT),
        (Snooze(for_=timedelta(hours=1)), 3_600.0, None),
        (Snooze(for_=90), 90.0, None),
        (Snooze(for_=0), SHORTEST_SNOOZE, None),  # whoever always snoozes must not spin
        (Snooze(until=MIDNIGHT), SHORTEST_SNOOZE, MIDNIGHT),
        (Cancel(), None, None),
        (Fail(), None, None),
    ],
)
def test_when_a_run_is_due_again(steering: Steering, delay: float | None, at: datetime | None) -> None:
    assert (steering.delay, steering.at) == (delay, at)


@pytest.mark.parametrize("steering", [Retry("busy"), Snooze("busy", for_=1), Cancel("busy"), Fail("busy")])
def test_a_decision_says_why_and_is_no_error_of_ours(steering: Steering) -> None:
    assert (steering.reason, str(steering)) == ("busy", "busy")
    assert not isinstance(steering, MainspringError)


def test_without_a_reason_it_says_what_it_is() -> None:
    decisions = [Retry(), Snooze(for_=1), Cancel(), Fail()]

    assert len({str(each) for each in decisions}) == len({each.code for each in decisions}) == 4
    assert all(str(each) for each in decisions)


@pytest.mark.parametrize(
    "steering",
    [
        Retry("busy", after=MIDNIGHT),
        Retry(after=3),
        Retry(),
        Snooze("night", until=MIDNIGHT),
        Snooze(for_=timedelta(days=2)),
        Cancel("gone"),
        Fail("broken"),
    ],
)
def test_a_decision_survives_the_way_between_processes(steering: Steering) -> None:
    arrived = steering_of(json.loads(json.dumps(steering.as_document())))

    assert type(arrived) is type(steering)
    assert (arrived.reason, arrived.delay, arrived.at) == (steering.reason, steering.delay, steering.at)


def test_a_decision_of_a_kind_of_its_own_arrives_as_what_it_is_a_kind_of() -> None:
    class RateLimited(Retry):
        def __init__(self, seconds: float) -> None:
            super().__init__("too fast", after=seconds)

    arrived = steering_of(RateLimited(3).as_document())

    assert type(arrived) is Retry
    assert (arrived.reason, arrived.delay) == ("too fast", 3)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Retry(after=-1), "invalid-after"),
        (lambda: Retry(after=datetime(2031, 1, 1)), "invalid-after"),  # noqa: DTZ001
        (lambda: Retry(after=timedelta(days=4_000)), "invalid-after"),
        (lambda: Retry(after="soon"), "invalid-after"),  # type: ignore[arg-type]
        (lambda: Snooze(), "until-or-for"),
        (lambda: Snooze(until=MIDNIGHT, for_=1), "until-or-for"),
        (lambda: Snooze(until=3), "invalid-until"),  # type: ignore[arg-type]
        (lambda: Snooze(for_=float("nan")), "invalid-for"),
        (lambda: Snooze(for_=timedelta.max), "invalid-for"),
        (lambda: Cancel("\0"), "invalid-reason"),
        (lambda: Fail("x" * 1_001), "invalid-reason"),
        (lambda: Retry(None), "invalid-reason"),  # type: ignore[arg-type]
    ],
)
def test_decisions_that_make_no_sense_are_refused(make: Callable[[], Any], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.code == code
