"""What spends an attempt, and what does not: as model/lifecycle.py says of each outcome."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from mainspring.errors import ProcessCrashed
from mainspring.model.job import JobDefinition
from mainspring.model.lifecycle import Outcome
from mainspring.model.steering import Cancel, Fail, Retry, Snooze
from mainspring.store.columns import AttemptRecord
from mainspring.store.leases import Fate, Lease, Settled
from mainspring.worker.registry import handler_of
from mainspring.worker.time_limits import TimeLimit
from mainspring.worker.work import Work

from .hands import claimed_row

NOW = (1_000_000,)
NO = ValueError("no")


def started(*, attempts: int = 3, limit: TimeLimit | None = None) -> Work:
    handler = handler_of(JobDefinition(name="pay"), lambda: None)
    work = Work(claimed_row(attempt=attempts), Lease(0, uuid4(), 1), 0, 1, uuid4(), NOW, handler)
    work.started_at, work.limit = NOW, limit
    return work


def timed_out(*, is_last: bool = False, run_ends_at: int | None = None) -> Work:
    limit = TimeLimit(seconds=1, is_last=is_last, run_ends_at=run_ends_at)
    limit.exceed()
    return started(limit=limit)


def spent(settled: Settled) -> int:
    """As the statements take it: to wait again or among the dead letters, attempts are counted; else they stay."""
    return settled.spent if settled.fate in (Fate.RETRY, Fate.BURY) else 0


SPENDING: dict[str, Any] = {
    "failed": lambda: started().failed(NO, NOW),
    "failed for good": lambda: started(attempts=1_000).failed(NO, NOW),
    "asked to be tried again": lambda: started().steered(Retry("busy", after=1), NOW),
    "gave up": lambda: started().steered(Fail("never"), NOW),
    "returned what cannot be kept": lambda: started().hopeless(NO, NOW),
    "crashed in a process of its own": lambda: started().crashed(ProcessCrashed("gone"), NOW),
    "took too long": lambda: timed_out().stopped(NOW),
    "used up the run's time": lambda: timed_out(is_last=True).stopped(NOW),
}
SPARING: dict[str, Any] = {
    "interrupted": lambda: started().interrupted(NOW),
    "never started": lambda: started().given_back(NOW),
    "nobody knows its job": lambda: started().held(NOW),
    "snoozed": lambda: started().steered(Snooze(for_=1), NOW),
    "snoozed beyond the run's time": lambda: timed_out(run_ends_at=NOW[0]).steered(Snooze(for_=1), NOW),
    "the run's time was up before": lambda: started().out_of_time(NOW),
    "its policies cannot be read": lambda: started().ungovernable(NO, NOW),
    "cancelled": lambda: started().cancelled(NOW),
    "cancelled itself": lambda: started().steered(Cancel("done"), NOW),
    "expired": lambda: started().expired(NOW),
    "succeeded": lambda: started().succeeded(None, NOW),
}


@pytest.mark.parametrize("what", SPENDING)
def test_it_spends_the_attempt(what: str) -> None:
    assert spent(SPENDING[what]()) == 1


@pytest.mark.parametrize("what", SPARING)
def test_it_spends_no_attempt(what: str) -> None:
    assert spent(SPARING[what]()) == 0


def test_every_outcome_is_among_them() -> None:
    """But for a crash in a shared worker: nobody settles that, and a rescue leaves the attempts as they are."""
    settled = [way() for way in (*SPENDING.values(), *SPARING.values())]

    assert {AttemptRecord(*each.record).outcome for each in settled} == set(Outcome)
