"""Handlers that run one after the other in one task, until one of them waits."""

from __future__ import annotations

import asyncio
import gc
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import pytest

from mainspring.clock import SystemClock
from mainspring.model.job import JobDefinition
from mainspring.worker import launcher
from mainspring.worker.launcher import Launcher
from mainspring.worker.registry import handler_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work

VALUE: ContextVar[str] = ContextVar("VALUE", default="nothing")


class Started:
    """A run as far as a launcher knows it."""

    task: asyncio.Task[None] | None = None


class Bench:
    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[Any] | None] = []
        self.errors: list[BaseException] = []
        self.over = 0
        self.launcher = Launcher(clock=SystemClock(), execute=cast("Any", self._execute))

    async def _execute(self, work: Work, handler: Handler) -> None:
        self.tasks.append(asyncio.current_task())
        try:
            await handler.function()
        except BaseException as error:
            self.errors.append(error)
        self.over += 1

    def start(self, handle: Callable[[], Awaitable[None]], name: str = "job", count: int = 1) -> list[Work]:
        handler = handler_of(JobDefinition(name=name), handle)
        works = [cast("Work", Started()) for _ in range(count)]
        for work in works:
            self.launcher.start(work, handler)
        return works

    async def until_over(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.over < count:
                await asyncio.sleep(0)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def at_once() -> None:
    """Returns without waiting."""


async def test_handlers_that_do_not_wait_share_a_task(bench: Bench) -> None:
    bench.start(at_once, count=50)
    assert bench.over == 0, "whoever starts them has the first turn"
    await bench.until_over(50)

    assert len(set(bench.tasks)) == 1


async def test_one_that_waits_keeps_the_task_and_the_others_go_on(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.start(at_once, "quick", 5)
    (waiting,) = bench.start(gate.wait, "waiting")  # type: ignore[arg-type]
    bench.start(at_once, "quick", 5)
    await bench.until_over(10)

    assert waiting.task is bench.tasks[5]
    assert waiting.task is not None
    assert waiting.task.get_name() == "waiting"
    assert bench.tasks[6] is not waiting.task
    gate.set()
    await bench.until_over(11)
    assert bench.errors == []


async def test_of_a_job_that_has_waited_every_further_run_has_a_task_at_once(bench: Bench) -> None:
    bench.start(lambda: asyncio.sleep(0), "waiting")
    await bench.until_over(1)

    works = bench.start(lambda: asyncio.sleep(0), "waiting", 3)

    assert len({work.task for work in works}) == 3
    await bench.until_over(4)


async def test_the_current_task_is_the_same_before_and_after_waiting(bench: Bench) -> None:
    seen = []

    async def handle() -> None:
        seen.append(asyncio.current_task())
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    bench.start(handle)
    await bench.until_over(1)

    assert len(set(seen)) == 1
    assert bench.errors == []


async def test_a_time_limit_inside_a_handler_stops_that_handler_only(bench: Bench) -> None:
    async def too_long() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    bench.start(at_once, "quick", 3)
    bench.start(too_long, "slow")
    bench.start(at_once, "quick", 3)
    await bench.until_over(7)

    assert [type(error) for error in bench.errors] == [TimeoutError]


async def test_who_cancels_the_task_of_a_handler_that_waits_cancels_that_handler(bench: Bench) -> None:
    (work,) = bench.start(asyncio.Event().wait, "waiting")  # type: ignore[arg-type]
    await asyncio.sleep(0)
    bench.start(at_once, "quick", 3)
    assert work.task is not None

    work.task.cancel("enough")
    await bench.until_over(4)

    assert [str(error) for error in bench.errors] == ["enough"]


async def test_a_handler_that_cancels_itself_and_returns_harms_nobody(bench: Bench) -> None:
    async def cancel_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    bench.start(cancel_itself)
    bench.start(lambda: asyncio.sleep(0), "waiting")
    bench.start(at_once, "quick", 3)
    await bench.until_over(5)

    assert bench.errors == []


async def test_what_was_left_behind_by_a_handler_and_cancels_the_task_later_costs_nobody_a_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task has gone on to others by then: they begin in another one."""
    monkeypatch.setattr(launcher, "BURST_SECONDS", -1.0)  # each gives the event loop its turn

    async def leave_behind() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)

    bench.start(leave_behind)
    bench.start(at_once, "quick", 10)
    await bench.until_over(11)

    assert bench.errors == []
    assert len(set(bench.tasks)) == 2


async def test_every_run_begins_in_a_fresh_context(bench: Bench) -> None:
    found = []

    async def handle() -> None:
        found.append(VALUE.get())
        VALUE.set("mine")
        await asyncio.sleep(0)
        found.append(VALUE.get())

    async def look() -> None:
        found.append(VALUE.get())
        VALUE.set("theirs")

    bench.start(look, "look", 2)
    bench.start(handle, "waiting")
    bench.start(look, "look", 1)
    await bench.until_over(4)
    bench.start(handle, "waiting")
    await bench.until_over(5)

    assert sorted(found) == ["mine", "mine", "nothing", "nothing", "nothing", "nothing", "nothing"]


async def test_the_event_loop_has_its_turn_between_handlers_that_take_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "BURST_SECONDS", -1.0)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while bench.over < 20:
            turns += 1
            await asyncio.sleep(0)

    bench.start(at_once, count=20)
    await count_turns()

    assert turns >= 19


async def test_who_has_not_begun_when_it_is_closed_never_does(bench: Bench) -> None:
    bench.start(at_once, count=3)
    bench.launcher.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    bench.start(at_once)
    await bench.until_over(1)

    assert bench.over == 1


def test_what_waited_in_an_event_loop_that_is_gone_does_not_begin_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python puts such a task away when it finds that nobody has it any more: perhaps while another loop runs."""
    monkeypatch.setattr(launcher, "BURST_SECONDS", -1.0)
    ran = []

    async def handle() -> None:
        ran.append(asyncio.get_running_loop())

    async def leave_early() -> None:
        Bench().start(handle, count=10)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def collect() -> None:
        gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)

    first = asyncio.new_event_loop()
    first.run_until_complete(leave_early())
    first.close()
    assert 0 < len(ran) < 10
    asyncio.run(collect())

    assert set(ran) == {first}


async def test_a_handler_of_which_the_rest_is_put_away_is_closed(bench: Bench) -> None:
    """The event loop is gone, and Python puts away what was still waiting."""
    closed = []

    async def handle() -> None:
        try:
            await asyncio.Event().wait()
        except GeneratorExit:
            closed.append(VALUE.get())
            raise

    rest = bench._execute(cast("Work", Started()), handler_of(JobDefinition(name="job"), handle))
    waits_for = rest.send(None)
    waiting = launcher._Rest(rest, bench.launcher._context.copy(), waits_for).__await__()
    next(waiting)
    waiting.close()

    assert closed == ["nothing"]
