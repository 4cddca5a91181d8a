"""Isolated runs without a database: a zygote, its children, and what passes between them and a worker."""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.system import poison_app
from tests.waiting import PATIENCE, until

from mainspring import wiring
from mainspring.errors import MainspringError, ProcessCrashed
from mainspring.store.columns import ATTEMPT, FENCE, ID, PAYLOAD, SPECIAL
from mainspring.store.leases import Lease
from mainspring.worker.isolation.remote_error import RemoteError
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.worker.isolation.pool import ChildPool
    from mainspring.worker.registry import Handler


class Ear:
    """Keeps what a child says and prints."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.printed_bytes = {"stdout": 0, "stderr": 0}

    def on_notice(self, kind: str, body: Any) -> None:
        self.heard.append((kind, body))

    async def on_request(self, kind: str, body: Any) -> Any:
        if kind == "refuse":
            raise MainspringError("No.", code="not-done")
        return {"kind": kind, "body": body}

    def on_output(self, stream: str, data: bytes) -> None:
        self.printed_bytes[stream] += len(data)


class Bench:
    """Runs jobs of the poison application in children of their own."""

    def __init__(self, jobs: Any = poison_app) -> None:
        self.ear = Ear()
        self._jobs = jobs
        location = wiring.DatabaseLocation(url="postgresql://nowhere.invalid/none")
        self.isolation = wiring.isolation("tests.system.poison_app:app", location)

    async def run(self, job: str, **arguments: Any) -> Any:
        return await asyncio.wait_for(self.perform(self.work(job, **arguments)), PATIENCE)

    def work(self, job: str, **arguments: Any) -> Work:
        handler: Handler = getattr(self._jobs, job).handler
        row: list[Any] = [None] * (SPECIAL + 1)
        row[ID], row[ATTEMPT], row[FENCE] = uuid.uuid4(), 0, 7
        row[PAYLOAD] = msgspec.json.encode(arguments)
        return Work(row, Lease(0, uuid.uuid4(), 1), 0, 0, uuid.uuid4(), (0,), handler)  # type: ignore[arg-type]

    async def perform(self, work: Work) -> Any:
        assert work.handler is not None
        work.task = asyncio.ensure_future(self.isolation.perform(work, work.handler, lambda work: None, self.ear))
        return await work.task

    @property
    def zygote(self) -> int:
        process = self.isolation._pool._process
        assert process is not None
        return process.pid


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.isolation.close()


async def test_a_handler_gets_its_context_and_its_arguments(bench: Bench) -> None:
    work = bench.work("describe", value={"a": [1, None, "ü"]})

    result = await bench.perform(work)

    assert result == {"run": str(work.row[ID]), "attempt": 1, "fence": 7, "value": {"a": [1, None, "ü"]}}


async def test_every_run_has_a_process_of_its_own(bench: Bench) -> None:
    pids = await asyncio.gather(*(bench.run("isolated_nap", seconds=0.01) for _ in range(30)))

    assert len(set(pids)) == 30
    assert os.getpid() not in pids


async def test_runs_do_not_draw_the_same_random_numbers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked from one process, they would begin with one state of its generators."""
    monkeypatch.setenv("POISON_APP_NUMPY", "1")
    draws = [await bench.run("draw") for _ in range(2)]

    assert draws[0][0] != draws[1][0]
    assert draws[0][1] != draws[1][1]


async def test_what_a_handler_raises_is_raised_here_by_name(bench: Bench) -> None:
    with pytest.raises(RemoteError) as raised:
        await bench.run("raise_unlucky")

    kinds = [kind.__qualname__ for kind in type(raised.value).__mro__]
    assert kinds[:3] == ["Unlucky", "LookupError", "Exception"]
    assert str(raised.value) == "thirteen"
    assert 'raise Unlucky("thirteen")' in raised.value.traceback_text
    assert bench.ear.printed_bytes["stdout"] == len("about to fail\n")


@pytest.mark.parametrize(
    ("kind", "code"), [("nan", "result-not-json"), ("large", "result-too-large"), ("object", "result-not-json")]
)
async def test_a_result_that_cannot_be_kept_is_final(bench: Bench, kind: str, code: str) -> None:
    with pytest.raises(RemoteError) as raised:
        await bench.run("return_nonsense", kind=kind)

    assert raised.value.code == code
    assert raised.value.is_hopeless


async def test_a_flood_of_output_neither_blocks_nor_is_mistaken_for_a_result(bench: Bench) -> None:
    assert await bench.run("flood", mebibytes=4) == "flooded"
    assert bench.ear.printed_bytes["stdout"] > 4_000_000
    assert bench.ear.printed_bytes["stderr"] == 4_000_000


@pytest.mark.parametrize("data", ["garbage!", "\xff\xff\xff\xff", "\x00\x00\x00\x02[]", "\x00\x00\x00\x05abcde"])
async def test_a_child_that_babbles_is_ended_and_the_next_one_is_well(bench: Bench, data: str) -> None:
    with pytest.raises(ProcessCrashed, match="ended because of what it sent"):
        await bench.run("babble", data=data)

    assert await bench.run("isolated_nap", seconds=0.0)


async def test_a_handler_that_forks_and_returns_twice_has_one_result(bench: Bench) -> None:
    assert await bench.run("return_twice") == "parent"


async def test_a_run_that_is_stopped_before_it_has_a_process_does_not_begin(bench: Bench) -> None:
    """The zygote is not there yet, so the run waits for its child."""
    work = bench.work("isolated_nap", seconds=3_600)
    performing = asyncio.ensure_future(bench.perform(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    bench.isolation.tell(work)

    with pytest.raises(asyncio.CancelledError):
        await performing
    assert await bench.run("isolated_nap", seconds=0.0)


async def test_an_application_that_starts_threads_is_imported_by_each_child(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POISON_APP_THREADS", "1")

    assert await bench.run("isolated_nap", seconds=0.0)
    assert len(os.listdir(f"/proc/{bench.zygote}/task")) == 1
    assert "importing the application starts threads" in capfd.readouterr().err


async def test_a_zygote_has_one_thread(bench: Bench) -> None:
    assert await bench.run("isolated_nap", seconds=0.0)

    assert len(os.listdir(f"/proc/{bench.zygote}/task")) == 1


async def test_a_closed_bench_leaves_no_process_behind(bench: Bench) -> None:
    running = asyncio.ensure_future(bench.perform(bench.work("isolated_nap", seconds=3_600)))
    pid = await bench.run("isolated_nap", seconds=0.0)
    zygote = bench.zygote
    bench.isolation.close()

    assert not os.path.exists(f"/proc/{zygote}")
    assert not os.path.exists(f"/proc/{pid}")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
async def test_a_zygote_that_cannot_start_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    pool: ChildPool = bench.isolation._pool
    command, broken = pool._command, [True, True]

    def sometimes(channel: int) -> Any:
        chosen = command(channel)
        return chosen._replace(arguments=[program]) if broken and broken.pop() else chosen

    monkeypatch.setattr(pool, "_command", sometimes)

    assert await bench.run("isolated_nap", seconds=0.0)


async def test_a_child_that_cannot_import_the_application_says_why(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool: ChildPool = bench.isolation._pool

    def command(channel: int) -> Any:
        configuration = wiring.ZygoteConfiguration(
            app="tests.system.no_such_app:app", url=None, data_directory=None, channel=channel, preload=False
        )
        return configuration.command(wiring.ZYGOTE_MODULE, wiring.ZYGOTE_VARIABLE)

    monkeypatch.setattr(pool, "_command", command)
    with capture_logs() as lines:
        pool.start()
        await until(lambda: any(line["event"] == "an isolated process ended before it was needed" for line in lines))

    assert "no_such_app" in str(lines)
