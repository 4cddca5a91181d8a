"""The threads that handlers are called in."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from mainspring.worker.threads import HandlerThreads

from ..waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def threads() -> Iterator[HandlerThreads]:
    threads = HandlerThreads(most=2)
    yield threads
    threads.close()


async def test_one_after_the_other_they_need_one_thread(threads: HandlerThreads) -> None:
    used = set()
    for _ in range(5):
        used.add(await threads.call(threading.current_thread))
        await until(lambda: threads._idle)

    assert len(used) == 1
    assert all(each.daemon for each in used), "the process must be able to end without them"


async def test_as_many_at_once_as_there_may_be_threads(threads: HandlerThreads) -> None:
    gate, begun = threading.Event(), []

    def wait(number: int) -> int:
        begun.append(number)
        gate.wait()
        return number

    calls = [threads.call(lambda number=number: wait(number)) for number in range(4)]  # type: ignore[misc]
    await until(lambda: len(begun) == 2)
    calls[2].cancel()
    gate.set()

    assert [await calls[number] for number in (0, 1, 3)] == [0, 1, 3]
    assert sorted(begun) == [0, 1, 3], "what was cancelled before its turn does not begin"


async def test_what_has_not_begun_at_the_end_is_cancelled() -> None:
    threads, gate = HandlerThreads(most=1), threading.Event()
    begun, waiting = threads.call(gate.wait), threads.call(gate.wait)
    await until(lambda: threads._calls.qsize() == 1)
    threads.close()
    gate.set()

    assert await begun is True
    assert waiting.cancelled()
    with pytest.raises(RuntimeError, match="closed"):
        threads.call(gate.wait)


async def test_a_future_that_was_cancelled_is_told_as_a_task_that_was(threads: HandlerThreads) -> None:
    def give_up() -> None:
        raise concurrent.futures.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await threads.call(give_up)


class HandlerFailed(Exception): ...


async def test_an_error_does_not_wait_for_the_garbage_collector(threads: HandlerThreads) -> None:
    def fail() -> None:
        raise HandlerFailed

    async def call() -> weakref.ref[HandlerFailed]:
        try:
            await threads.call(fail)
        except HandlerFailed as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()
    try:
        left = await asyncio.create_task(call())
        await until(lambda: threads._idle)
        assert left() is None
    finally:
        gc.enable()
