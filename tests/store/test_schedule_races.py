"""Somebody changes a schedule while it fires or is staged: the other begins at each statement boundary of the first.

Whatever the order, nothing of it can be claimed once a pause, a deletion or a move was answered, nothing is lost by a
pause that was undone, and the checker finds nothing missing and nothing extra.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.lifecycle.stepping import Died
from tests.occurrences import NOTHING_WRONG, verdict

from mainspring.control import schedule_acts
from mainspring.control.schedule_requests import requested
from mainspring.store import schedules
from mainspring.store.statements import load

from .racing import HOURLY, INSTANT, LANE, NAME, ONCE, TESTER, Party, Stage, change_arguments, delete, fire, pause
from .scheduling import DAY, DROP_COMPARISON, NEW_YEAR, replace_in_function

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

    from .racing import Act


async def pause_and_resume(party: Party) -> None:
    await party.schedules.pause(TESTER, NAME)
    await party.schedules.resume(TESTER, NAME)


async def pause_for_a_day(party: Party) -> None:
    await party.schedules.pause(TESTER, NAME, until=INSTANT + DAY)


async def trigger(party: Party) -> None:
    await party.schedules.trigger(TESTER, NAME)


async def move(party: Party) -> None:
    await party.schedules.put(TESTER, requested(NAME, "remind", "30 * * * *", b'{"customer":2}', now=NEW_YEAR))


@dataclass(frozen=True)
class Kind:
    """How a schedule is changed, whose run an instant becomes that has not come yet, and schedules to try it on."""

    act: Act
    ahead: list[int]
    schedules: tuple[str, ...] = (HOURLY,)


KINDS = {
    "pause": Kind(pause, [], (HOURLY, ONCE)),
    "pause and resume": Kind(pause_and_resume, [1]),
    "delete": Kind(delete, [], (HOURLY, ONCE)),
    "trigger": Kind(trigger, [1]),
    "change arguments": Kind(change_arguments, [2]),
    "move": Kind(move, []),
}


@pytest.mark.invariant(2)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("is_staging", [True, False], ids=["staging", "firing"])
async def test_a_change_that_meets_a_firing_comes_before_or_after_it(
    stage: Stage, name: str, *, is_staging: bool
) -> None:
    act = KINDS[name].act
    for when in KINDS[name].schedules:
        for first, second in ((act, fire), (fire, act)):
            await _meet_at_each_boundary(stage, name, when, first, second, is_staging=is_staging)


async def _meet_at_each_boundary(
    stage: Stage, name: str, when: str, first: Act, second: Act, *, is_staging: bool
) -> None:
    async for meeting in stage.meetings(first, second, partial(stage.set_up, when, is_staging=is_staging)):
        wanted = KINDS[name].ahead if is_staging else [1]
        assert (meeting.refusals, await stage.customers()) == ([], wanted), meeting.title
        await stage.settle()
        expected = [] if name == "move" and is_staging else [INSTANT]
        assert await verdict(stage.observer, {NAME: expected}) == NOTHING_WRONG, meeting.title


async def test_who_dies_half_way_through_a_change_has_changed_nothing(stage: Stage) -> None:
    async for meeting in stage.meetings(pause, fire, partial(stage.set_up, HOURLY, is_staging=True), dies=True):
        assert await stage.customers() == ([1] if isinstance(meeting.first, Died) else []), meeting.title
        await stage.settle()
        assert await verdict(stage.observer, {NAME: [INSTANT]}) == NOTHING_WRONG, meeting.title


# ── two changes ─────────────────────────────────────────────────────────────────────────────────────────────────


async def stage_a_run(stage: Stage) -> None:
    await stage.set_up(HOURLY, is_staging=True)
    await stage.later.fire(LANE)


async def tag(party: Party) -> None:
    await party.schedules.update(TESTER, NAME, tags=["b"])


async def tag_version_1(party: Party) -> None:
    await party.schedules.update(TESTER, NAME, tags=["b"], expected_version=1)


async def change_arguments_of_version_1(party: Party) -> None:
    await party.schedules.update(TESTER, NAME, arguments={"customer": 2}, expected_version=1)


async def contents(stage: Stage) -> list[tuple[str, int, list[str] | None, bytes]]:
    """State, version, tags and arguments of what there is."""
    rows = await stage.observer.fetch("select state::text, version, tags, payload from schedule")
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("act", [pause, delete])
async def test_an_update_undoes_neither_a_pause_nor_a_deletion_that_it_meets(stage: Stage, act: Act) -> None:
    wanted = [("paused", 2, None, b'{"customer":2}')] if act is pause else []
    for first, second in ((change_arguments, act), (act, change_arguments)):
        async for meeting in stage.meetings(first, second, partial(stage_a_run, stage)):
            assert set(meeting.refusals) <= ({"schedule-not-found"} if act is delete else set()), meeting.title
            assert (await stage.customers(), await contents(stage)) == ([], wanted), meeting.title
            await stage.settle()
            assert await verdict(stage.observer, {NAME: [INSTANT]}) == NOTHING_WRONG, meeting.title


async def test_two_updates_that_meet_both_happen(stage: Stage) -> None:
    async for meeting in stage.meetings(tag, change_arguments, partial(stage_a_run, stage)):
        assert (meeting.refusals, await stage.customers()) == ([], [2]), meeting.title
        assert await contents(stage) == [("active", 3, ["b"], b'{"customer":2}')], meeting.title


async def test_of_two_updates_that_expect_the_same_version_one_happens(stage: Stage) -> None:
    async for meeting in stage.meetings(tag_version_1, change_arguments_of_version_1, partial(stage_a_run, stage)):
        assert meeting.refusals == ["schedule-version-conflict"], meeting.title
        is_tagged = meeting.first is None
        content = (["b"], b'{"customer":1}') if is_tagged else (None, b'{"customer":2}')
        assert await contents(stage) == [("active", 2, *content)], meeting.title
        assert await stage.customers() == [1 if is_tagged else 2], meeting.title


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


async def runs_after_a_pause(stage: Stage) -> int:
    """The most that can be claimed of a schedule after its pause was answered, wherever it met a firing."""
    meetings = stage.meetings(fire, pause, partial(stage.set_up, HOURLY, is_staging=True))
    return max([len(await stage.customers()) async for _ in meetings])


@pytest.mark.parametrize("mechanism", ["", "withdrawal", "comparison"])
async def test_a_pause_rests_on_taking_back_and_on_comparing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """The control: without one of them, something fires after a pause was answered."""
    if mechanism == "withdrawal":
        monkeypatch.setattr(schedules, "withdraw", _withdraw_nothing)
    if mechanism == "comparison":
        await replace_in_function(stage.observer, *DROP_COMPARISON)
    assert await runs_after_a_pause(stage) == (1 if mechanism else 0)


async def _withdraw_nothing(connection: Connection, lane: int, schedule_id: UUID, since: datetime) -> Record | None:
    return await schedules.lock_cursor(connection, lane, schedule_id)


async def test_an_update_that_locks_nothing_would_undo_a_pause(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without the lock, and without the constraint that would refuse it."""
    await stage.observer.execute("alter table schedule drop constraint a_pause_says_who")
    lock = load("schedules/lock")
    monkeypatch.setattr(lock, "text", lock.text.replace("for update", ""))
    meetings = stage.meetings(change_arguments, pause_for_a_day, partial(stage_a_run, stage))
    assert any([await stage.customers() async for _ in meetings])


async def test_an_update_that_compares_no_version_would_be_lost(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(schedule_acts, "_check_version", lambda *_: None)
    meetings = stage.meetings(tag, change_arguments, partial(stage_a_run, stage))
    found = [(await contents(stage))[0][2:] async for _ in meetings]
    assert (None, b'{"customer":2}') in found
