"""An operation cancels runs of several leases in one transaction, while their worker settles the same leases.

Runs and their leases are in opposite orders, so that whoever followed the list of runs would wait in a circle with
those who lock leases in the order of their ids.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4

import pytest
from tests.checker import check

from mainspring.control.acting import Acting
from mainspring.model.filter import RunFilter
from mainspring.model.lifecycle import State
from mainspring.model.operation import Operation, OperationKind
from mainspring.store import completions, leases
from mainspring.store.connection import transaction
from mainspring.worker.successes import WholeLease

from .test_submitting_again import meet
from .verbs import PATIENT, TESTER, claim_batch, micros_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .verbs import Party, Stage, Subject

    Act = Callable[[Party], Awaitable[Any]]

COUNT = 4
MOST_BOUNDARIES = 40


async def one_lease_each(stage: Stage) -> list[Subject]:
    """Runs that one worker has, each in a lease of its own; the later the run, the lower the id of its lease."""
    await stage.clear()
    worker_id = uuid4()
    subjects = []
    for number in range(COUNT):
        subject = await stage.submit(key=str(number))
        lease_id = UUID(int=COUNT - number)
        subject.claims += await claim_batch(stage.second, subject.lane, subject.line_id, worker_id, lease_id)
        subjects.append(subject)
    assert subjects == sorted(subjects, key=lambda each: each.run_id)
    return subjects


def cancel_all(subjects: list[Subject]) -> Act:
    now = datetime.now(UTC)
    operation = Operation(
        id=uuid4(),
        kind=OperationKind.CANCEL,
        wanted=RunFilter(),
        change={},
        actor="tester",
        reason="not needed",
        expected=COUNT,
        done=0,
        skipped=0,
        cursor=None,
        started_at=now,
        worked_at=now,
        ended_at=None,
    )

    async def cancel_all(actor: Party) -> int:
        async with transaction(actor.plain):
            lines = {each.run_id: each.line_id for each in subjects}
            return await Acting(reruns=cast("Any", None)).act(actor.plain, TESTER.tenant, operation, lines)

    return cancel_all


def complete_all(subjects: list[Subject]) -> Act:
    """As a flusher does: as whole leases, and one by one what is none."""

    async def complete_all(actor: Party) -> int:
        claims = [each.claims[-1] for each in subjects]
        works = [claim.work(PATIENT, is_started=True) for claim in claims]
        whole = [WholeLease([work.success(b"1", micros_now())]).completion() for work in works]
        completed = await completions.complete(actor.raw, claims[0].worker_id, whole)
        return len(completed.leases)

    return complete_all


def retry_all(subjects: list[Subject]) -> Act:
    async def retry_all(actor: Party) -> int:
        claims = [each.claims[-1] for each in subjects]
        works = [claim.work(PATIENT, is_started=True) for claim in claims]
        failed = [work.failed(ValueError("once more"), micros_now()) for work in works]
        return (await leases.settle(actor.raw, claims[0].worker_id, failed)).accepted

    return retry_all


@pytest.mark.parametrize("is_first", [True, False], ids=["cancelled first", "cancelled second"])
@pytest.mark.parametrize("settle_all", [complete_all, retry_all])
async def test_an_operation_and_a_worker_do_not_wait_in_a_circle(
    stage: Stage, settle_all: Callable[[list[Subject]], Act], is_first: bool
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        subjects = await one_lease_each(stage)
        acts = [cancel_all(subjects), settle_all(subjects)]
        answers, was_met = await meet(stage, acts if is_first else acts[::-1], boundary)
        cancelled, settled = answers if is_first else answers[::-1]
        assert settled == COUNT
        states = {(await stage.look(each)).state for each in subjects}
        asked_in_time = cancelled == COUNT and settle_all is retry_all
        assert states == {_expected(settle_all is complete_all, asked_in_time)}, (boundary, answers)
        report = await check(stage.observer, [each.run_id for each in subjects])
        assert report.violations == [], report
        if not was_met:
            return
    pytest.fail("no end of boundaries")


def _expected(has_succeeded: bool, is_cancelled: bool) -> State:
    if has_succeeded:
        return State.SUCCEEDED
    return State.CANCELLED if is_cancelled else State.SCHEDULED
