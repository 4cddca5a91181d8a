"""The database's clock is set back or forward, or a host's clock is wrong: nothing is delayed, early, lost or twice."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.occurrences import NOTHING_WRONG, Instant, fired, instants, verdict
from tests.unit.hands import HandClock
from tests.waiting import PATIENCE

from mainspring import State
from mainspring.keeper.reranker import Reranker
from mainspring.store import health, schedule_firing
from mainspring.testing import FrozenClock, run_until_idle

from .scheduling import HOUR, LANES, MINUTE, NEW_YEAR, Firing, outcomes, remind
from .working import working

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection

SOON = timedelta(seconds=2)


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


# ── back, with runs in line ─────────────────────────────────────────────────────────────────────────────────────


async def test_runs_that_are_in_line_are_not_delayed_by_a_clock_that_is_set_back(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    handles = await remind(frozen_app).submit_many([{"customer": number} for number in range(10)])
    await clock.advance(-HOUR)

    assert not await run_until_idle(frozen_app), "the control: nobody puts them in line anew"
    async with working(frozen_app, keeper=True):
        for handle in handles:
            await handle.result(PATIENCE)


async def test_runs_that_are_put_in_line_anew_keep_their_order(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    job = remind(frozen_app)
    for number in range(20):
        await job.submit(number)
        await clock.advance(1)
    order = "select lane, array_agg(id order by rank) from ready group by lane order by lane"
    before = await connection.fetch(order)
    await clock.advance(-HOUR)
    await Reranker(lanes=LANES, clock=clock).step(connection)
    assert await connection.fetch(order) == before
    assert await connection.fetchval("select bool_and(rank <= rank_bound()) from ready")


async def test_what_is_staged_waits_for_its_instant_however_the_clock_is_set_back(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    job = remind(frozen_app)
    await job.scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR - SOON)
    await firing.fire(horizon=2.0)
    plain = await job.submit(2)
    await clock.advance(-30 * MINUTE)

    await Reranker(lanes=LANES, clock=clock).step(connection)
    await run_until_idle(frozen_app)
    assert (await frozen_app.runs.find(plain.id)).state is State.SUCCEEDED
    assert [run.state for run in (await frozen_app.runs.list(state="scheduled")).runs] == [State.SCHEDULED]
    await clock.set(NEW_YEAR + HOUR)
    await run_until_idle(frozen_app)
    assert (await frozen_app.runs.list(state="scheduled")).runs == []


@pytest.mark.parametrize("back", [timedelta(seconds=10), HOUR], ids=str)
async def test_a_step_back_is_noticed_whatever_its_size(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch, back: timedelta
) -> None:
    """One that is small hides among what is staged for a herd: it is looked for when the clock was seen to step."""
    reranker = Reranker(lanes=LANES, clock=HandClock())

    async def micros(_: object) -> int:
        return clock.micros()

    monkeypatch.setattr(health, "database_micros", micros)
    await reranker.step(connection)
    await remind(frozen_app).submit(1)
    await clock.advance(-back)
    await reranker.step(connection)
    assert await connection.fetchval("select rank <= rank_bound() from ready")


# ── back and forward, with schedules ────────────────────────────────────────────────────────────────────────────

EVERY_TEN_MINUTES = "*/10 * * * *"


async def forget_place(connection: Connection) -> None:
    """The control: a scheduler that goes on from what the clock says, and not from where it was."""
    await connection.execute("update cursor set nominal_at = date_trunc('hour', clock_now()), due_at = clock_now()")


@pytest.mark.invariant(2)
@pytest.mark.parametrize(
    ("without_cursor", "without_ledger"), [(False, False), (True, False), (False, True), (True, True)]
)
async def test_nothing_fires_twice_after_the_clock_was_set_back(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    firing: Firing,
    *,
    without_cursor: bool,
    without_ledger: bool,
) -> None:
    """By the cursor, and by the ledger alone; without both, things do fire twice."""
    await remind(frozen_app).scheduled("often", EVERY_TEN_MINUTES, catch_up="all").create(1)
    if without_ledger:
        await connection.execute("alter table occurrence drop constraint occurrence_pkey")
    for _ in range(12):
        await clock.advance(10 * MINUTE)
        await firing.fire(horizon=2.0)
    await clock.advance(-HOUR)
    if without_cursor:
        await forget_place(connection)
    for _ in range(8):
        await firing.fire(horizon=2.0)
        await clock.advance(10 * MINUTE)
    await firing.fire()
    found = await verdict(connection, {"often": instants(EVERY_TEN_MINUTES, after=NEW_YEAR, until=clock.at)})
    assert (found == NOTHING_WRONG) != (without_cursor and without_ledger), found


@pytest.mark.parametrize("act", ["pause and resume", "edit"])
async def test_a_change_after_the_clock_was_set_back_repeats_nothing(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, act: str
) -> None:
    await remind(frozen_app).scheduled("often", EVERY_TEN_MINUTES).create(1)
    for _ in range(6):
        await clock.advance(10 * MINUTE)
        await firing.fire()
    await clock.advance(1)
    await run_until_idle(frozen_app)
    await clock.advance(-30 * MINUTE)
    if act == "edit":
        await frozen_app.schedules.put("often", "remind", EVERY_TEN_MINUTES, {"customer": 2})
    else:
        await frozen_app.schedules.pause("often")
        await frozen_app.schedules.resume("often")
    for _ in range(4):
        await clock.advance(10 * MINUTE)
        await firing.fire()
    expected = instants(EVERY_TEN_MINUTES, after=NEW_YEAR, until=clock.at)
    assert await verdict(connection, {"often": expected}) == NOTHING_WRONG


@pytest.mark.parametrize(("rule", "runs"), [("latest", 1), ("earliest", 1), ("all", 6), ("none", 0)])
async def test_a_clock_that_is_set_forward_is_caught_up_with_by_the_rules(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, rule: str, runs: int
) -> None:
    await remind(frozen_app).scheduled("often", EVERY_TEN_MINUTES, catch_up=rule).create(1)
    await clock.advance(65 * MINUTE)
    await firing.fire()
    assert len((await fired(connection)).get("often", [])) == runs
    await clock.advance(-HOUR)
    assert await firing.fire() == 0, "what was decided stays so when the clock is corrected again"
    await clock.set(NEW_YEAR + 70 * MINUTE)
    await firing.fire()
    expected = instants(EVERY_TEN_MINUTES, after=NEW_YEAR, until=clock.at)
    assert await verdict(connection, {"often": expected}) == NOTHING_WRONG
    assert (await outcomes(frozen_app, "often"))[-1] == (clock.at, clock.at, "fired")


async def test_a_scheduler_that_goes_by_the_clock_would_pass_over_an_hour_that_it_was_set_forward(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    """The control: from what the clock says, and not from where it was."""
    await remind(frozen_app).scheduled("often", EVERY_TEN_MINUTES, catch_up="all").create(1)
    await clock.advance(65 * MINUTE)
    await forget_place(connection)
    await firing.fire()
    expected = instants(EVERY_TEN_MINUTES, after=NEW_YEAR, until=clock.at)
    found = await verdict(connection, {"often": expected})
    assert found.missing == [Instant("often", at) for at in expected[:-1]]


# ── a host's clock ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(10)
@pytest.mark.parametrize("by_the_host", [False, True], ids=["", "control"])
@pytest.mark.parametrize("wrong_by", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_a_host_whose_clock_is_wrong_fires_nothing_else(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    wrong_by: timedelta,
    *,
    by_the_host: bool,
) -> None:
    """The database says what is due. The control goes by the clock of its host."""
    await remind(frozen_app).scheduled("often", EVERY_TEN_MINUTES).create(1)
    wrong = FrozenClock(clock.at + wrong_by)
    firing = Firing(connection, wrong)
    for _ in range(6):
        await clock.advance(10 * MINUTE)
        await wrong.advance(10 * MINUTE)
        if by_the_host:
            text = schedule_firing.DUE.text.replace("clock_now()", f"timestamptz '{wrong.at.isoformat()}'")
            monkeypatch.setattr(schedule_firing.DUE, "text", text)
        await firing.fire()
        monkeypatch.undo()
    expected = instants(EVERY_TEN_MINUTES, after=NEW_YEAR, until=clock.at)
    assert (await verdict(connection, {"often": expected}) == NOTHING_WRONG) != by_the_host
