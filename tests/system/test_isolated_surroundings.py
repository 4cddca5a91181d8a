"""Hooks, resources and middleware in the processes of isolated runs."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from tests.system import surrounded_app
from tests.waiting import until

from mainspring import wiring
from mainspring.store.columns import ID
from mainspring.worker.isolation.remote_error import RemoteError

from .test_isolation import Bench, Ear

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Printed(Ear):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def on_output(self, stream: str, data: bytes) -> None:
        self.text += data.decode()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench(surrounded_app)
    bench.ear = Printed()
    location = wiring.DatabaseLocation(url="postgresql://nowhere.invalid/none")
    bench.isolation = wiring.isolation("tests.system.surrounded_app:app", location)
    yield bench
    bench.isolation.close()


@pytest.mark.parametrize("job", ["look", "look_in_thread"])
async def test_each_process_has_its_own(bench: Bench, job: str) -> None:
    work = bench.work(job)
    answer = await bench.perform(work)

    (where, here) = answer["result"]
    assert where == here != os.getpid()
    assert answer["run"] == str(work.row[ID])
    assert isinstance(bench.ear, Printed)
    assert bench.ear.text.splitlines() == [f"start in {here}", "open", "close", f"stop in {here}"]


async def test_what_a_handler_raises_is_its_own_and_everything_is_closed(bench: Bench) -> None:
    with pytest.raises(RemoteError, match="mine"):
        await bench.run("fail")

    assert isinstance(bench.ear, Printed)
    assert bench.ear.text.splitlines()[1:3] == ["open", "close"]


async def test_a_handler_that_is_not_async_is_told_to_stop(bench: Bench) -> None:
    work = bench.work("wait_until_told")
    performing = asyncio.ensure_future(bench.perform(work))
    ear = bench.ear
    assert isinstance(ear, Printed)
    await until(lambda: "waiting" in ear.text)
    bench.isolation.tell(work)

    with pytest.raises(asyncio.CancelledError):
        await performing
