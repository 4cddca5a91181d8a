"""A lease holds many runs: what happens to one of them happens to that one only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded
from mainspring.model.lifecycle import State
from mainspring.store import leases, workers

from .verbs import PATIENT, VERBS, Subject, claim_batch, micros_now, obey

if TYPE_CHECKING:
    from uuid import UUID

    from .verbs import Stage

BACK = {
    "retry": State.SCHEDULED,
    "snooze": State.SCHEDULED,
    "bury": State.DEAD,
    "hold": State.HELD,
    "give_back": State.READY,
}


async def three_in_one_lease(stage: Stage, worker_id: UUID | None = None) -> list[Subject]:
    """Three runs that one worker claimed together, in the order they have in the lease."""
    of_id = {subject.run_id: subject for subject in [await stage.submit(key=str(uuid4())) for _ in range(3)]}
    one = next(iter(of_id.values()))
    for claim in await claim_batch(stage.first, one.lane, one.line_id, worker_id or uuid4()):
        subject = of_id[claim.row["id"]]
        subject.worker_id = claim.worker_id
        subject.claims.append(claim)
    return sorted(of_id.values(), key=lambda subject: subject.claims[0].position)


async def states(stage: Stage, subjects: list[Subject]) -> list[State]:
    report = await check(stage.observer, [subject.run_id for subject in subjects])
    assert report.violations == [], report
    return [(await stage.look(subject)).state for subject in subjects]


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("verb", sorted(BACK))
async def test_one_run_goes_back_and_its_neighbours_stay(stage: Stage, verb: str, position: int) -> None:
    subjects = await three_in_one_lease(stage)

    await VERBS[verb](stage.first, subjects[position], State.RUNNING)

    expected = [State.RUNNING] * 3
    expected[position] = BACK[verb]
    assert await states(stage, subjects) == expected


@pytest.mark.parametrize("position", range(3))
async def test_one_run_is_asked_to_stop_and_its_neighbours_go_on(stage: Stage, position: int) -> None:
    subjects = await three_in_one_lease(stage)

    await VERBS["cancel"](stage.second, subjects[position], State.RUNNING)

    assert [(await stage.look(each)).is_cancelling for each in subjects] == [at == position for at in range(3)]
    await VERBS["rescue"](stage.first, subjects[0], State.RUNNING)
    expected = [State.READY] * 3
    expected[position] = State.CANCELLED
    assert await states(stage, subjects) == expected


async def test_only_what_is_not_done_is_rescued(stage: Stage) -> None:
    first, second, third = subjects = await three_in_one_lease(stage)
    await VERBS["complete"](stage.first, first, State.RUNNING)
    await VERBS["retry"](stage.first, third, State.RUNNING)

    rescued = await workers.rescue(stage.second.plain, second.lane, second.worker_id, 10)

    assert rescued == workers.Rescued(leases=1, rescued=1)
    assert await states(stage, subjects) == [State.SUCCEEDED, State.READY, State.SCHEDULED]


async def test_a_run_that_went_back_to_wait_is_cancelled_there_while_its_lease_lives_on(stage: Stage) -> None:
    first, *others = await three_in_one_lease(stage)
    await VERBS["retry"](stage.first, first, State.RUNNING)

    assert await VERBS["cancel"](stage.second, first, State.SCHEDULED) is State.CANCELLED

    assert await states(stage, [first, *others]) == [State.CANCELLED, State.RUNNING, State.RUNNING]
    assert not any([(await stage.look(each)).is_cancelling for each in others])


async def test_a_run_that_ended_is_not_asked_to_stop_while_its_lease_lives_on(stage: Stage) -> None:
    first, *_ = await three_in_one_lease(stage)
    await VERBS["complete"](stage.first, first, State.RUNNING)
    before = await stage.contents()

    with pytest.raises(RunAlreadyEnded):
        await VERBS["cancel"](stage.second, first, State.SUCCEEDED)

    assert await stage.contents() == before


async def test_the_last_run_to_leave_takes_the_lease_away(stage: Stage) -> None:
    first, second, third = await three_in_one_lease(stage)
    await VERBS["cancel"](stage.second, second, State.RUNNING)

    for verb, subject in ((VERBS["complete"], first), (obey, second)):
        await verb(stage.first, subject, State.RUNNING)
        assert await stage.observer.fetchval("select count(*) from lease") == 1
    await VERBS["bury"](stage.first, third, State.RUNNING)

    assert await stage.observer.fetchval("select count(*) from lease") == 0


async def test_what_comes_too_late_for_one_lease_spares_the_others_of_its_batch(stage: Stage) -> None:
    worker_id = uuid4()
    subjects = [(await three_in_one_lease(stage, worker_id))[0] for _ in range(2)]
    await workers.rescue(stage.second.plain, subjects[0].lane, worker_id, 1)

    works = [subject.claims[0].work(PATIENT, is_started=True) for subject in subjects]
    settlement = await leases.settle(stage.first.raw, worker_id, [work.succeeded(None, micros_now()) for work in works])

    assert (settlement.accepted, settlement.stale) == (1, 1)
    assert sorted(await states(stage, subjects)) == [State.READY, State.SUCCEEDED]
