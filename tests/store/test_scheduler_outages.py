"""A scheduler whose answers get lost, and whose database goes away: it comes back by itself, and repeats nothing."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.occurrences import NOTHING_WRONG, Instant, Verdict, fired, instants, verdict
from tests.system.proxy import COMMIT, Mode, Proxy
from tests.waiting import until

from mainspring import Mainspring
from mainspring.clock import SystemClock
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of_key
from mainspring.scheduler.scheduler import FiringLoop
from mainspring.store import schedule_firing
from mainspring.wiring.scheduler import LOOPS, scheduler

from .scheduling import HOUR, LANES, MINUTE, NEW_YEAR, remind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.system.replicas import Server

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

NAMES = [f"hourly-{number}" for number in range(10)]
VICTIM, LANE = NAMES[0], lane_of_key(DEFAULT_TENANT, NAMES[0], LANES)
ELSEWHERE = [name for name in NAMES if lane_of_key(DEFAULT_TENANT, name, LANES) != LANE]
LOOP = f"scheduler {LANE % LOOPS}"  # the connection that fires the victim
Running = asyncio.Task[None]


@pytest.fixture
async def broken_operations() -> None:
    """asyncpg leaves behind futures of broken operations that nobody awaits; they are not what is tested here."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)


@pytest.fixture
async def proxy(url: str, broken_operations: None) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy


@asynccontextmanager
async def scheduling(url: str, clock: Clock) -> AsyncIterator[Running]:
    """A scheduler in this process."""
    app = Mainspring(url, clock=clock)
    running = asyncio.create_task(scheduler((await app.services()).store, clock).run())
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait([running])
        await app.close()


async def until_fired(connection: Connection, clock: FrozenClock, names: list[str]) -> None:
    async def have_fired() -> bool:
        found = await fired(connection)
        return all(clock.at in found.get(name, []) for name in names)

    await until(have_fired)


@pytest.mark.invariant(2)
@pytest.mark.parametrize("mode", [Mode.SWALLOW, Mode.HOLD], ids=["answer lost", "never arrived"])
@pytest.mark.parametrize("act", ["firing", "resuming"])
async def test_an_act_whose_answer_is_lost_happens_once(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, proxy: Proxy, mode: Mode, act: str
) -> None:
    await lose_an_answer(frozen_app, clock, connection, proxy, mode, act, NAMES)
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    assert await verdict(connection, dict.fromkeys(NAMES, expected)) == NOTHING_WRONG


async def test_a_scheduler_that_keeps_its_place_in_its_memory_would_forget_what_never_arrived(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    due, seen = schedule_firing.due, set[Any]()

    async def due_and_not_seen(*question: Any) -> list[Any]:
        rows = [row for row in await due(*question) if (row["schedule_id"], row["nominal_at"]) not in seen]
        seen.update((row["schedule_id"], row["nominal_at"]) for row in rows)
        return rows

    monkeypatch.setattr(schedule_firing, "due", due_and_not_seen)
    await lose_an_answer(frozen_app, clock, connection, proxy, Mode.HOLD, "firing", ELSEWHERE)
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    found = await verdict(connection, dict.fromkeys(NAMES, expected))
    assert Instant(VICTIM, NEW_YEAR + 2 * HOUR) in found.missing


async def lose_an_answer(
    app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    proxy: Proxy,
    mode: Mode,
    act: str,
    recovering: list[str],
) -> None:
    """At the second hour of three; in the end, those that are expected to recover have fired at each."""
    job = remind(app)
    made = [await job.scheduled(name, "0 * * * *").create(1) for name in NAMES]
    async with scheduling(proxy.url, clock):
        await clock.set(NEW_YEAR + HOUR)
        await until_fired(connection, clock, NAMES)
        if act == "resuming":
            await app.schedules.pause(VICTIM, until=NEW_YEAR + 2 * HOUR - MINUTE)
        proxy.set_mode_at(COMMIT if act == "resuming" else made[0].id.bytes, mode, LOOP)
        await clock.set(NEW_YEAR + 2 * HOUR)
        await until(lambda: proxy.is_losing(LOOP))
        if mode is Mode.SWALLOW and act == "firing":
            await until_fired(connection, clock, [VICTIM])
        proxy.cut(LOOP)
        await until_fired(connection, clock, recovering)
        await clock.set(NEW_YEAR + 3 * HOUR)
        await until_fired(connection, clock, recovering)


@pytest.mark.parametrize("away", [1, 3], ids=["for a moment", "across instants"])
async def test_a_scheduler_comes_back_and_catches_up_when_the_database_was_away(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, proxy: Proxy, away: int
) -> None:
    job = remind(frozen_app)
    for rule in ("all", "latest"):
        await job.scheduled(rule, "0 * * * *", catch_up=rule).create(1)
    async with scheduling(proxy.url, clock) as running:
        await clock.set(NEW_YEAR + HOUR)
        await until_fired(connection, clock, ["all", "latest"])
        proxy.close_down()
        await clock.advance(away * HOUR)
        proxy.open_up()
        await until_fired(connection, clock, ["all", "latest"])
        assert not running.done()
    expected = instants("0 * * * *", after=NEW_YEAR, until=clock.at)
    assert await fired(connection) == {"all": expected, "latest": [expected[0], expected[-1]]}
    assert await verdict(connection, {"all": expected, "latest": expected}) == NOTHING_WRONG


async def test_a_scheduler_that_minds_every_error_would_end_with_its_connection(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""

    async def step_or_end(self: FiringLoop) -> float:
        return await self.step(await self._link.get())

    monkeypatch.setattr(FiringLoop, "_try", step_or_end)
    await remind(frozen_app).scheduled("all", "0 * * * *", catch_up="all").create(1)
    async with scheduling(proxy.url, clock) as running:
        await clock.set(NEW_YEAR + HOUR)
        await until_fired(connection, clock, ["all"])
        proxy.close_down()
        await clock.advance(HOUR)
        await until(running.done)
        proxy.open_up()
    assert (await verdict(connection, {"all": [NEW_YEAR + HOUR, clock.at]})).missing == [Instant("all", clock.at)]


# ── killed ──────────────────────────────────────────────────────────────────────────────────────────────────────

EVERY_SECOND, SECOND = "* * * * * *", timedelta(seconds=1)


async def schedule_every_second(server: Server, count: int) -> datetime:
    """Make so many schedules, and answer with their first instant."""
    async with Mainspring(server.url) as app:
        job = remind(app)
        often = [job.scheduled(f"often-{number}", EVERY_SECOND, catch_up="all") for number in range(count)]
        await app.schedules.create_many([each.request(1) for each in often])
    first: datetime = await server.ask("select min(nominal_at) from cursor")
    return first


async def look(server: Server, query: str, *arguments: Any) -> None:
    """Wait until it is so, over one connection, which ends before anybody is killed."""
    connection = await asyncpg.connect(server.url, server_settings={"search_path": "mainspring"})
    await until(lambda: connection.fetchval(query, *arguments), 0.001)  # what it looks for may be over soon
    await connection.close()


async def restart_in_the_middle_of_firing(server: Server) -> None:
    """kill -9 when some have fired at an instant and others have not; another instant passes until it is back."""
    await look(server, "select count(*) > 0 from occurrence")
    await look(server, "select count(distinct nominal_at) > 1 from cursor")
    server.kill()
    killed_at = datetime.now(UTC)
    await until(lambda: datetime.now(UTC) > killed_at + SECOND)
    await server.start()
    started_at = await server.ask("select now()")
    await look(server, "select bool_and(nominal_at > $1) from cursor", started_at + SECOND)


@pytest.mark.invariant(2)
@pytest.mark.parametrize(("is_logged", "kills"), [(True, 2), (False, 1)], ids=["", "control"])
async def test_nothing_is_missing_or_extra_when_postgresql_is_killed_beside_schedulers(
    lone: Server, broken_operations: None, *, is_logged: bool, kills: int
) -> None:
    """The control has a line of runs that PostgreSQL does not bring back after a crash."""
    since = await schedule_every_second(lone, 50)
    if not is_logged:
        await lone.ask("alter table ready set unlogged")
    async with scheduling(lone.url, SystemClock()), scheduling(lone.url, SystemClock()):
        for _ in range(kills):
            await restart_in_the_middle_of_firing(lone)
    found = await verdict_since(lone, since)
    assert (found == NOTHING_WRONG) == is_logged, found
    assert found.extra == []


async def verdict_since(server: Server, since: datetime) -> Verdict:
    """All seconds from then on, up to where each schedule's cursor stands."""
    connection = await asyncpg.connect(server.url, server_settings={"search_path": "mainspring"})
    async with connection.transaction(isolation="repeatable_read"):  # a firing that was cut off may still commit
        rows = await connection.fetch("select name, nominal_at from cursor join schedule on schedule.id = schedule_id")
        expected = {
            row["name"]: instants(EVERY_SECOND, after=since - SECOND, until=row["nominal_at"] - SECOND) for row in rows
        }
        found = await verdict(connection, expected)  # type: ignore[arg-type]
    await connection.close()
    return found
