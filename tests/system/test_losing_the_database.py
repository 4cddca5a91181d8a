"""PostgreSQL is killed, goes away, is cut off, or its answers get lost. Each fault has its control."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.checker import Answer, CallLog
from tests.waiting import PATIENCE

from mainspring import Mainspring
from mainspring.control.accepting import Acceptor
from mainspring.wiring import DatabaseLocation, open_store

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME, System, lasting
from .proxy import COMMIT, Mode, Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mainspring.store.embedded import EmbeddedServer


OUTAGE_LEASE_TIME = 6.0  # supervisors are kept away for a part of it; a slow machine must not add up to all of it

# ── away ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(6)
@pytest.mark.long
@pytest.mark.parametrize("lease_times", [0.5, 1.0, 2.0])
async def test_nobody_is_lost_because_the_database_was_away(system: System, jobs: Any, lease_times: float) -> None:
    async with Proxy(system.url) as proxy:
        await _outage(system, jobs, proxy, lease_times)

        assert await system.count("worker", "state = 'lost'") == 0
        assert await system.count("attempt", "outcome = 'crashed'") == 0
        assert await system.count("attempt") == 40  # results that waited were delivered; nothing ran again


@pytest.mark.long
async def test_an_impatient_rescuer_would_lose_workers_after_an_outage(system: System, jobs: Any) -> None:
    """The control."""
    async with Proxy(system.url) as proxy:
        await _outage(system, jobs, proxy, 1.5, sabotage="impatient")

        assert await system.count("worker", "state = 'lost'") > 0


async def _outage(system: System, jobs: Any, proxy: Proxy, lease_times: float, sabotage: str = "") -> None:
    for _ in range(2):
        system.start(url=proxy.url, sabotage=f"looks,{sabotage}", lease_time=OUTAGE_LEASE_TIME)
    assert await system.live_workers(2)
    handles = await jobs.nap.submit_many([{"seconds": 0.3}] * 40)
    assert await system.eventually(lambda: system.started(20))
    if sabotage:  # it judges by what it saw before the outage: let that be the last heartbeat
        proxy.refused = "supervisor"
        proxy.cut("supervisor")
        await both_look(system, or_one_is_lost=True)
        await both_look(system, or_one_is_lost=True)
    proxy.close_down()
    await lasting(lease_times * OUTAGE_LEASE_TIME)
    proxy.refused = "supervisor"  # beats come back last: the moment in which a hasty rescuer would judge
    proxy.open_up()
    await both_look(system, or_one_is_lost=bool(sabotage))
    proxy.refused = ""
    assert await system.ended(40)
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert sabotage or await system.beat_again()  # a false alarm would have come by then


async def both_look(system: System, *, or_one_is_lost: bool = False) -> None:
    """Wait until both rescuers have looked, from now on. One that is lost looks no more."""
    await system.connection.execute("delete from effect where what = 'looked'")
    looked = "select count(distinct pid) = 2 from effect where what = 'looked'"
    lost = "select exists (select from worker where state = 'lost')"

    async def is_over() -> bool:
        return bool(await system.value(looked) or (or_one_is_lost and await system.value(lost)))

    assert await system.eventually(is_over)


STEP_CLOCK = """
    create or replace function clock_now() returns timestamptz language sql stable parallel safe
    as $$ select now() + interval '{}' $$"""


@pytest.mark.invariant(6)
@pytest.mark.parametrize(
    ("step", "sabotage"), [("1 hour", ""), ("-1 hour", ""), ("1 hour", "by_the_clock")], ids=["on", "back", "control"]
)
async def test_nobody_is_lost_because_the_clock_of_the_database_was_stepped(
    system: System, jobs: Any, step: str, sabotage: str
) -> None:
    for _ in range(2):
        system.start(sabotage=sabotage, lease_time=OUTAGE_LEASE_TIME)
    assert await system.live_workers(2)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 4)
    assert await system.eventually(lambda: system.started(4))
    await system.connection.execute(STEP_CLOCK.format(step))
    if sabotage:
        assert await system.eventually(lambda: system.count("worker", "state = 'lost'"))
        return
    assert await system.beat_again(7)  # a lease time
    await system.tell_them_to_go_on()

    assert await system.ended(4)
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("attempt") == 4
    assert await system.count("worker", "state = 'lost'") == 0


async def test_a_worker_that_loses_the_database_while_it_starts_goes_on_when_it_is_back(
    system: System, jobs: Any
) -> None:
    """Registered, and cut off before its first look: the same process works later, and no other takes its place."""
    async with Proxy(system.url) as proxy:
        proxy.refused = "worker sync"
        system.start(url=proxy.url)
        assert await system.live_workers(1)
        assert await system.eventually(lambda: _has_claimed(proxy))
        proxy.refused = ""
        handles = await jobs.quick.submit_many([{"number": n} for n in range(5)])
        assert await system.ended(len(handles))
        assert await system.eventually(lambda: _is_in_step(proxy))

        assert await system.count("worker") == 1


async def _has_claimed(proxy: Proxy) -> bool:
    return len(proxy.named("worker claim")) > 0


async def _is_in_step(proxy: Proxy) -> bool:
    return len(proxy.named("worker sync")) > 0


# ── cut off ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["broken", "half-open"])
async def test_the_runs_of_a_worker_that_is_cut_off_are_taken_over_and_its_late_results_refused(
    system: System, jobs: Any, how: str
) -> None:
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, lease_time=SHORT_LEASE_TIME)
        assert await system.live_workers(1)
        handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 10)
        assert await system.eventually(lambda: system.started(10))
        if how == "broken":
            proxy.close_down()
        else:
            proxy.hold_everything()
        system.start()
        assert await system.eventually(lambda: system.count("worker", "state = 'lost'"))
        assert await system.eventually(lambda: system.started(20))
        await system.tell_them_to_go_on()
        assert await system.ended(10)
        assert await system.eventually(lambda: system.value("select count(*) = 20 from effect where what = 'end'"))
        proxy.open_up()
        await system.eventually(lambda: system.value("select count(*) = 10 from stale"))

        report = await system.report([handle.id for handle in handles], stale_injected=10, must_be_drained=True)
        assert report.violations == [], report
        assert await system.live_workers(2)


@pytest.mark.parametrize("sabotage", ["", "disconnect"])
async def test_a_run_that_must_not_overlap_is_stopped_before_someone_else_may_have_it(
    system: System, jobs: Any, sabotage: str
) -> None:
    """`on_disconnect="stop"`: cut off, it ends before its lease time does, and later begins elsewhere."""
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage, lease_time=SHORT_LEASE_TIME)
        assert await system.live_workers(1)
        handle = await jobs.nap_unless_alone.submit(seconds=UNTIL_TOLD)
        assert await system.eventually(lambda: system.started(1))
        proxy.close_down()
        system.start()
        assert await system.eventually(lambda: system.started(2))
        if not sabotage:
            assert await system.eventually(lambda: system.count("effect", "what = 'stopped' and fence = 1"))
        await system.tell_them_to_go_on()
        assert await system.ended(1)

        if sabotage:
            assert await system.eventually(lambda: system.value("select count(*) = 2 from effect where what = 'end'"))
        else:  # the first was stopped, and is over
            assert await system.effects("end") == [(handle.id, 2)]
        assert [fence for _, fence in await system.effects()] == [1, 2]
        assert await handle.result(PATIENCE) == "rested"


# ── lost answers ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sabotage", ["", "replay,lookup"])
async def test_a_completion_whose_commit_went_unanswered_is_settled_once(
    system: System, jobs: Any, sabotage: str
) -> None:
    """Both ways of losing an answer: COMMIT happened, and COMMIT did not arrive."""
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage)
        assert await system.live_workers(1)
        accepted = []
        for mode in (Mode.SWALLOW, Mode.HOLD) * 3:
            accepted.append((await jobs.quick.submit(number=0)).id)
            assert await system.ended(len(accepted))  # over a connection that works, and is there now
            proxy.set_mode_at(COMMIT, mode, "worker flush")
            handles = await jobs.quick.submit_many([{"number": n} for n in range(20)])
            accepted += [handle.id for handle in handles]
            assert await system.eventually(lambda: proxy.is_losing("worker flush"))
            proxy.cut("worker flush")
            if mode is Mode.HOLD and sabotage:
                break
        if sabotage:
            await _work_goes_on(system, jobs)
            assert not await system.have_ended(len(accepted) + 1)  # what was never committed was taken as settled
            return
        assert await system.ended(len(accepted))
        await system.eventually(lambda: system.value("select count(*) = 0 from lease"))
        report = await system.report(accepted, stale_injected=0, must_be_drained=True)
        assert report.violations == [], report
        assert await system.count("attempt") == len(accepted)


async def _work_goes_on(system: System, jobs: Any) -> None:
    """Another run ends, and heartbeats come: whoever were to look for what was lost has looked."""
    assert await (await jobs.quick.submit(number=0)).result(PATIENCE) == 0
    assert await system.beat_again()


@pytest.mark.parametrize("sabotage", ["", "lookup"])
async def test_a_claim_whose_answer_was_lost_is_found_by_its_lease(system: System, jobs: Any, sabotage: str) -> None:
    async with Proxy(system.url) as proxy:
        system.start(url=proxy.url, sabotage=sabotage)
        assert await system.live_workers(1)
        await (await jobs.quick.submit(number=0)).result(PATIENCE)  # the connection that claims is there now
        worker_id = await system.value("select id from worker")
        proxy.set_mode_at(worker_id.bytes, Mode.SWALLOW, "worker claim")  # who only looks does not say who it is
        handles = await jobs.touch.submit_many([{"number": n} for n in range(10)])
        assert await system.eventually(lambda: system.count("lease"))  # claimed, and the worker does not know
        assert await system.effects() == []
        proxy.cut("worker claim")
        if sabotage:
            await _work_goes_on(system, jobs)
            assert not await system.have_ended(3)
            return
        assert await system.ended(11)
        report = await system.report([handle.id for handle in handles], must_be_drained=True)
        assert report.violations == [], report
        assert await system.count("attempt") == 11


@pytest.mark.parametrize("sabotage", ["", "find_out"])
@pytest.mark.parametrize("mode", [Mode.SWALLOW, Mode.HOLD])
async def test_a_submission_whose_commit_went_unanswered_happens_once(
    system: System, jobs: Any, monkeypatch: pytest.MonkeyPatch, mode: Mode, sabotage: str
) -> None:
    """The runs are already executed when the submitter finds out what became of its COMMIT."""
    if sabotage:
        monkeypatch.setattr(Acceptor, "_find_out", _never_there)
    system.start()
    assert await system.live_workers(1)
    async with Proxy(system.url) as proxy:
        app = Mainspring(proxy.url, submitted_by="tester")
        quick = app.job(jobs.quick.handler.function)
        await quick.submit(number=0)
        assert await system.ended(1)
        proxy.set_mode_at(COMMIT, mode, "submit")
        submitting = asyncio.ensure_future(quick.submit_many([{"number": n} for n in range(20)]))
        assert await system.eventually(lambda: proxy.is_losing("submit"))
        if mode is Mode.SWALLOW:
            assert await system.ended(21)
        proxy.cut("submit")
        handles = await submitting
        ends = 41 if sabotage and mode is Mode.SWALLOW else 21
        assert await system.eventually(lambda: system.value("select count(*) >= $1 from attempt", ends))
        last = await quick.submit(number=0)  # whatever was sent twice is before it in line
        await last.result(timeout=PATIENCE)
        await app.close()

    assert await system.count("attempt", "state = 'succeeded'") == ends + 1
    assert len({handle.id for handle in handles}) == 20


async def _never_there(self: Acceptor, batch: object) -> bool:
    return False


# ── killed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def durable_directory(shared_directory: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="durable-", dir=shared_directory))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def durable(durable_directory: Path) -> AsyncIterator[tuple[EmbeddedServer, System]]:
    """A durable server of one's own to kill, with a system on it."""
    store = await open_store(DatabaseLocation(data_directory=durable_directory / "data"))
    assert store.server is not None
    system = System(store.server.dsn, await _effects_table(store.server.dsn))
    yield store.server, system
    for tree in system.trees:
        if tree.process.poll() is None:
            tree.kill()
    if not system.connection.is_closed():
        await system.connection.close()
    await store.close()


async def _effects_table(url: str) -> asyncpg.Connection[asyncpg.Record]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "mainspring, public"})
    await connection.execute(
        "create table if not exists public.effect"
        " (run_id uuid, fence int, pid int, what text, at timestamptz default now())"
    )
    return connection


@pytest.mark.invariant(1)
@pytest.mark.timeout(250)
async def test_nothing_accepted_is_lost_when_postgresql_is_killed_under_load(
    durable: tuple[EmbeddedServer, System], durable_directory: Path, jobs: Any
) -> None:
    """kill -9 of the postmaster, again and again, while runs are submitted and executed."""
    server, system = durable
    # asyncpg leaves behind futures of broken operations that nobody awaits; they are not what is tested here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    place = {"MAINSPRING_DATABASE_URL": "", "MAINSPRING_DATA_DIR": str(durable_directory / "data")}
    for _ in range(2):
        system.start(environment=place, lease_time=OUTAGE_LEASE_TIME)
    assert await system.live_workers(2)
    app = Mainspring(data_directory=durable_directory / "data", submitted_by="tester")
    quick = app.job(jobs.quick.handler.function)
    log, stop = CallLog(), asyncio.Event()

    async def client() -> None:
        while not stop.is_set():
            handles = await quick.submit_many([{"number": n} for n in range(50)])
            log.record(Answer.OK, *(handle.id for handle in handles))

    async def accepted_more(than: int) -> bool:
        return len(log.accepted) >= than + 200

    clients = [asyncio.ensure_future(client()) for _ in range(2)]
    for kills in range(4):
        before = len(log.accepted)
        assert await system.eventually(lambda: accepted_more(before)), f"not under load after {kills} kills"  # noqa: B023
        await asyncio.to_thread(server.ensure_running)  # it is another one by now, whoever started it
        if kills < 3:
            os.kill(server.pid, signal.SIGKILL)
    stop.set()
    await asyncio.gather(*clients)
    await app.close()

    system.connection = await _effects_table(server.dsn)
    assert await system.ended(len(log.accepted))
    report = await system.report(log.accepted, calls=log.calls, must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("worker", "state = 'lost'") == 0
