"""The rule of at-most-once: whatever befalls a run that has started, it does not start again."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from mainspring.errors import ProcessCrashed
from mainspring.model.job import JobDefinition
from mainspring.model.line import Delivery
from mainspring.model.steering import Retry, Snooze
from mainspring.store.columns import AttemptRecord
from mainspring.store.leases import Fate, Lease, Settled
from mainspring.worker.registry import handler_of
from mainspring.worker.work import Work

from .hands import claimed_row

NOW = (1_000_000,)
HANDLER = handler_of(JobDefinition(name="pay"), lambda: None)


def work(delivery: Delivery, *, is_started: bool = True) -> Work:
    one = Work(claimed_row(), Lease(0, uuid4(), 1), 0, 1, uuid4(), NOW, HANDLER, delivery)
    one.started_at = NOW if is_started else None
    return one


def end(settled: Settled) -> tuple[Fate, str, str]:
    record = AttemptRecord(*settled.record)
    assert (record.payload is not None) is (settled.fate is Fate.END), "the payload is kept once"
    return settled.fate, record.outcome, record.state


@pytest.mark.parametrize(
    ("what", "at_least_once", "at_most_once"),
    [
        ("succeeded", (Fate.END, "succeeded", "succeeded"), (Fate.END, "succeeded", "succeeded")),
        ("failed", (Fate.RETRY, "failed", "scheduled"), (Fate.BURY, "failed", "dead")),
        ("interrupted", (Fate.GIVE_BACK, "interrupted", "ready"), (Fate.END, "interrupted", "lost")),
        ("retried", (Fate.RETRY, "failed", "scheduled"), (Fate.BURY, "failed", "dead")),
        ("snoozed", (Fate.RETRY, "snoozed", "scheduled"), (Fate.BURY, "snoozed", "dead")),
        ("crashed", (Fate.RETRY, "crashed", "scheduled"), (Fate.BURY, "crashed", "dead")),
        ("cancelled", (Fate.END, "cancelled", "cancelled"), (Fate.END, "cancelled", "cancelled")),
    ],
)
def test_a_run_that_has_started_may_start_again_or_not(
    what: str, at_least_once: tuple[Fate, str, str], at_most_once: tuple[Fate, str, str]
) -> None:
    ways: dict[str, Any] = {
        "succeeded": lambda one: one.succeeded(None, NOW),
        "failed": lambda one: one.failed(ValueError("no"), NOW),
        "retried": lambda one: one.steered(Retry("later", after=1), NOW),
        "snoozed": lambda one: one.steered(Snooze(for_=1), NOW),
        "crashed": lambda one: one.crashed(ProcessCrashed("gone"), NOW),
        "interrupted": lambda one: one.interrupted(NOW),
        "cancelled": lambda one: one.cancelled(NOW),
    }

    assert end(ways[what](work(Delivery.AT_LEAST_ONCE))) == at_least_once
    assert end(ways[what](work(Delivery.TRANSACTIONAL))) == at_least_once or what == "succeeded"
    assert end(ways[what](work(Delivery.AT_MOST_ONCE))) == at_most_once


def test_a_run_that_has_not_started_goes_back_whatever_its_delivery() -> None:
    for delivery in Delivery:
        assert work(delivery, is_started=False).given_back(NOW).fate is Fate.GIVE_BACK
        assert work(delivery, is_started=False).held(NOW).fate is Fate.HOLD
