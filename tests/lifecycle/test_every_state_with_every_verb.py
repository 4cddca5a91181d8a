"""Each verb moves a run as `model/lifecycle.py` declares, and changes nothing where it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded, RunAlreadyStarted, RunNotDead
from mainspring.model.lifecycle import ENDS, MOVES, PLACES, State

from .moves import ACTING, AWAITING, POSTPONED, SETTLING, STAGED, Expected, after, allows, state_at
from .verbs import TOMORROW, VERBS, WAYS, obey

if TYPE_CHECKING:
    from .verbs import Seen, Stage

CASES = [(spot, verb) for spot in WAYS for verb in ACTING]
MOVING = [case for case in CASES if allows(case[1], case[0])]
STILL = [case for case in CASES if not allows(case[1], case[0])]
REFUSED = ("cancel", "change", "requeue", "purge")  # what people ask for is answered; the others pass by in silence
REFUSALS = dict.fromkeys({*ENDS, State.DEAD}, RunAlreadyEnded) | dict.fromkeys(
    {State.RUNNING, AWAITING}, RunAlreadyStarted
)


def test_there_is_a_way_to_every_state_and_a_hand_for_every_verb() -> None:
    assert set(WAYS) == {*State, STAGED, POSTPONED, AWAITING}
    assert set(PLACES) <= set(WAYS)
    assert set(VERBS) == {move.verb for move in MOVES} - {"submit"}
    assert {verb for _, verb in MOVING} == set(ACTING), "each verb moves something"


@pytest.mark.invariant(3)
@pytest.mark.parametrize(("spot", "verb"), [case for case in MOVING if case[1] != "withdraw"])
async def test_a_verb_moves_a_run_as_declared(stage: Stage, spot: str, verb: str) -> None:
    state = state_at(spot)
    subject = await stage.set_up(spot)
    before = await stage.look(subject)

    await VERBS[verb](stage.first, subject, state)
    if (verb, state) == ("cancel", State.RUNNING):
        await obey(stage.first, subject, state)  # the worker was asked to, and does

    now = await stage.look(subject)
    target = State.CANCELLED if verb == "cancel" else state_at(after(verb, Expected(spot), state).spot)
    assert now.state is target
    assert now.carried == before.carried
    assert now.fence == before.fence + (verb == "claim")
    if target in PLACES:
        assert _counts(now) == _expected_counts(before, verb)
    report = await check(stage.observer, [subject.run_id])
    assert report.violations == [], report


@pytest.mark.invariant(2)
@pytest.mark.parametrize("spot", [spot for spot, verb in MOVING if verb == "withdraw"])
async def test_a_withdrawn_run_is_gone_and_its_occurrence_is_still_to_come(stage: Stage, spot: str) -> None:
    subject = await stage.set_up(spot)
    assert await stage.next_occurrence(subject) == (True, TOMORROW + timedelta(days=1))

    await VERBS["withdraw"](stage.first, subject, State.SCHEDULED)

    assert await stage.find(subject) is None
    assert await stage.next_occurrence(subject) == (False, TOMORROW)


async def test_what_was_started_before_its_instant_has_fired_though_it_waits_for_tomorrow_again(stage: Stage) -> None:
    subject = await stage.set_up(State.SCHEDULED)
    await stage.observer.execute("update later set due_at = $1", TOMORROW)
    before = await stage.contents()

    await VERBS["withdraw"](stage.first, subject, State.SCHEDULED)

    assert await stage.contents() == before


def _counts(seen: Seen) -> tuple[int, int, int]:
    return seen.attempt, seen.crashes, seen.revision


def _expected_counts(before: Seen, verb: str) -> tuple[int, int, int]:
    """Failing spends an attempt; a snooze, a crash, a drain or a missing handler does not; requeueing starts again."""
    if verb == "requeue":
        return 0, 0, before.revision + 1
    return (
        before.attempt + (verb in ("retry", "bury", "await_children")),
        before.crashes + (verb == "rescue"),
        before.revision + (verb == "change"),
    )


@pytest.mark.parametrize(("spot", "verb"), STILL)
async def test_a_verb_that_is_not_declared_changes_nothing(stage: Stage, spot: str, verb: str) -> None:
    state = state_at(spot)
    assert state is not None
    subject = await stage.set_up(spot)
    before = await stage.contents()

    if verb in REFUSED:
        with pytest.raises(RunNotDead if verb in ("requeue", "purge") else REFUSALS[spot]):
            await VERBS[verb](stage.first, subject, state)
    else:
        await VERBS[verb](stage.first, subject, state)

    assert await stage.contents() == before


@pytest.mark.invariant(4)
@pytest.mark.parametrize("verb", sorted(SETTLING))
async def test_what_a_former_worker_sends_changes_nothing_for_the_present_one(stage: Stage, verb: str) -> None:
    subject = await stage.set_up(State.RUNNING)
    present = subject.claims.pop()
    before = await stage.contents()

    settlement = await VERBS[verb](stage.first, subject, State.RUNNING)

    assert await stage.contents() == before
    is_traced = verb not in ("hold", "give_back")  # a run that never started has nothing to be late with
    assert (settlement.accepted, settlement.stale, await stage.stale()) == (0, is_traced, is_traced)
    subject.claims.append(present)
    await VERBS["complete"](stage.first, subject, State.RUNNING)
    assert (await stage.look(subject)).state is State.SUCCEEDED


@pytest.mark.invariant(4)
@pytest.mark.parametrize("verb", sorted(SETTLING))
async def test_a_worker_cannot_settle_what_another_one_claimed(stage: Stage, verb: str) -> None:
    subject = await stage.set_up(State.RUNNING)
    subject.claims.append(subject.claims[-1]._replace(worker_id=uuid4()))
    before = await stage.contents()

    settlement = await VERBS[verb](stage.first, subject, State.RUNNING)

    assert settlement.accepted == 0
    assert await stage.contents() == before


@pytest.mark.parametrize("verb", sorted({"retry", "snooze", "bury", "hold", "await_children", "give_back", "rescue"}))
async def test_a_run_that_was_asked_to_stop_never_goes_back_to_wait(stage: Stage, verb: str) -> None:
    subject = await stage.set_up(State.RUNNING)
    await VERBS["cancel"](stage.second, subject, State.RUNNING)

    await VERBS[verb](stage.first, subject, State.RUNNING)

    assert (await stage.look(subject)).state is State.CANCELLED
    report = await check(stage.observer, [subject.run_id])
    assert report.violations == [], report


@pytest.mark.parametrize("in_company", [False, True])
@pytest.mark.parametrize("verb", sorted(SETTLING))
async def test_what_is_sent_again_after_a_lost_answer_changes_nothing_more(
    stage: Stage, verb: str, in_company: bool
) -> None:
    subject = await stage.set_up(State.RUNNING, in_company=in_company)
    first = await VERBS[verb](stage.first, subject, State.RUNNING)
    before = await stage.contents()

    again = await VERBS[verb](stage.first, subject, State.RUNNING)

    assert (first.accepted, again.accepted, again.before, again.stale) == (1, 0, 1, 0)
    assert (await stage.contents(), await stage.stale()) == (before, 0)


async def test_success_stays_success_though_someone_asked_to_cancel(stage: Stage) -> None:
    subject = await stage.set_up(State.RUNNING)
    await VERBS["cancel"](stage.second, subject, State.RUNNING)

    await VERBS["complete"](stage.first, subject, State.RUNNING)

    assert (await stage.look(subject)).state is State.SUCCEEDED
