"""Whoever withdraws the runs of a schedule finds them wherever someone puts them at that moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import RunNotFound
from mainspring.model.lifecycle import State

from .moves import POSTPONED, STAGED
from .stepping import Gate
from .verbs import TESTER, VERBS

if TYPE_CHECKING:
    from .verbs import Stage, Subject

MOST_BOUNDARIES = 20


async def make_urgent(stage: Stage, subject: Subject) -> None:
    """It is written anew, in `later`: when it is due does not change, and that is to come."""
    with contextlib.suppress(RunNotFound):  # it was withdrawn first
        await stage.first.runs.change(TESTER, subject.run_id, priority=0)


@pytest.mark.invariant(3)
@pytest.mark.parametrize("spot", [STAGED, POSTPONED])
async def test_a_run_that_is_changed_at_that_moment_is_withdrawn_all_the_same(stage: Stage, spot: str) -> None:
    for boundary in range(MOST_BOUNDARIES):
        subject, gate = await stage.set_up(spot), Gate(stop_at=boundary)
        stage.first.use(gate)
        changing = asyncio.ensure_future(make_urgent(stage, subject))
        stopped = asyncio.ensure_future(gate.reached.wait())
        await asyncio.wait({stopped, changing}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()

        withdrawing = asyncio.ensure_future(VERBS["withdraw"](stage.second, subject, State.SCHEDULED))
        while not (withdrawing.done() or await stage.waits_for_a_lock(stage.second)):
            await asyncio.wait({withdrawing}, timeout=0.001)
        gate.go_on()
        await asyncio.gather(changing, withdrawing)

        assert await stage.find(subject) is None, f"after {gate.passed}"
        assert (await stage.next_occurrence(subject))[0] is False
        if not gate.reached.is_set():
            return
    pytest.fail(f"a change has more than {MOST_BOUNDARIES} boundaries")
