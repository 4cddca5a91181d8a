"""A run ends while the next one of its schedule fires, or two schedulers fire: at each statement boundary.

Whatever the order, no more than one run of a schedule that keeps them apart may go on, and none of them is stranded.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.lifecycle.stepping import Died
from tests.occurrences import NOTHING_WRONG, instants, verdict

from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.store import admission, runs
from mainspring.store.connection import transaction

from .racing import HOURLY, INSTANT, LANE, NAME, TESTER, Party, Stage, change_arguments, delete, fire, pause
from .scheduling import HOUR, LANES, Firing

if TYPE_CHECKING:
    from typing import Any
    from uuid import UUID

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

RULES = ("skip", "buffer_one", "buffer_all", "cancel_other")
EARLIER = "select id from ready union all select id from held order by id limit 1"


async def end(party: Party) -> None:
    """Somebody cancels the earlier run."""
    connection: Any = party.stepped
    run_id: UUID = await connection.connection.fetchval(EARLIER)
    async with transaction(connection):
        await runs.cancel_waiting(connection, LANE, [run_id], tenant_id=TESTER.tenant, actor="tester", reason="")


async def release(stage: Stage) -> None:
    """As the keeper does, whatever hint got lost."""
    keeper = Gatekeeper(lanes=LANES, clock=stage.clock)
    while await keeper.step(stage.observer) == 0.0:
        pass


async def one_run_in_line(stage: Stage, rule: str, **options: Any) -> None:
    """And the next instant is due."""
    await stage.clear()
    await stage.observer.execute("delete from held; delete from schedule_run; delete from attempt")
    await stage.job.scheduled(NAME, HOURLY, overlap=rule, **options).create(1)
    await stage.clock.set(INSTANT)
    await stage.later.fire(LANE)
    await stage.clock.set(INSTANT + HOUR)


async def is_right(stage: Stage) -> None:
    """One may go on, the others wait for it; and the ledger knows of every instant."""
    await release(stage)
    in_line = await stage.observer.fetchval("select count(*) from ready")
    waiting = await stage.observer.fetchval("select count(*) from held")
    assert in_line <= 1
    assert in_line == 1 or not waiting, "who waits is stranded"
    noted = await stage.observer.fetchval("select count(*) from schedule_run")
    assert noted == in_line + waiting
    expected = {NAME: instants(HOURLY, after=INSTANT - HOUR, until=INSTANT + HOUR)}
    assert await verdict(stage.observer, expected) == NOTHING_WRONG


@pytest.mark.parametrize("rule", RULES)
async def test_a_run_that_ends_while_the_next_one_fires_lets_it_go(stage: Stage, rule: str) -> None:
    for first, second in ((end, fire), (fire, end)):
        async for meeting in stage.meetings(first, second, partial(one_run_in_line, stage, rule)):
            assert not meeting.refusals, meeting.title
            await stage.later.fire(LANE)  # what was passed over
            await is_right(stage)


@pytest.mark.parametrize("rule", RULES)
async def test_two_schedulers_at_once_keep_runs_apart(stage: Stage, rule: str) -> None:
    async for meeting in stage.meetings(fire, fire, partial(one_run_in_line, stage, rule)):
        assert not meeting.refusals, meeting.title
        await stage.later.fire(LANE)
        await is_right(stage)


@pytest.mark.parametrize("rule", RULES)
async def test_a_scheduler_that_dies_in_the_middle_leaves_nothing_half_done(stage: Stage, rule: str) -> None:
    async for meeting in stage.meetings(fire, end, partial(one_run_in_line, stage, rule), dies=True):
        assert meeting.first is None or isinstance(meeting.first, Died)
        await stage.later.fire(LANE)
        await is_right(stage)


@pytest.mark.parametrize("act", [pause, change_arguments, delete])
@pytest.mark.parametrize("rule", ["skip", "buffer_all", "cancel_other"])
async def test_a_change_that_meets_a_firing_comes_before_or_after_it(stage: Stage, rule: str, act: Any) -> None:
    for first, second in ((act, fire), (fire, act)):
        async for meeting in stage.meetings(first, second, partial(one_run_in_line, stage, rule)):
            assert not meeting.refusals, meeting.title
            await release(stage)
            assert await stage.observer.fetchval("select count(*) from ready") == 1, meeting.title


async def admit(party: Party) -> None:
    """Whoever is told of the gate lets the next one pass."""
    connection: Any = party.stepped
    gates = {row["gate"] for row in await connection.connection.fetch("select gate from held where gate is not null")}
    await admission.admit(connection, gates, LANES)


async def end_and_fire(party: Party) -> None:
    """Two instants, one after the other."""
    await end(party)
    await party.fire(LANE)
    await party.fire(LANE)


async def one_waits_for_nobody(stage: Stage) -> None:
    """And the next two instants are due."""
    await one_run_in_line(stage, "buffer_all", catch_up="all")
    await stage.later.fire(LANE)
    await end(stage.later)
    await stage.clock.set(INSTANT + 3 * HOUR)


async def test_who_begins_to_wait_while_somebody_counts_is_not_released_beside_the_one_before_it(stage: Stage) -> None:
    """The one that waited is cancelled, and two more are fired: the first goes in line, and the second waits for it."""
    async for meeting in stage.meetings(admit, end_and_fire, partial(one_waits_for_nobody, stage)):
        assert not meeting.refusals, meeting.title
        assert await stage.observer.fetchval("select count(*) from ready") <= 1, meeting.title


async def test_ten_schedulers_keep_a_thousand_schedules_apart(
    frozen_app: Mainspring, database: Database, connection: Connection, clock: FrozenClock
) -> None:
    @frozen_app.job(name="remind")
    async def remind(customer: int = 0) -> None: ...

    await frozen_app.schedules.create_many(
        [remind.scheduled(f"s{n}", HOURLY, overlap="skip").request(n) for n in range(1_000)]
    )
    connections = [await database.connect(f"scheduler {n}") for n in range(10)]
    for _ in range(3):
        await clock.advance(HOUR)
        await asyncio.gather(*(Firing(each, clock).fire() for each in connections))
        await Firing(connection, clock).fire()
    for each in connections:
        await each.close()

    assert await connection.fetchval("select count(*) from ready") == 1_000
    assert await connection.fetchval("select count(*) from skipped where reason = 'overlap'") == 2_000


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


async def replace_in(connection: Connection, function: str, part: str, replacement: str) -> None:
    text = await connection.fetchval("select pg_get_functiondef(('mainspring.' || $1)::regproc)", function)
    assert part in text
    await connection.execute(text.replace(part, replacement))


async def test_without_the_look_at_what_has_not_ended_runs_overlap(stage: Stage) -> None:
    await replace_in(stage.observer, "decide_overlaps", "and not schedule_run.is_dead", "and false")
    await one_run_in_line(stage, "skip")
    await stage.later.fire(LANE)

    assert await stage.observer.fetchval("select count(*) from ready") == 2


async def test_without_the_word_at_its_end_a_run_is_waited_for_for_ever(stage: Stage) -> None:
    await replace_in(stage.observer, "end_runs", "perform end_schedule_runs(end_runs.lane, end_runs.runs);", "")
    await one_run_in_line(stage, "buffer_all")
    await stage.later.fire(LANE)
    await end(stage.later)
    await release(stage)

    assert await stage.observer.fetchval("select count(*) from ready") == 0
