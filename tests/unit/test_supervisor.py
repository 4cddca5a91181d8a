"""A supervisor whose database and children do what they should not. Its children are real processes."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from mainspring.clock import SystemClock
from mainspring.errors import DatabaseBusy, DatabaseUnreachable
from mainspring.model.lifecycle import State
from mainspring.store import queues, workers
from mainspring.store.submissions import new_uuid
from mainspring.worker import supervisor as supervisor_module
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.supervised import EXIT_MISCONFIGURED, ProcessCommand
from mainspring.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

PATIENCE = 20.0


class Nowhere:
    """A database, a link to it and a connection, all to nowhere; what is asked over it is answered by the tests."""

    answer_seconds = 1.0

    async def get(self) -> Nowhere:
        return self

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Nowhere]:
        yield self

    async def has_repaired(self, error: BaseException) -> bool:
        return False

    async def mend(self, error: BaseException) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None: ...


def supervisor(script: str = "exit 0", **settings: Any) -> Supervisor:
    def command(worker_id: UUID, channel: int) -> ProcessCommand:
        return ProcessCommand(["/bin/bash", "-c", script, str(channel)], dict(os.environ))

    return Supervisor(
        database=Nowhere(),  # type: ignore[arg-type]
        link=Nowhere(),  # type: ignore[arg-type]
        clock=SystemClock(),
        lanes=1,
        settings=WorkerSettings(lease_time=1.0, **settings),
        command=command,
        say=lambda words: None,
    )


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def beat(connection: object, worker_ids: list[UUID]) -> dict[UUID, bool]:
        return dict.fromkeys(worker_ids, False)

    async def lose(*arguments: object) -> bool:
        return True

    async def rescue(*arguments: object) -> workers.Rescued:
        return workers.Rescued()

    async def wanted(*arguments: object, **options: object) -> int:
        return 1_000

    monkeypatch.setattr(workers, "send_heartbeats", beat)
    monkeypatch.setattr(workers, "lose_if_silent", lose)
    monkeypatch.setattr(workers, "rescue_all", rescue)
    monkeypatch.setattr(queues, "wanted_slots", wanted)


async def test_a_beat_that_fails_for_whatever_reason_is_followed_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the children would be declared lost, and so would all that replace them."""
    faults = [DatabaseBusy("statement timeout"), RuntimeError("a fault of ours"), DatabaseUnreachable("cut off")]
    beaten = asyncio.Event()

    async def beat(connection: object, worker_ids: list[UUID]) -> dict[UUID, bool]:
        if faults:
            raise faults.pop()
        beaten.set()
        return dict.fromkeys(worker_ids, False)

    monkeypatch.setattr(workers, "send_heartbeats", beat)
    supervising = supervisor("echo ready >&$0; read word <&$0; read word <&$0; exit 0")
    running = asyncio.create_task(supervising.run())
    async with asyncio.timeout(PATIENCE):
        await beaten.wait()
        supervising.stop()

        assert await running == 0
    assert faults == []


async def test_a_misconfigured_application_ends_a_supervisor_that_adapts_to_work() -> None:
    supervising = supervisor(f"exit {EXIT_MISCONFIGURED}", autoscale=(2, 5))

    async with asyncio.timeout(PATIENCE):
        assert await supervising.run() == 1


async def test_no_process_is_added_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor when the stop comes while the database is asked how much work there is."""
    supervising = supervisor(autoscale=(1, 5))

    async def wanted(*arguments: object, **options: object) -> int:
        supervising.stop()
        return 1_000

    monkeypatch.setattr(queues, "wanted_slots", wanted)
    await supervising._scale()

    assert supervising._starts_at == []


async def test_a_rescue_that_is_never_answered_does_not_keep_the_beats_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, begun, enough = 0, asyncio.Event(), asyncio.Event()

    async def rescue(*arguments: object) -> workers.Rescued:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def beat(connection: object, worker_ids: list[UUID]) -> dict[UUID, bool]:
        nonlocal beats
        beats += begun.is_set()
        if beats == 3:
            enough.set()
        return dict.fromkeys(worker_ids, False)

    monkeypatch.setattr(workers, "rescue_all", rescue)
    monkeypatch.setattr(workers, "send_heartbeats", beat)
    monkeypatch.setattr(supervisor_module, "LAST_RESCUE_SECONDS", 0.0)
    supervising = supervisor("echo ready >&$0; while read word <&$0; do [ $word = drain ] && exit 0; done")
    supervising._ended.add(new_uuid())
    running = asyncio.create_task(supervising.run())
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
        supervising.stop()
        await running

    assert len(supervising._ended) == 1  # it is still being tried


async def test_a_rescue_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    faults, rescued = [DatabaseUnreachable("cut off"), RuntimeError("a fault of ours")], asyncio.Event()

    async def rescue(*arguments: object) -> workers.Rescued:
        if faults:
            raise faults.pop()
        rescued.set()
        return workers.Rescued()

    monkeypatch.setattr(workers, "rescue_all", rescue)
    supervising = supervisor("echo ready >&$0; read word <&$0; exit 0")
    supervising._ended.add(new_uuid())
    running = asyncio.create_task(supervising.run())
    async with asyncio.timeout(PATIENCE):
        await rescued.wait()
        supervising.stop()
        await running

    assert supervising._ended == set()


async def test_a_supervisor_ends_in_order_though_its_last_rescue_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rescue(*arguments: object) -> workers.Rescued:
        raise DatabaseBusy("statement timeout")

    monkeypatch.setattr(workers, "rescue_all", rescue)
    supervising = supervisor(f"exit {EXIT_MISCONFIGURED}")

    async with asyncio.timeout(PATIENCE):
        assert await supervising.run() == 1


async def test_each_run_that_ended_with_its_worker_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    end = workers.BadEnd(new_uuid(), "send", 1, State.LOST, "crashed", "The worker sent no more heartbeats.")

    async def rescue(connection: object, lanes: int, worker_id: UUID, note: Any) -> workers.Rescued:
        note(end)
        return workers.Rescued(leases=1, lost=1)

    monkeypatch.setattr(workers, "rescue_all", rescue)
    supervising = supervisor()
    supervising._ended.add(new_uuid())
    with capture_logs() as lines:
        await supervising._rescue_ended()

    assert [(line["event"], line["run"], line["job"]) for line in lines if "run" in line] == [
        ("a run is lost", str(end.run_id), "send")
    ]
