"""The checker sees every kind of damage it is there for; each is done by hand here, because the store cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.checker import Answer, CallLog, check

from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.lifecycle import State
from mainspring.model.line import Delivery, Line
from mainspring.store import jobs

from .verbs import WAYS

if TYPE_CHECKING:
    from tests.checker import Report

    from .verbs import Stage

_BACK_FROM_HISTORY = """
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, fence, payload)
    select lane, run_id, tenant_id, job_id, job_version, line_id, priority, fence, '' from attempt"""
_BOTH_NOW_AND_LATER = """
    insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, fence, payload, due_at)
    select lane, id, tenant_id, job_id, job_version, line_id, priority, fence, payload, due_at from ready"""
_TWO_LEASES = """
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    select lane, gen_random_uuid(), worker_id, runs, ids, done, cancel from lease"""
_SAID_TO_BE_LATE = """
    insert into stale (lane, run_id, fence, lease_id, worker_id, outcome)
    select lane, run_id, fence, gen_random_uuid(), worker_id, outcome from attempt"""
_ASKED_TO_CANCEL = """
    insert into audit (lane, tenant_id, actor, action, subject)
    select lane, tenant_id, 'tester', 'run.cancel', id::text from ready"""

DAMAGE = [
    # what the checker should say                         state            what was done
    ("accepted runs lost", State.READY, "delete from ready"),
    ("accepted runs lost", State.SCHEDULED, "delete from later"),  # a trace of an attempt is not a run
    ("accepted runs lost", State.RUNNING, "update lease set done = ~done"),
    ("completions accepted twice for one fence", State.DEAD, "insert into attempt select * from attempt"),
    ("runs with more than one end", State.EXPIRED, "insert into attempt select * from attempt"),
    ("runs that ended and are still somewhere", State.SUCCEEDED, _BACK_FROM_HISTORY),
    ("runs in more than one place", State.READY, _BOTH_NOW_AND_LATER),
    ("fences that went back", State.SCHEDULED, "update later set fence = 0"),
    ("cancelled runs that came back", State.READY, _ASKED_TO_CANCEL),
    ("completions both accepted and recorded as stale", State.SUCCEEDED, _SAID_TO_BE_LATE),
    ("runs with more than one live lease", State.RUNNING, _TWO_LEASES),
    ("leases left behind after their last run", State.RUNNING, "update lease set done = ~done"),
    ("runs whose changes and audit differ", State.HELD, "update held set revision = 1"),
    ("cancelled runs without an audit row", State.CANCELLED, "delete from audit"),
    ("crashes without an attempt in history", State.READY, "update ready set crashes = 1"),
]


def broken(report: Report) -> list[str]:
    return [finding.what for finding in report.violations]


@pytest.mark.parametrize("state", WAYS)
async def test_nothing_is_wrong_with_a_run_that_the_store_moved(stage: Stage, state: State) -> None:
    subject = await stage.set_up(state)
    report = await check(stage.observer, [subject.run_id])
    assert report.violations == [], report


@pytest.mark.parametrize(("what", "state", "damage"), DAMAGE)
async def test_damage_is_seen_and_called_by_its_name(stage: Stage, what: str, state: State, damage: str) -> None:
    subject = await stage.set_up(state)

    await stage.observer.execute(damage)

    report = await check(stage.observer, [subject.run_id])
    assert what in broken(report)
    assert report.count(what) == 1


async def test_a_start_without_a_trace_is_seen_and_one_that_still_runs_is_not(stage: Stage) -> None:
    subject = await stage.set_up(State.RUNNING)
    fence = (await stage.look(subject)).fence

    going_on = await check(stage.observer, [], starts=[(subject.run_id, fence)])
    vanished = await check(stage.observer, [], starts=[(subject.run_id, fence + 1)])

    assert broken(going_on) == []
    assert broken(vanished) == ["started attempts without a trace"]


async def test_two_starts_under_one_fence_are_wrong_and_two_under_two_are_counted(stage: Stage) -> None:
    subject = await stage.set_up(State.DEAD)
    start = (subject.run_id, 1)

    same = await check(stage.observer, [], starts=[start, start])
    assert broken(same) == ["attempts started twice under one fence"]
    assert same.count("executions beyond the first of a run") == 1


async def delivered(stage: Stage, delivery: Delivery) -> None:
    """What history has was delivered like this."""
    line = Line("default", (), delivery)
    await stage.observer.execute(
        "update attempt set line_id = $1",
        (await jobs.open_lines(stage.observer, [line], tenant_id=DEFAULT_TENANT))[line],
    )


async def test_a_second_start_is_wrong_where_one_was_the_most(stage: Stage) -> None:
    subject = await stage.set_up(State.DEAD)
    starts = [(subject.run_id, 1), (subject.run_id, 2)]
    assert "at-most-once runs that started again" not in broken(await check(stage.observer, [], starts=starts))
    await delivered(stage, Delivery.AT_MOST_ONCE)

    assert broken(await check(stage.observer, [], starts=starts[:1])) == []
    report = await check(stage.observer, [], starts=starts)
    assert report.count("at-most-once runs that started again") == 1
    await stage.observer.execute(
        "insert into audit (lane, tenant_id, actor, action, subject) values (0, 1, 'a person', 'run.requeue', $1)",
        str(subject.run_id),
    )
    assert (await check(stage.observer, [], starts=starts)).count("at-most-once runs that started again") == 0


@pytest.mark.parametrize(("state", "effects"), [(State.SUCCEEDED, 1), (State.DEAD, 0)])
async def test_a_transactional_run_has_as_many_effects_as_successes(stage: Stage, state: State, effects: int) -> None:
    subject = await stage.set_up(state)
    await delivered(stage, Delivery.TRANSACTIONAL)

    for times in range(3):
        report = await check(stage.observer, [], effects=[subject.run_id] * times)
        expected = [] if times == effects else ["transactional runs whose effects are not one with them"]
        assert broken(report) == expected
    assert broken(await check(stage.observer, [])) == [], "nobody wrote the effects down"


async def test_a_failed_submission_that_happened_all_the_same_is_seen(stage: Stage) -> None:
    subject = await stage.set_up(State.READY)
    log = CallLog()
    log.record(Answer.FAILED, subject.run_id)

    report = await check(stage.observer, log.accepted, calls=log.calls)

    assert broken(report) == ["runs that exist though their submission failed"]


async def test_an_unknown_submission_may_have_happened_or_not_but_not_by_half(stage: Stage) -> None:
    subject = await stage.set_up(State.READY)
    log = CallLog()
    log.record(Answer.UNKNOWN, subject.run_id)
    log.record(Answer.INVOKED, uuid4())
    assert broken(await check(stage.observer, log.accepted, calls=log.calls)) == []

    log.record(Answer.UNKNOWN, subject.run_id, uuid4())
    report = await check(stage.observer, log.accepted, calls=log.calls)

    assert broken(report) == ["batches of which only a part exists"]
    assert report.count("unanswered submissions that happened") == 2
    assert report.count("unanswered submissions that did not") == 1


async def test_late_completions_are_compared_with_those_that_were_injected(stage: Stage) -> None:
    await stage.set_up(State.READY)
    assert broken(await check(stage.observer, [], stale_injected=0)) == []
    assert broken(await check(stage.observer, [], stale_injected=1)) == ["stale completions rejected"]


async def test_work_that_is_left_over_matters_only_where_all_should_be_over(stage: Stage) -> None:
    await stage.set_up(State.READY)
    assert broken(await check(stage.observer, [])) == []
    assert broken(await check(stage.observer, [], must_be_drained=True)) == ["runs that are not over"]


async def test_the_report_is_a_table_with_a_line_for_every_invariant(stage: Stage) -> None:
    subject = await stage.set_up(State.READY)
    await stage.observer.execute("delete from ready")

    lines = str(await check(stage.observer, [subject.run_id])).splitlines()

    assert list(dict.fromkeys(line.split()[0] for line in lines)) == [f"I{number}" for number in range(1, 11)]
    lost = next(line for line in lines if "accepted runs lost" in line)
    assert lost.endswith(f"1  VIOLATED, expected 0  e.g. {subject.run_id}")
    assert any(line.startswith("I2") and line.endswith("not applicable yet") for line in lines)
