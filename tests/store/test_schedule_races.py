"""Somebody changes a schedule while it fires or is staged: the other begins at each statement boundary of the first.

Whatever the order, nothing of it can be claimed once a pause, a deletion or a move was answered, nothing is lost by a
pause that was undone, and the checker finds nothing missing and nothing extra.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.lifecycle.stepping import Died, Gate, OnlyConnection, SteppedConnection
from tests.occurrences import NOTHING_WRONG, verdict

from mainspring.app.scheduling import requested
from mainspring.control.schedules import Schedules
from mainspring.model.actor import DEFAULT_TENANT, Actor
from mainspring.model.ids import lane_of_key
from mainspring.store import schedules
from mainspring.wiring.scheduler import lane_firer

from .scheduling import DROP_COMPARISON, HOUR, LANES, MINUTE, NEW_YEAR, remind, replace_in_function

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import datetime
    from uuid import UUID

    from mainspring import Mainspring
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

    Act = Callable[["Party"], Awaitable[Any]]

NAME = "raced"
TESTER = Actor(DEFAULT_TENANT, "tester")
LANE = lane_of_key(DEFAULT_TENANT, NAME, LANES)
INSTANT = NEW_YEAR + HOUR
SOON = timedelta(seconds=2)
HOURLY, ONCE = "0 * * * *", "2031-01-01T01:00:00Z"
MOST_BOUNDARIES = 60


class Party:
    """Somebody with a connection of their own, that can be stopped between any two statements."""

    def __init__(self, connection: Connection, template: Schedules, clock: FrozenClock) -> None:
        self.stepped = SteppedConnection(connection)
        self.pid = connection.get_server_pid()
        self._firer = lane_firer(clock)
        self.schedules = Schedules(
            database=cast("Database", OnlyConnection(self.stepped)),
            clock=clock,
            queries=template._queries,
            definitions=template._definitions,
            application=template._application,
            submissions=template._submissions,
            calendars=template._calendars,
            acts=template._acts,
        )

    async def fire(self) -> None:
        """As a scheduler does, two seconds ahead."""
        await self._firer.fire(cast("Connection", self.stepped), LANE, SOON.total_seconds())


async def fire(party: Party) -> None:
    await party.fire()


async def pause(party: Party) -> None:
    await party.schedules.pause(TESTER, NAME)


async def pause_and_resume(party: Party) -> None:
    await party.schedules.pause(TESTER, NAME)
    await party.schedules.resume(TESTER, NAME)


async def delete(party: Party) -> None:
    await party.schedules.delete(TESTER, NAME)


async def trigger(party: Party) -> None:
    await party.schedules.trigger(TESTER, NAME)


async def change_arguments(party: Party) -> None:
    await party.schedules.put(TESTER, requested(NAME, "remind", HOURLY, b'{"customer":2}'))


async def move(party: Party) -> None:
    await party.schedules.put(TESTER, requested(NAME, "remind", "30 * * * *", b'{"customer":2}'))


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


class Stage:
    """One schedule at a time, two parties, and somebody who looks."""

    def __init__(self, app: Mainspring, clock: FrozenClock, observer: Connection, parties: list[Party]) -> None:
        self._job = remind(app)
        self._clock = clock
        self.observer = observer
        self.first, self.second, self._later = parties
        self.title = ""

    async def set_up(self, when: str, *, is_staging: bool) -> None:
        """A schedule that is due, or will be within the horizon."""
        await self.observer.execute(
            """delete from ready; delete from later; delete from schedule; delete from schedule_version;
               delete from cursor; delete from occurrence; delete from skipped; delete from audit"""
        )
        await self._clock.set(INSTANT - SOON)
        await self._job.scheduled(NAME, when).create(1)
        if not is_staging:
            await self._clock.set(INSTANT)

    async def meet(self, first: Act, second: Act, boundary: int, *, dies: bool = False) -> bool:
        """Stop the first at a boundary, let the second act as far as it can, then both; False if there was none."""
        gate = self.first.stepped.gate = Gate(stop_at=boundary)
        self.title = f"{second.__name__} at boundary {boundary} of {first.__name__}"
        acts = [asyncio.ensure_future(_outcome(first(self.first)))]
        stopped = asyncio.ensure_future(gate.reached.wait())
        await asyncio.wait({stopped, acts[0]}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        acts.append(asyncio.ensure_future(second(self.second)))
        while not acts[1].done() and not await self._is_waiting(self.second):
            await asyncio.wait({acts[1]}, timeout=0.001)
        if dies:
            gate.die()
        gate.go_on()
        await asyncio.gather(*acts)
        self.title += f", after {gate.passed}"
        return gate.reached.is_set()

    async def _is_waiting(self, party: Party) -> bool:
        waiting = (
            "select exists (select from pg_stat_activity where pid = $1"
            " and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple'))"
        )
        return bool(await self.observer.fetchval(waiting, party.pid))

    async def customers(self) -> list[int]:
        """The instant comes, and schedulers have fired: whose runs of the schedule's instants are in line?"""
        await self._clock.set(INSTANT)
        await self._later.fire()
        rows = await self.observer.fetch("select payload from ready where headers ? 'occurrence' order by id")
        return [json.loads(row["payload"])["customer"] for row in rows]

    async def settle(self) -> None:
        """Whoever was paused goes on, so that everything has its outcome."""
        await self._clock.set(INSTANT + MINUTE)
        if await self.observer.fetchval("select state = 'paused' from schedule"):
            await self._later.schedules.resume(TESTER, NAME)


async def _outcome(act: Awaitable[Any]) -> Any:
    try:
        return await act
    except Died as error:
        return error


@pytest.fixture
async def stage(frozen_app: Mainspring, clock: FrozenClock, database: Database) -> AsyncIterator[Stage]:
    template = (await frozen_app.services()).schedules
    connections = [await database.connect(f"party {number}") for number in range(4)]
    yield Stage(frozen_app, clock, connections[0], [Party(each, template, clock) for each in connections[1:]])
    for each in connections:
        await each.close()


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
    for boundary in range(MOST_BOUNDARIES):
        await stage.set_up(when, is_staging=is_staging)
        has_met = await stage.meet(first, second, boundary)
        wanted = KINDS[name].ahead if is_staging else [1]
        assert await stage.customers() == wanted, stage.title
        await stage.settle()
        expected = [] if name == "move" and is_staging else [INSTANT]
        assert await verdict(stage.observer, {NAME: expected}) == NOTHING_WRONG, stage.title
        if not has_met:
            return
    pytest.fail(f"{first.__name__} has more than {MOST_BOUNDARIES} boundaries")


async def test_who_dies_half_way_through_a_change_has_changed_nothing(stage: Stage) -> None:
    boundary = 0
    while True:
        await stage.set_up(HOURLY, is_staging=True)
        if not await stage.meet(pause, fire, boundary, dies=True):
            return
        assert await stage.customers() == [1], stage.title
        assert await verdict(stage.observer, {NAME: [INSTANT]}) == NOTHING_WRONG, stage.title
        boundary += 1


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


async def runs_after_a_pause(stage: Stage) -> int:
    """The most that can be claimed of a schedule after its pause was answered, wherever it met a firing."""
    most, boundary, has_met = 0, 0, True
    while has_met:
        await stage.set_up(HOURLY, is_staging=True)
        has_met = await stage.meet(fire, pause, boundary)
        most, boundary = max(most, len(await stage.customers())), boundary + 1
    return most


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
