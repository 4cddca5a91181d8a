"""Two verbs act on one run at once, the second begun at each statement boundary of the first.

Whatever happens, the run is in one place or has one end, as if one verb had come after the other. In one half of
the cases the first actor goes on from the boundary, in the other half it dies there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.checker import check

from mainspring.model.lifecycle import State
from mainspring.store.leases import Settlement

from .meeting import MOST_BOUNDARIES, Meeting
from .moves import ACTING, PASSING_OVER, SETTLING, Expected, after, allows, orders, state_at
from .verbs import VERBS, WAYS

if TYPE_CHECKING:
    from .verbs import Seen, Stage, Subject

CASES = [(source, first, second) for first in ACTING for source in WAYS if allows(first, source) for second in ACTING]


@pytest.mark.invariant(3)
@pytest.mark.parametrize(("source", "first", "second"), CASES)
async def test_two_verbs_at_once_act_as_if_one_came_after_the_other(
    stage: Stage, source: str, first: str, second: str
) -> None:
    await meet_at_each_boundary(stage, source, first, second)


@pytest.mark.parametrize(("source", "first", "second"), [case for case in CASES if case[0] == State.RUNNING])
async def test_two_verbs_at_once_act_so_on_a_run_that_shares_its_lease(
    stage: Stage, source: str, first: str, second: str
) -> None:
    await meet_at_each_boundary(stage, source, first, second, in_company=True)


async def meet_at_each_boundary(
    stage: Stage, source: str, first: str, second: str, *, in_company: bool = False
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        meeting = await PlainMeeting.of(stage, source, first, second, boundary, in_company=in_company)
        meeting.gate.go_on()
        await meeting.end()
        await meeting.check(orders(source, first, second, meeting.seen))
        if not meeting.gate.reached.is_set():
            return  # this time, the second came after the COMMIT of the first
    pytest.fail(f"{first} has more than {MOST_BOUNDARIES} boundaries")


@pytest.mark.invariant(3)
@pytest.mark.parametrize(("source", "first", "second"), CASES)
async def test_one_who_dies_half_way_leaves_the_run_to_the_other(
    stage: Stage, source: str, first: str, second: str
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        meeting = await PlainMeeting.of(stage, source, first, second, boundary)
        meeting.gate.die()
        await meeting.end()
        if not meeting.gate.reached.is_set():
            return
        await meeting.check(_left_by_one_who_died(meeting, source, first, second))
    pytest.fail(f"{first} has more than {MOST_BOUNDARIES} boundaries")


def _left_by_one_who_died(meeting: PlainMeeting, source: str, first: str, second: str) -> set[Expected]:
    """Only the second acted, unless the first had committed something before it died."""
    bases = {Expected(source)}
    if "commit" in meeting.gate.passed:
        bases.add(after(first, Expected(source), state_at(source)))
    results = {after(second, base, meeting.seen) for base in bases}
    if second in PASSING_OVER or (second in SETTLING and meeting.seen is not State.RUNNING):
        results |= bases
    return results


class PlainMeeting(Meeting):
    """Two verbs on a run that nothing else depends on."""

    def __init__(self, stage: Stage, subject: Subject, before: Seen, boundary: int, title: str) -> None:
        super().__init__(stage, subject, before.state, boundary, title)
        self._before = before
        self._claims = len(subject.claims)

    @classmethod
    async def of(
        cls, stage: Stage, source: str, first: str, second: str, boundary: int, *, in_company: bool = False
    ) -> PlainMeeting:
        subject = await stage.set_up(source, in_company=in_company)
        meeting = cls(stage, subject, await stage.look(subject), boundary, f"{second} during {first}, from {source}")
        await meeting.begin(VERBS[first], VERBS[second])
        return meeting

    async def check(self, possible: set[Expected]) -> None:
        now = await self._stage.find(self._subject)
        where = f"{self._title} (after {self.gate.passed})"
        visible = (None, False) if now is None else (now.state, now.is_cancelling)
        assert visible in {each.visible for each in possible}, f"{where}: {now}, not one of {possible}"
        assert await self._settlements() <= 1, where
        has_fired, _ = await self._stage.next_occurrence(self._subject)
        assert has_fired == (now is not None), where
        if now is not None:
            assert now.carried == self._before.carried, where
            assert now.fence == self._before.fence + len(self._subject.claims) - self._claims, where
        report = await check(self._stage.observer, [] if now is None else [self._subject.run_id])
        assert report.violations == [], f"{where}:\n{report}"

    async def _settlements(self) -> int:
        return sum(each.accepted for each in await self.end() if isinstance(each, Settlement))
