"""A worker inside the application's own process: `async with app.running()`."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import PATIENCE, Calls, until

from mainspring import Mainspring
from mainspring.errors import InvalidInput, QueueNotFound
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.lifecycle import State
from mainspring.store import workers
from mainspring.worker import in_process

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from mainspring.store.connection import Connection


APART = """
from mainspring import Mainspring

app = Mainspring()

@app.job(isolated=True)
def apart(number: int) -> int:
    return number + 1
"""


class Nap:
    """A handler that naps until it is told to end."""

    def __init__(self, app: Mainspring) -> None:
        self.has_begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.job = app.job(name="nap")(self._nap)

    async def _nap(self) -> str:
        self.has_begun.set()
        await self.gate.wait()
        return "rested"


async def live_workers(connection: Connection) -> list[UUID]:
    return [row["id"] for row in await connection.fetch("select id from worker where state = 'live'")]


async def test_runs_are_executed_where_the_application_is(app: Mainspring, connection: Connection) -> None:
    @app.job(queue="mail")
    async def greet(name: str) -> str:
        return f"Hello {name}"

    async with app.running() as same:
        assert same is app
        assert await (await greet.submit(name="you")).result(PATIENCE) == "Hello you"
        assert len(await live_workers(connection)) == 1
    assert await live_workers(connection) == []
    assert await connection.fetchval("select state from worker") == "stopped"


async def test_code_that_is_not_async_has_it_too(url: str) -> None:
    app = Mainspring(url)

    @app.job
    def double(number: int) -> int:
        return 2 * number

    def program() -> int:
        try:
            with app.running_sync(slots=2):
                return double.submit_sync(number=21).result_sync(PATIENCE)
        finally:
            app.close_sync()

    assert await asyncio.to_thread(program) == 42


async def test_a_worker_that_cannot_begin_anew_tries_again_and_says_so(
    app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "AFTER_FAULT_SECONDS", 0.01)
    starts: list[str] = []

    @app.on_start
    def fail_the_second_time() -> None:
        starts.append("start")
        if len(starts) == 2:
            raise RuntimeError("not just now")

    @app.job
    async def greet() -> str:
        return "Hello"

    with capture_logs() as lines:
        async with app.running(lease_time=1.5):
            await connection.execute("update worker set state = 'lost', ended_at = clock_now()")
            await until(lambda: len(starts) == 3)
            assert await (await greet.submit()).result(PATIENCE) == "Hello"

    assert "a worker could not begin anew; it is tried again" in [line["event"] for line in lines]


async def test_what_is_running_at_the_end_may_finish(app: Mainspring) -> None:
    nap = Nap(app)
    async with app.running(grace=PATIENCE):
        handle = await nap.job.submit()
        await nap.has_begun.wait()
        asyncio.get_running_loop().call_later(0.2, nap.gate.set)

    assert (await handle.find()).state is State.SUCCEEDED


async def test_what_does_not_finish_in_time_goes_back_in_line(app: Mainspring) -> None:
    nap = Nap(app)
    async with app.running(grace=0.0):
        handle = await nap.job.submit()
        await nap.has_begun.wait()

    assert (await handle.find()).state is State.READY


async def test_heartbeats_arrive_by_themselves(app: Mainspring, connection: Connection) -> None:
    Nap(app)
    async with app.running(lease_time=0.6, scheduler=False):
        await until(lambda: connection.fetchval("select beat >= 10 from worker_heartbeat"))  # longer than a lease time
        assert len(await live_workers(connection)) == 1


async def test_a_worker_that_was_declared_lost_begins_anew_and_repeats_its_run(
    app: Mainspring, connection: Connection
) -> None:
    nap = Nap(app)
    async with app.running(lease_time=3.0), asyncio.timeout(PATIENCE):
        handle = await nap.job.submit()
        await nap.has_begun.wait()
        (former,) = await live_workers(connection)
        nap.has_begun.clear()
        assert await workers.lose_if_silent(connection, former, None)

        await nap.has_begun.wait()  # again: given back, or rescued by its keeper
        assert former not in await live_workers(connection)
        nap.gate.set()
        assert await handle.result(PATIENCE) == "rested"
    outcomes = [attempt.outcome for attempt in (await handle.find()).attempts]
    assert outcomes in (["interrupted", "succeeded"], ["crashed", "succeeded"])  # as the rescuer is later or sooner


async def test_a_worker_that_is_declared_lost_while_it_drains_waits_for_nothing(
    app: Mainspring, connection: Connection
) -> None:
    nap = Nap(app)
    async with asyncio.timeout(PATIENCE), app.running(lease_time=3.0, grace=10 * PATIENCE):
        await nap.job.submit()
        await nap.has_begun.wait()
        (worker_id,) = await live_workers(connection)
        assert await workers.lose_if_silent(connection, worker_id, None)  # it hears of it in a moment


async def test_a_drain_that_is_cancelled_waits_for_nothing(app: Mainspring, connection: Connection) -> None:
    nap = Nap(app)

    async def program() -> None:
        async with app.running(grace=10 * PATIENCE):
            await nap.job.submit()
            await nap.has_begun.wait()
            ends.set()

    ends = asyncio.Event()
    running = asyncio.create_task(program())
    await ends.wait()
    running.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([running])
    assert running.cancelled()
    assert await connection.fetchval("select state from worker") == "stopped"
    assert await connection.fetchval("select count(*) from ready") == 1


async def test_a_worker_that_said_good_bye_is_not_called_lost_while_it_closes(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeats = Calls(workers.send_heartbeats)
    monkeypatch.setattr(workers, "send_heartbeats", heartbeats)
    Nap(app)
    app.on_stop(heartbeats.more)

    with capture_logs() as lines:
        async with app.running(lease_time=0.6, scheduler=False):
            pass
    assert lines == []


async def test_a_worker_that_is_asked_to_drain_is_not_replaced(app: Mainspring, connection: Connection) -> None:
    nap = Nap(app)
    async with app.running(lease_time=1.0):
        (worker_id,) = await live_workers(connection)
        await workers.request_drain(connection, worker_id, tenant_id=DEFAULT_TENANT, actor="tester", reason="enough")
        await until(lambda: connection.fetchval("select not exists (select from worker where state = 'live')"))
        handle = await nap.job.submit()
    assert (await handle.find()).state is State.READY


async def test_an_application_that_cannot_be_served_says_so_at_once(app: Mainspring, connection: Connection) -> None:
    Nap(app)
    with pytest.raises(QueueNotFound, match="nowhere"):
        async with app.running(queues=["nowhere"]):
            pytest.fail("it must not start")
    assert await live_workers(connection) == []


@pytest.mark.parametrize(("setting", "hint"), [("processes", None), ("slot", "slots")])
async def test_a_setting_that_means_nothing_here_is_refused(app: Mainspring, setting: str, hint: str | None) -> None:
    settings: dict[str, Any] = {setting: 2}
    with pytest.raises(InvalidInput) as caught:
        async with app.running(**settings):
            pytest.fail("it must not start")
    assert caught.value.code == "unknown-setting"
    assert hint is None or hint in str(caught.value.hint)


async def test_an_application_without_jobs_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidInput) as caught:
        async with app.running():
            pytest.fail("it must not start")
    assert caught.value.code == "no-jobs"


async def test_isolated_jobs_are_refused_unless_their_processes_can_import_them(app: Mainspring) -> None:
    @app.job(isolated=True)
    async def apart() -> None: ...

    with pytest.raises(InvalidInput, match="'apart' is isolated") as caught:
        async with app.running():
            pytest.fail("it must not start")
    assert caught.value.code == "isolation-needs-a-path"


async def test_isolated_runs_have_processes_after_a_worker_began_anew(
    app: Mainspring, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apart_app.py").write_text(APART)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.getenv("PYTHONPATH")])]))

    @app.job(isolated=True)
    def apart(number: int) -> int:
        raise AssertionError(f"{number} was to be executed elsewhere")

    async with app.running(path="apart_app:app", lease_time=3.0):
        assert await (await apart.submit(number=1)).result(PATIENCE) == 2
        (former,) = await live_workers(connection)
        assert await workers.lose_if_silent(connection, former, None)
        await until(lambda: connection.fetchval("select exists (select from worker where state = 'live')"))

        assert await (await apart.submit(number=2)).result(PATIENCE) == 3


async def test_hooks_and_resources_are_opened_and_closed_around_it(app: Mainspring) -> None:
    told: list[str] = []
    Nap(app)
    app.on_start(lambda: told.append("start"))
    app.on_stop(lambda: told.append("stop"))

    async with app.running():
        assert told == ["start"]
    assert told == ["start", "stop"]
