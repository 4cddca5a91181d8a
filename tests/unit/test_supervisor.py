"""A supervisor whose database and children do what they should not. Its children are real processes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from mainspring.clock import SystemClock
from mainspring.store import queues, workers
from mainspring.worker.charge import EXIT_MISCONFIGURED, Command
from mainspring.worker.process import new_worker_id
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from uuid import UUID

PATIENCE = 20.0


class Link:
    """A connection to nowhere; what is asked over it is answered by the tests."""

    def __init__(self) -> None:
        self.is_terminated = asyncio.Event()

    async def get(self) -> Link:
        return self

    async def mend(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None: ...

    def terminate(self) -> None:
        self.is_terminated.set()


def supervisor(script: str = "exit 0", **settings: Any) -> Supervisor:
    def command(worker_id: UUID, channel: int) -> Command:
        return Command(["/bin/bash", "-c", script, str(channel)], dict(os.environ))

    return Supervisor(
        link=Link(),  # type: ignore[arg-type]
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

    monkeypatch.setattr(workers, "beat_if_live", beat)
    monkeypatch.setattr(workers, "lose_if_silent", lose)
    monkeypatch.setattr(workers, "rescue_all", rescue)
    monkeypatch.setattr(queues, "wanted_slots", wanted)


async def test_a_beat_that_fails_for_whatever_reason_is_followed_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the children would be declared lost, and so would all that replace them."""
    faults = [asyncpg.QueryCanceledError("statement timeout"), RuntimeError("a fault of ours"), OSError("cut off")]
    beaten = asyncio.Event()

    async def beat(connection: object, worker_ids: list[UUID]) -> dict[UUID, bool]:
        if faults:
            raise faults.pop()
        beaten.set()
        return dict.fromkeys(worker_ids, False)

    monkeypatch.setattr(workers, "beat_if_live", beat)
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

    assert supervising._births == []


async def test_a_rescue_that_is_never_answered_does_not_keep_the_beats_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is cut off without a word: its end has to come from here."""
    supervising = supervisor()

    async def rescue(connection: Link, *arguments: object) -> workers.Rescued:
        await connection.is_terminated.wait()
        raise asyncpg.ConnectionDoesNotExistError("terminated")

    monkeypatch.setattr(workers, "rescue_all", rescue)
    supervising._departed.add(new_worker_id())
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await supervising._settle_departed()

    assert len(supervising._departed) == 1  # to be tried again


async def test_a_supervisor_ends_in_order_though_its_last_rescue_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rescue(*arguments: object) -> workers.Rescued:
        raise asyncpg.QueryCanceledError("statement timeout")

    monkeypatch.setattr(workers, "rescue_all", rescue)
    supervising = supervisor(f"exit {EXIT_MISCONFIGURED}")

    async with asyncio.timeout(PATIENCE):
        assert await supervising.run() == 1
