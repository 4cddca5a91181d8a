"""A lease holds many runs: what happens to one of them happens to that one only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded
from mainspring.model.lifecycle import State
from mainspring.store import completions, leases, workers
from mainspring.store.instants import instant_of
from mainspring.worker.successes import WholeLease

from .verbs import PATIENT, VERBS, Subject, claim_batch, micros_now, obey

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.worker.successes import Success

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


# ── leases all of whose runs succeeded ──────────────────────────────────────────────────────────────────────────


def successes(subjects: list[Subject]) -> list[Success]:
    return [
        subject.claims[0].work(PATIENT, is_started=True).success(str(position).encode(), micros_now())
        for position, subject in enumerate(subjects)
    ]


async def test_a_lease_all_of_whose_runs_succeeded_becomes_history_as_if_each_were_settled(stage: Stage) -> None:
    one_by_one, whole = await three_in_one_lease(stage), await three_in_one_lease(stage)
    settled, completed = successes(one_by_one), successes(whole)

    await leases.settle(stage.first.raw, one_by_one[0].worker_id, [each.settled() for each in settled])
    found = await completions.complete(stage.first.raw, whole[0].worker_id, [WholeLease(completed).completion()])

    assert found.leases == {whole[0].claims[0].lease.id}
    assert await states(stage, [*one_by_one, *whole]) == [State.SUCCEEDED] * 6
    assert await history_of(stage, whole, completed) == await history_of(stage, one_by_one, settled)
    assert await stage.observer.fetchval("select count(*) from lease") == 0


async def history_of(stage: Stage, subjects: list[Subject], of: list[Success]) -> list[dict[str, Any]]:
    """What was recorded, but for what is another one's by its nature; times as how much they are off."""
    rows = await stage.observer.fetch(
        "select * from attempt where run_id = any ($1)", [subject.run_id for subject in subjects]
    )
    of_id = {row["run_id"]: dict(row) for row in rows}
    ordered = [of_id[subject.run_id] for subject in subjects]
    for row, success in zip(ordered, of, strict=True):
        assert row["started_at"] == instant_of(success.work.started_at or (0,))
        assert row["finished_at"] == instant_of(success.finished_at)
        assert row["worker_id"] == success.work.worker_id
        assert row["claimed_at"] is not None
        for name in OF_ITS_OWN:
            del row[name]
    return ordered


OF_ITS_OWN = (
    "run_id",
    "lane",
    "worker_id",
    "idempotency_key",
    "due_at",
    "ready_at",
    "submitted_at",
    "claimed_at",
    "started_at",
    "finished_at",
    "recorded_at",
    "is_covered",
    "covers",
)


async def test_a_whole_lease_that_is_sent_again_changes_nothing_and_is_known(stage: Stage) -> None:
    """The answer to the first COMMIT was lost."""
    subjects = await three_in_one_lease(stage)
    worker_id, sent = subjects[0].worker_id, successes(subjects)
    await completions.complete(stage.first.raw, worker_id, [WholeLease(sent).completion()])
    before = await stage.contents()

    again = await completions.complete(stage.second.raw, worker_id, [WholeLease(sent).completion()])
    assert again.leases == set()
    settlement = await leases.settle(stage.second.raw, worker_id, [each.settled() for each in sent])

    assert (settlement.accepted, settlement.before, settlement.stale) == (0, 3, 0)
    assert await stage.contents() == before


@pytest.mark.parametrize("what", ["rescued", "another worker's", "settled in part", "of another size"])
async def test_a_lease_that_is_not_as_the_worker_thinks_is_not_completed(stage: Stage, what: str) -> None:
    subjects = await three_in_one_lease(stage)
    worker_id = uuid4() if what == "another worker's" else subjects[0].worker_id
    if what == "rescued":
        await workers.rescue(stage.second.plain, subjects[0].lane, worker_id, 10)
    if what == "settled in part":
        await VERBS["complete"](stage.second, subjects[1], State.RUNNING)
    sent = WholeLease(successes(subjects)).completion()
    if what == "of another size":
        sent = sent._replace(lease=sent.lease._replace(size=2))
    before = await stage.contents()

    assert (await completions.complete(stage.first.raw, worker_id, [sent])).leases == set()
    assert await stage.contents() == before


async def test_of_several_leases_those_are_completed_that_can_be(stage: Stage) -> None:
    worker_id = uuid4()
    rescued, *others = [await three_in_one_lease(stage, worker_id) for _ in range(3)]
    await workers.rescue(stage.second.plain, rescued[0].lane, worker_id, 1)
    gone = {row["id"] for row in await stage.observer.fetch("select id from lease")}

    sent = [WholeLease(successes(each)).completion() for each in (rescued, *others)]
    found = await completions.complete(stage.first.raw, worker_id, sent)

    assert found.leases == gone, "those that were there"
    assert len(found.leases) == 2
    assert await stage.observer.fetchval("select count(*) from lease") == 0


async def test_a_success_stays_one_although_somebody_asked_for_its_end_meanwhile(stage: Stage) -> None:
    subjects = await three_in_one_lease(stage)
    await VERBS["cancel"](stage.second, subjects[1], State.RUNNING)

    whole = WholeLease(successes(subjects)).completion()
    assert (await completions.complete(stage.first.raw, subjects[0].worker_id, [whole])).leases

    assert await states(stage, subjects) == [State.SUCCEEDED] * 3
