"""Two verbs act on one run at once, the second begun at each statement boundary of the first.

Whatever happens, the run is in one place or has one end, as if one verb had come after the other. In one half of
the cases the first actor goes on from the boundary, in the other half it dies there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound
from mainspring.model.lifecycle import State
from mainspring.store.leases import Settlement

from .moves import ACTING, PASSING_OVER, SETTLING, Expected, after, allows, orders, state_at
from .stepping import Died, Gate
from .verbs import VERBS, WAYS

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .verbs import Seen, Stage, Subject

CASES = [(source, first, second) for first in ACTING for source in WAYS if allows(first, source) for second in ACTING]
MOST_BOUNDARIES = 40


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
        meeting = await Meeting.of(stage, source, first, second, boundary, in_company=in_company)
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
        meeting = await Meeting.of(stage, source, first, second, boundary)
        meeting.gate.die()
        await meeting.end()
        if not meeting.gate.reached.is_set():
            return
        await meeting.check(_left_by_one_who_died(meeting, source, first, second))
    pytest.fail(f"{first} has more than {MOST_BOUNDARIES} boundaries")


def _left_by_one_who_died(meeting: Meeting, source: str, first: str, second: str) -> set[Expected]:
    """Only the second acted, unless the first had committed something before it died."""
    bases = {Expected(source)}
    if "commit" in meeting.gate.passed:
        bases.add(after(first, Expected(source), state_at(source)))
    results = {after(second, base, meeting.seen) for base in bases}
    if second in PASSING_OVER or (second in SETTLING and meeting.seen is not State.RUNNING):
        results |= bases
    return results


class Meeting:
    """One run, two actors, one boundary."""

    def __init__(self, stage: Stage, subject: Subject, before: Seen, gate: Gate, title: str) -> None:
        self._stage = stage
        self._subject = subject
        self._before = before
        self._claims = len(subject.claims)
        self._acts: list[asyncio.Future[Any]] = []
        self._title = title
        self.gate = gate
        self.seen: State | None = before.state

    @classmethod
    async def of(
        cls, stage: Stage, source: str, first: str, second: str, boundary: int, *, in_company: bool = False
    ) -> Meeting:
        """Set up, let the first act up to a boundary, and let the second act as far as it can."""
        subject = await stage.set_up(source, in_company=in_company)
        title = f"{second} at boundary {boundary} of {first}, from {source}"
        meeting = cls(stage, subject, await stage.look(subject), Gate(stop_at=boundary), title)
        try:
            await meeting._begin(first, second)
        except BaseException:
            meeting.gate.die()
            await meeting.end()
            raise
        return meeting

    async def _begin(self, first: str, second: str) -> None:
        self._stage.first.use(self.gate)
        self._act(VERBS[first](self._stage.first, self._subject, self.seen))
        stopped = asyncio.ensure_future(self.gate.reached.wait())
        await asyncio.wait({stopped, self._acts[0]}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        found = await self._stage.find(self._subject)
        self.seen = None if found is None else found.state
        self._act(VERBS[second](self._stage.second, self._subject, self.seen))
        has_to_wait = await self._second_has_to_wait()
        if second in PASSING_OVER and not (second == "expire" and self.seen is State.RUNNING):
            assert not has_to_wait, f"{self._title}: it waits for a lock instead of passing over"

    def _act(self, act: Awaitable[Any]) -> None:
        self._acts.append(asyncio.ensure_future(_outcome(act)))

    async def _second_has_to_wait(self) -> bool:
        """Wait until the second is done, or cannot go on before the first does."""
        while not self._acts[1].done():
            if await self._stage.waits_for_a_lock(self._stage.second):
                return True
            await asyncio.wait({self._acts[1]}, timeout=0.001)
        return False

    async def end(self) -> None:
        await asyncio.gather(*self._acts)

    async def check(self, possible: set[Expected]) -> None:
        now = await self._stage.find(self._subject)
        where = f"{self._title} (after {self.gate.passed})"
        visible = (None, False) if now is None else (now.state, now.is_cancelling)
        assert visible in {each.visible for each in possible}, f"{where}: {now}, not one of {possible}"
        assert self._settlements() <= 1, where
        has_fired, _ = await self._stage.next_occurrence(self._subject)
        assert has_fired == (now is not None), where
        if now is not None:
            assert now.carried == self._before.carried, where
            assert now.fence == self._before.fence + len(self._subject.claims) - self._claims, where
        report = await check(self._stage.observer, [] if now is None else [self._subject.run_id])
        assert report.violations == [], f"{where}:\n{report}"

    def _settlements(self) -> int:
        results = [act.result() for act in self._acts]
        return sum(each.accepted for each in results if isinstance(each, Settlement))


async def _outcome(act: Awaitable[Any]) -> Any:
    """What an act came to; being told that one came too late is a normal end."""
    try:
        return await act
    except (RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound, Died) as error:
        return error
