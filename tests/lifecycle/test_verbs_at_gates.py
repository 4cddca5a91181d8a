"""Runs under limits and runs that wait for others: every verb from every place, and every verb against every verb.

A rival waits behind the run at its gates, and a child for its success. What two verbs come to at once is what they come
to one after the other; and when keepers have looked, no limit is exceeded, no slot lost, and nobody left behind.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.checker import check

from mainspring.model.concurrency import MAX_LIMIT, Turn, next_in_turn
from mainspring.model.lifecycle import State
from mainspring.store import admission
from mainspring.store.functions import all_functions

from .gated import GATED_VERBS, OF_KEEPERS, WAYS, GatedStage, Outcome, Scene, one_after_the_other, whereabouts
from .meeting import MOST_BOUNDARIES, Meeting, outcome_of
from .moves import PASSING_OVER, SETTLING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .verbs import Party, Subject

ENDED = {"cancel": "cancelled", "expire": "expired"}
SETTLED = {
    "complete": "succeeded",
    "retry": "scheduled",
    "snooze": "scheduled",
    "bury": "dead",
    "hold": "held@no-handler",
    "lose": "lost",
    "expire": "expired",
}

# Where each verb takes a run; from where it is not named, it leaves it where it is.
TAKES: dict[str, dict[str, str]] = {
    "held@narrow": ENDED | {"admit": "held@broad+narrow", "change": "ready"},
    "held@broad+narrow": ENDED | {"admit": "ready+narrow+broad", "change": "ready+narrow"},
    "ready+narrow+broad": ENDED | {"claim": "running+narrow+broad", "change": "scheduled"},
    "running+narrow+broad": SETTLED
    | {
        "hold_at_gate": "held@narrow+narrow+broad",
        "give_back": "ready+narrow+broad",
        "rescue": "ready+narrow+broad",
        "cancel": "running+narrow+broad cancelling",
    },
    "scheduled": ENDED | {"promote": "held@narrow", "change": "ready"},
    "dead": {"requeue": "ready", "purge": "cancelled"},
    "held@no-handler": ENDED | {"release": "ready"},
    "ready": {"claim": "running", "cancel": "cancelled", "change": "scheduled"},
    "running": SETTLED
    | {"hold_at_gate": "held@narrow", "give_back": "ready", "rescue": "ready", "cancel": "running cancelling"},
    "succeeded": {},
    "cancelled": {},
    "strict running+narrow+broad": SETTLED
    | {
        "retry": "scheduled+narrow",
        "snooze": "scheduled+narrow",
        "bury": "dead+narrow",
        "hold": "held@no-handler+narrow",
        "hold_at_gate": "held@narrow+narrow+broad",
        "give_back": "ready+narrow+broad",
        "rescue": "ready+narrow+broad",
        "cancel": "running+narrow+broad cancelling",
    },
    "strict scheduled+narrow": ENDED | {"promote": "held@narrow+narrow", "change": "ready+narrow"},
    "strict held@narrow+narrow": ENDED | {"admit": "held@broad+narrow", "change": "ready+narrow"},
    "strict dead+narrow": {"requeue": "ready+narrow", "purge": "cancelled"},
    "parent held@parent": ENDED | {"resolve": "held@narrow"},
    "parent held@parent in vain": ENDED | {"resolve": "cancelled"},
}
CLAIMED = {spot for spot, way in WAYS.items() if "claim" in way}


def acting(spot: str) -> set[str]:
    """Verbs that act on the run from there, or on those that wait behind it."""
    return {*TAKES[spot], *OF_KEEPERS}


def met(spot: str, first: str) -> list[str]:
    """Verbs that may act there before the first or after it; and a worker's that comes too late."""
    order = "strict " if spot.startswith("strict") else ""
    after = TAKES.get(order + TAKES[spot].get(first, ""), {})
    late = {"complete", "retry"} if spot in CLAIMED else set()
    return sorted({*acting(spot), *after, *late})


OF_WORKERS = SETTLING | {"hold_at_gate"}  # who need a lease, were it a late one
ALONE = [(spot, verb) for spot in WAYS for verb in sorted(GATED_VERBS) if spot in CLAIMED or verb not in OF_WORKERS]
FIRST = [(spot, first) for spot in WAYS for first in sorted(acting(spot))]
PAIRS = [(spot, first, second) for spot, first in FIRST for second in met(spot, first)]


async def is_sound(stage: GatedStage, scene: Scene, where: str) -> None:
    """Before keepers look and after, as a count from outside finds it."""
    report = await check(stage.observer, scene.ids)
    assert report.violations == [], f"{where}:\n{report}"
    if await stage.let_keepers_look():
        report = await check(stage.observer, scene.ids)
        assert report.violations == [], f"{where}, and keepers have looked:\n{report}"
    assert await stage.left_behind() == [], where


@pytest.mark.invariant(13)
@pytest.mark.parametrize(("spot", "verb"), ALONE)
async def test_a_verb_takes_a_run_under_limits_where_it_should(gated: GatedStage, spot: str, verb: str) -> None:
    scene = await gated.scene(spot)
    found = await gated.find(scene.subject)
    assert found is not None

    await outcome_of(GATED_VERBS[verb](gated.first, scene.subject, found.state))

    after, _, _ = await gated.outcome(scene)
    assert after == TAKES[spot].get(verb, whereabouts(spot))
    await is_sound(gated, scene, f"{verb} from {spot}")


async def stand_by(actor: Party, subject: Subject, seen: State | None) -> None:
    """Nobody else acts."""


class GatedMeeting(Meeting):
    """Two verbs on a run under limits."""

    scene: Scene

    @classmethod
    async def of(cls, stage: GatedStage, spot: str, first: str, second: str, boundary: int) -> GatedMeeting:
        scene = await stage.scene(spot)
        found = await stage.find(scene.subject)
        seen = None if found is None else found.state
        meeting = cls(stage, scene.subject, seen, boundary, f"{second} during {first}, from {spot}")
        meeting.scene = scene
        await meeting.begin(GATED_VERBS[first], (GATED_VERBS | {"stand_by": stand_by})[second])
        return meeting

    def must_pass_over(self, verb: str) -> bool:
        return verb in OF_KEEPERS or super().must_pass_over(verb)

    @property
    def where(self) -> str:
        return f"{self._title} (after {self.gate.passed})"


@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
@pytest.mark.parametrize(("spot", "first", "second"), PAIRS)
async def test_two_verbs_at_once_leave_runs_under_limits_as_if_one_came_after_the_other(
    gated: GatedStage, spot: str, first: str, second: str
) -> None:
    await meet_at_each_boundary(gated, spot, first, second)


async def meet_at_each_boundary(gated: GatedStage, spot: str, first: str, second: str) -> None:
    known: dict[State | None, set[Outcome]] = {}
    for boundary in range(MOST_BOUNDARIES):
        meeting = await GatedMeeting.of(gated, spot, first, second, boundary)
        meeting.gate.go_on()
        await meeting.end()
        now = await gated.outcome(meeting.scene)
        await is_sound(gated, meeting.scene, meeting.where)
        if meeting.seen not in known:
            known[meeting.seen] = await orders(gated, spot, first, second, meeting.seen)
        assert now in known[meeting.seen], meeting.where
        if not meeting.gate.reached.is_set():
            return
    pytest.fail(f"{first} has more than {MOST_BOUNDARIES} boundaries")


async def orders(stage: GatedStage, spot: str, first: str, second: str, seen: State | None) -> set[Outcome]:
    """What comes of them one after the other, and of one alone where the other may pass over what somebody holds."""
    begun = await stage.find((await stage.scene(spot)).subject)
    one, other = (first, None if begun is None else begun.state), (second, seen)
    results = {await one_after_the_other(stage, spot, *acts) for acts in ((one, other), (other, one))}
    if second in PASSING_OVER | OF_KEEPERS or (second in OF_WORKERS and seen is not State.RUNNING):
        results.add(await one_after_the_other(stage, spot, one))
    if first in PASSING_OVER | OF_KEEPERS:
        results.add(await one_after_the_other(stage, spot, other))
    return results


@pytest.mark.invariant(13)
@pytest.mark.parametrize(("spot", "first"), FIRST)
async def test_one_who_dies_half_way_leaves_no_slot_taken_and_nobody_waiting(
    gated: GatedStage, spot: str, first: str
) -> None:
    before = await gated.outcome(await gated.scene(spot))
    for boundary in range(MOST_BOUNDARIES):
        meeting = await GatedMeeting.of(gated, spot, first, "stand_by", boundary)
        meeting.gate.die()
        await meeting.end()
        if not meeting.gate.reached.is_set():
            return
        if "commit" not in meeting.gate.passed:
            assert await gated.outcome(meeting.scene) == before, meeting.where
        await is_sound(gated, meeting.scene, meeting.where)
    pytest.fail(f"{first} has more than {MOST_BOUNDARIES} boundaries")


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def without(stage: GatedStage, function: str, part: str, instead: str = "") -> AsyncIterator[None]:
    """A function of the database lacks a part of what it does."""
    whole = all_functions()[function]
    assert part in whole
    await stage.observer.execute(whole.replace(part, instead))
    try:
        yield
    finally:
        await stage.observer.execute(whole)


async def acted(stage: GatedStage, spot: str, verb: str) -> Scene:
    scene = await stage.scene(spot)
    found = await stage.look(scene.subject)
    await GATED_VERBS[verb](stage.first, scene.subject, found.state)
    await stage.let_keepers_look()
    return scene


async def test_a_slot_that_is_not_given_back_is_seen(gated: GatedStage) -> None:
    await gated.scene("running+narrow+broad")
    async with without(gated, "end_runs", "perform free_slots(end_runs.lane, end_runs.runs, 'succeeded');"):
        scene = await acted(gated, "running+narrow+broad", "complete")

    report = await check(gated.observer, scene.ids)
    assert report.count("slots held by no run") == 2


async def test_a_run_that_nobody_is_told_of_is_seen(gated: GatedStage) -> None:
    await gated.scene("held@narrow")
    no_telling = without(gated, "end_runs", "perform tell_children(end_runs.lane, end_runs.runs);")
    no_looking = without(gated, "check_dependencies", "if cardinality(picked) = 0 then", "if true then")
    async with no_telling, no_looking:
        scene = await acted(gated, "held@narrow", "cancel")

    assert f"waits for runs that are over: {scene.child}" in await gated.left_behind()


async def test_a_run_that_leaves_its_gate_with_its_slot_while_somebody_counts_is_seen(
    gated: GatedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whatever_is_kept(*arguments: Any, without_slot: Any) -> list[Turn]:
        return next_in_turn(*arguments, without_slot=defaultdict(lambda: MAX_LIMIT))

    monkeypatch.setattr(admission, "next_in_turn", whatever_is_kept)

    with pytest.raises(AssertionError, match=r"runs that hold a slot beyond the limit\s+1  VIOLATED"):
        await meet_at_each_boundary(gated, "strict held@narrow+narrow", "admit", "change")


async def test_somebody_who_waits_for_one_that_ends_a_run_with_a_lane_locked_is_seen(gated: GatedStage) -> None:
    await gated.scene("scheduled")
    async with without(gated, "check_dependencies", "for update skip locked", "for update"):
        with pytest.raises(AssertionError, match="it waits for a lock instead of passing over"):
            await meet_at_each_boundary(gated, "scheduled", "expire", "resolve")
