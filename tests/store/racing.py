"""Two who act on schedules: the second begins at each statement boundary of the first, and then both have their way.

    async for meeting in stage.meetings(pause, fire, partial(stage.set_up, HOURLY, is_staging=True)):
        assert await stage.customers() == [], meeting.title

Who acts is a `Party`: the services of an application over one connection.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from tests.lifecycle.stepping import Died, Gate, OnlyConnection, SteppedConnection
from tests.occurrences import IS_OF_INSTANT

from mainspring.control.backfilling import Backfilling
from mainspring.control.backfills import Backfills
from mainspring.control.operations import Operations
from mainspring.control.schedule_batches import ScheduleBatches
from mainspring.control.schedule_replacing import ScheduleReplacer
from mainspring.control.schedule_transactions import ScheduleTransactions
from mainspring.control.schedules import Schedules
from mainspring.errors import MainspringError
from mainspring.model.actor import DEFAULT_TENANT, Actor
from mainspring.model.ids import lane_of_key
from mainspring.scheduler.templates import Templates
from mainspring.wiring.scheduler import lane_firer

from .scheduling import HOUR, LANES, MINUTE, NEW_YEAR, remind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock
    from mainspring.wiring.services import Services

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

    def __init__(self, connection: Connection, services: Services, clock: FrozenClock) -> None:
        self.stepped = SteppedConnection(connection)
        self.pid = connection.get_server_pid()
        self._firer = lane_firer(clock)
        database, template = cast("Database", OnlyConnection(self.stepped)), services.schedules
        common: dict[str, Any] = {"database": database, "clock": clock, "queries": template._queries}
        transactions = ScheduleTransactions(database=database, definitions=template._definitions)
        self.schedules = Schedules(
            **common,
            definitions=template._definitions,
            application=template._application,
            submissions=template._submissions,
            calendars=template._calendars,
            acts=template._acts,
            transactions=transactions,
        )
        self.batches = ScheduleBatches(
            clock=clock,
            queries=template._queries,
            schedules=self.schedules,
            calendars=template._calendars,
            replacer=ScheduleReplacer(acts=template._acts),
            transactions=transactions,
        )
        backfilling = partial(Backfilling, **common, reruns=services.reruns, templates=Templates(clock))
        self.operations = Operations(
            database=database, lists=services.lists, reruns=services.reruns, backfilling=backfilling
        )
        self.backfills = Backfills(database=database, queries=template._queries, operations=self.operations)

    async def fire(self, *lanes: int) -> None:
        """As a scheduler does, two seconds ahead."""
        for lane in lanes:
            await self._firer.fire(cast("Connection", self.stepped), lane, SOON.total_seconds(), packs=True)


async def fire(party: Party) -> None:
    await party.fire(LANE)


async def pause(party: Party) -> None:
    await party.schedules.pause(TESTER, NAME)


async def delete(party: Party) -> None:
    await party.schedules.delete(TESTER, NAME)


async def change_arguments(party: Party) -> None:
    await party.schedules.update(TESTER, NAME, arguments={"customer": 2})


class Meeting(NamedTuple):
    """How two acts that met have ended: with what each answered, or the error by which it was refused."""

    title: str
    first: Any
    second: Any
    seen: Any  # what there was to see when the second was answered and the first still waited; None if it was not

    @property
    def refusals(self) -> list[str]:
        return [each.code for each in (self.first, self.second) if isinstance(each, MainspringError)]


class Stage:
    """Schedules of one job, two parties, and somebody who looks."""

    def __init__(self, app: Mainspring, clock: FrozenClock, observer: Connection, parties: list[Party]) -> None:
        self.app = app
        self.clock = clock
        self.observer = observer
        self.job = remind(app)
        self._first, self._second, self.later = parties

    async def clear(self) -> None:
        """Nothing is there, and an instant is two seconds ahead."""
        await self.observer.execute(
            """delete from ready; delete from later; delete from schedule; delete from schedule_version;
               delete from cursor; delete from occurrence; delete from occurrence_past; delete from skipped;
               delete from operation; delete from audit"""
        )
        await self.clock.set(INSTANT - SOON)

    async def set_up(self, when: str, *, is_staging: bool, **settings: Any) -> None:
        """A schedule that is due, or will be within the horizon."""
        await self.clear()
        await self.job.scheduled(NAME, when, **settings).create(1)
        if not is_staging:
            await self.clock.set(INSTANT)

    async def meetings(
        self,
        first: Act,
        second: Act,
        prepare: Callable[[], Awaitable[Any]],
        *,
        dies: bool = False,
        look: Callable[[], Awaitable[Any]] | None = None,
    ) -> AsyncIterator[Meeting]:
        """At each boundary of the first; in the end once when it is through. `dies`: the first does, where it stopped.

        What `look` sees is asked for if the second was answered while the first was stopped.
        """
        for boundary in range(MOST_BOUNDARIES):
            await prepare()
            gate = self._first.stepped.gate = Gate(stop_at=boundary)
            yield await self._meet(first, second, gate, dies=dies, look=look)
            if not gate.reached.is_set():
                return
        pytest.fail(f"{first.__name__} has more than {MOST_BOUNDARIES} boundaries")

    async def _meet(
        self, first: Act, second: Act, gate: Gate, *, dies: bool, look: Callable[[], Awaitable[Any]] | None
    ) -> Meeting:
        """Stop the first at a boundary, let the second act as far as it can, then both."""
        acts = [asyncio.ensure_future(_outcome(first(self._first)))]
        stopped = asyncio.ensure_future(gate.reached.wait())
        await asyncio.wait({stopped, acts[0]}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        acts.append(asyncio.ensure_future(_outcome(second(self._second))))
        while not acts[1].done() and not await self._is_waiting(self._second):
            await asyncio.wait({acts[1]}, timeout=0.001)
        seen = await look() if look is not None and acts[1].done() and not acts[0].done() else None
        if dies:
            gate.die()
        gate.go_on()
        title = f"{second.__name__} at boundary {len(gate.passed)} of {first.__name__}"
        answers = await asyncio.gather(*acts)
        return Meeting(f"{title}: {answers}, after {gate.passed}", answers[0], answers[1], seen)

    async def _is_waiting(self, party: Party) -> bool:
        waiting = (
            "select exists (select from pg_stat_activity where pid = $1"
            " and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple'))"
        )
        return bool(await self.observer.fetchval(waiting, party.pid))

    async def customers(self) -> list[int]:
        """The instant comes, and schedulers have fired: whose runs of the schedule's instants are in line?"""
        await self.clock.set(max(INSTANT, self.clock.at))
        await self.later.fire(LANE)
        rows = await self.observer.fetch(f"select payload from ready where {IS_OF_INSTANT} order by id")  # noqa: S608
        return [json.loads(row["payload"])["customer"] for row in rows]

    async def settle(self) -> None:
        """Whoever was paused goes on, so that everything has its outcome."""
        await self.clock.set(INSTANT + MINUTE)
        if await self.observer.fetchval("select state = 'paused' from schedule"):
            await self.later.schedules.resume(TESTER, NAME)


async def _outcome(act: Awaitable[Any]) -> Any:
    try:
        return await act
    except (Died, MainspringError) as error:
        return error
