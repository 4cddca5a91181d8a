"""Chunk handlers in a real worker: one call, and each run has its own answer, retries, limits and history."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE, until
from tests.waiting import Calls as Counted

from mainspring import Cancel, Context, Fail, Mainspring, Outcome, Retry, RetryPolicy, Snooze, State
from mainspring.errors import RunCancelled, RunFailed
from mainspring.testing import run_until_idle
from mainspring.worker import handler_errors

from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    import asyncpg

    from mainspring import ChunkJob, Handle, Run
    from mainspring.app.chunk_job import ChunkJobDecorator
    from mainspring.testing import FrozenClock

LONG = timedelta(seconds=60)  # nobody waits for it: chunks are full
ONCE = RetryPolicy(max_attempts=1)


@dataclass
class Item:
    number: int


def items(*numbers: int) -> list[Item]:
    return [Item(number) for number in numbers]


async def found(handles: Sequence[Handle[Any]]) -> list[Run]:
    return [await handle.find() for handle in handles]


async def ended(handles: Sequence[Handle[Any]]) -> list[Run]:
    """The runs, once all of them are over."""
    await until(lambda: _are_over(handles))
    return await found(handles)


async def _are_over(handles: Sequence[Handle[Any]]) -> bool:
    return all(run.state in (State.SUCCEEDED, State.DEAD, State.CANCELLED) for run in await found(handles))


def outcomes(run: Run) -> list[str]:
    return [attempt.outcome for attempt in run.attempts]


class Calls:
    """A chunk handler that waits until it is let go, and notes what it was called with and whether it was stopped."""

    def __init__(self) -> None:
        self.made: list[list[int]] = []
        self.gate = asyncio.Event()
        self.stopped = 0

    async def make(self, given: list[Item]) -> list[int]:
        self.made.append([item.number for item in given])
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return [item.number * 10 for item in given]


@pytest.fixture
def calls() -> Calls:
    return Calls()


def job_of(app: Mainspring, calls: Calls, **options: Any) -> ChunkJob[Item, int]:
    chosen: dict[str, Any] = {"chunk": 3, "chunk_wait": LONG} | options

    async def multiply(given: list[Item]) -> list[int]:
        return await calls.make(given)

    decorate: ChunkJobDecorator = app.job(**chosen)
    return decorate(multiply)


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_one_call_gets_many_runs_and_each_has_its_own_result(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls, chunk=5)
    calls.gate.set()
    handles = await job.submit_many([*items(1, 2, 3, 4), {"number": 5}])
    async with working(app):
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [10, 20, 30, 40, 50]

    assert [sorted(call) for call in calls.made] == [[1, 2, 3, 4, 5]]
    for run in await found(handles):
        assert (run.state, outcomes(run), run.attempts[0].number) == (State.SUCCEEDED, ["succeeded"], 1)


async def test_a_chunk_that_does_not_become_full_is_called_after_its_wait(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls, chunk=100, chunk_wait=timedelta(milliseconds=1))
    calls.gate.set()
    async with working(app):
        assert await (await job.submit(Item(7))).result(timeout=PATIENCE) == 70


async def test_chunks_become_full_where_there_is_a_single_slot(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls, chunk=20)
    calls.gate.set()
    handles = await job.submit_many(items(*range(100)))
    async with working(app, slots=1):
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [n * 10 for n in range(100)]

    assert [len(call) for call in calls.made] == [20] * 5


async def test_no_more_runs_are_taken_than_may_be_unsettled(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls, chunk=50, chunk_wait=timedelta(milliseconds=1))
    calls.gate.set()
    handles = await job.submit_many(items(*range(60)))
    async with working(app, max_unsettled=10):
        await asyncio.gather(*(handle.result(timeout=PATIENCE) for handle in handles))

    assert max(map(len, calls.made)) <= 10


async def test_an_answer_may_be_an_error_or_a_decision_for_its_run_alone(app: Mainspring) -> None:
    answers: dict[int, Any] = {
        1: "fine",
        2: ValueError("number two"),
        3: Cancel("not needed"),
        4: Fail("never"),
        5: Retry(after=3600.0),
        6: Snooze(for_=3600.0),
    }

    @app.job(chunk=6, chunk_wait=LONG, retry=ONCE)
    async def answer(given: list[Item]) -> list[str | Exception]:
        return [answers[item.number] for item in given]

    handles = await answer.options(retry=RetryPolicy(max_attempts=2)).submit_many(items(5, 6))
    handles += await answer.submit_many(items(1, 2, 3, 4))
    await run_until_idle(app)

    retried, snoozed, fine, failed, cancelled, never = await found(handles)
    assert (fine.state, await handles[2].result()) == (State.SUCCEEDED, "fine")
    assert (failed.state, outcomes(failed)) == (State.DEAD, ["failed"])
    assert "number two" in str(failed.attempts[0].error)
    assert (cancelled.state, never.state) == (State.CANCELLED, State.DEAD)
    assert (retried.state, outcomes(retried)) == (State.SCHEDULED, ["failed"])
    assert (snoozed.state, outcomes(snoozed)) == (State.SCHEDULED, ["snoozed"])


async def test_what_gather_returns_is_an_answer_for_each_run(app: Mainspring) -> None:
    async def one(item: Item) -> int:
        return 100 // item.number

    @app.job(chunk=3, chunk_wait=LONG, retry=ONCE)
    async def divide(given: list[Item]) -> list[int | BaseException]:
        return await asyncio.gather(*map(one, given), return_exceptions=True)

    handles = await divide.submit_many(items(2, 0, 4))
    await run_until_idle(app)

    assert [run.state for run in await found(handles)] == [State.SUCCEEDED, State.DEAD, State.SUCCEEDED]
    with pytest.raises(RunFailed, match="ZeroDivisionError"):
        await handles[1].result()


async def test_what_the_handler_raises_fails_all_its_runs_and_each_is_retried_by_its_own_policy(
    app: Mainspring, calls: Calls
) -> None:
    seen = []

    @app.job(chunk=3, chunk_wait=LONG, retry=ONCE)
    async def fail_once(given: list[Item]) -> list[int]:
        seen.append(len(given))
        if len(seen) == 1:
            raise ConnectionError("no answer")
        return [item.number for item in given]

    handles = await fail_once.submit_many(items(1))
    again = RetryPolicy(max_attempts=2, first_delay=timedelta(0))
    handles += await fail_once.options(retry=again).submit_many(items(2, 3))
    await run_until_idle(app)

    first, second, third = await found(handles)
    assert (first.state, outcomes(first)) == (State.DEAD, ["failed"])
    assert [outcomes(run) for run in (second, third)] == [["failed", "succeeded"]] * 2
    assert "no answer" in str(third.attempts[0].error)
    assert seen == [3, 2]


async def test_the_text_of_an_error_of_many_runs_is_made_once(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Counted(handler_errors.traceback_of)
    monkeypatch.setattr(handler_errors, "traceback_of", texts)

    @app.job(chunk=50, chunk_wait=LONG, retry=ONCE)
    async def fail(given: list[Item]) -> None:
        raise ConnectionError("no answer")

    handles = await fail.submit_many(items(*range(50)))
    await run_until_idle(app)

    assert texts.count == 1
    for run in await found(handles):
        assert "in fail" in str(run.attempts[0].error)


async def test_too_few_answers_end_all_runs_as_dead_letters(app: Mainspring) -> None:
    """The work may have been done: doing it again would not help."""

    @app.job(chunk=3, chunk_wait=LONG)
    async def forget(given: list[Item]) -> list[int]:
        return [1]

    handles = await forget.submit_many(items(1, 2, 3))
    await run_until_idle(app)

    for run in await found(handles):
        assert (run.state, outcomes(run)) == (State.DEAD, ["failed"])
        assert "invalid-answers" in str(run.attempts[0].error)


async def test_a_result_that_does_not_fit_or_cannot_be_stored_ends_its_run_alone(app: Mainspring) -> None:
    @app.job(chunk=4, chunk_wait=LONG)
    async def answer(given: list[Item]) -> list[Any]:
        return ["fine", object(), "\0", "fine"]

    @app.job(chunk=2, chunk_wait=LONG)
    async def count(given: list[Item]) -> list[int]:
        return [1, "two"]  # type: ignore[list-item]

    handles = [await answer.submit(item) for item in items(1, 2, 3, 4)]
    handles += [await count.submit(item) for item in items(1, 2)]
    await run_until_idle(app)

    runs = await found(handles)
    assert sorted(run.state for run in runs[:4]) == [State.DEAD, State.DEAD, State.SUCCEEDED, State.SUCCEEDED]
    assert sorted(run.state for run in runs[4:]) == [State.DEAD, State.SUCCEEDED]


async def test_arguments_that_cannot_be_read_fail_their_run_alone_and_at_once(
    app: Mainspring, calls: Calls, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    job = job_of(app, calls)
    calls.gate.set()
    handles = await job.submit_many(items(1, 2, 3))
    await connection.execute("update ready set payload = $1 where id = $2", b'{"number":"two"}', handles[1].id)
    async with working(app):
        first, second, third = await ended(handles)

    assert [first.state, second.state, third.state] == [State.SUCCEEDED, State.DEAD, State.SUCCEEDED]
    assert "argument 'number' does not fit" in str(second.attempts[0].error)
    assert sorted(calls.made[0]) == [1, 3]


async def test_nothing_returned_is_success_without_a_result(app: Mainspring) -> None:
    @app.job(chunk=2, chunk_wait=LONG)
    async def store(given: list[Item]) -> None: ...

    handles = await store.submit_many(items(1, 2))
    assert await run_until_idle(app) == {Outcome.SUCCEEDED: 2}
    assert [run.state for run in await found(handles)] == [State.SUCCEEDED] * 2


# ── the test kit ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_test_kit_waits_for_nobody_to_fill_a_chunk(
    frozen_app: Mainspring, clock: FrozenClock, calls: Calls
) -> None:
    job = job_of(frozen_app, calls, chunk=100)
    calls.gate.set()
    handles = await job.submit_many(items(*range(30)))
    assert await run_until_idle(frozen_app) == {Outcome.SUCCEEDED: 30}

    assert [await handle.result() for handle in handles] == [n * 10 for n in range(30)]
    assert [len(call) for call in calls.made] == [30]


# ── being stopped ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_is_cancelled_leaves_its_chunk_and_the_others_go_on(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app, cancel_grace=0.0):
        await until(lambda: calls.made)
        await handles[1].cancel(reason="one of them")
        with pytest.raises(RunCancelled):
            await handles[1].result(timeout=PATIENCE)
        calls.gate.set()
        runs = await ended(handles)

    assert [run.state for run in runs] == [State.SUCCEEDED, State.CANCELLED, State.SUCCEEDED]
    assert (len(calls.made), calls.stopped) == (1, 0)


async def test_a_cancelled_run_learns_it_by_its_context_and_may_answer_in_time(app: Mainspring) -> None:
    begun = asyncio.Event()

    @app.job(chunk=2, chunk_wait=LONG)
    async def watch(contexts: list[Context], given: list[Item]) -> list[int | Exception]:
        begun.set()
        await until(lambda: any(context.is_cancelled for context in contexts))
        return [
            RunCancelled("stopped") if context.is_cancelled else item.number
            for context, item in zip(contexts, given, strict=True)
        ]

    handles = await watch.submit_many(items(1, 2))
    async with working(app, cancel_grace=600.0):
        await begun.wait()
        await handles[0].cancel()
        runs = await ended(handles)

    assert [run.state for run in runs] == [State.CANCELLED, State.SUCCEEDED]


async def test_a_chunk_all_of_whose_runs_are_cancelled_is_stopped(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app, cancel_grace=600.0):
        await until(lambda: calls.made)
        for handle in handles:
            await handle.cancel()
        runs = await ended(handles)

    assert ([run.state for run in runs], calls.stopped) == ([State.CANCELLED] * 3, 1)


async def test_a_drain_interrupts_a_chunk_and_all_its_runs_go_back_in_line(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app):
        await until(lambda: calls.made)

    assert calls.stopped == 1
    for run in await found(handles):
        assert (run.state, outcomes(run)) == (State.READY, ["interrupted"])


async def test_a_drain_gives_back_a_chunk_that_is_not_full_without_a_trace(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls)
    async with working(app) as worker:
        handles = await job.submit_many(items(1, 2))
        await until(lambda: worker.parts.executor.capacity.gatherer.waiting == 2)

    for run in await found(handles):
        assert (run.state, outcomes(run)) == (State.READY, [])
    assert calls.made == []


async def test_a_drain_lets_a_chunk_finish_within_the_grace(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app, grace=600.0):
        await until(lambda: calls.made)
        asyncio.get_running_loop().call_soon(calls.gate.set)

    assert [run.state for run in await found(handles)] == [State.SUCCEEDED] * 3


# ── time limits ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_that_takes_too_long_times_out_for_each_run(app: Mainspring, calls: Calls) -> None:
    job = job_of(app, calls, timeout=0.05, retry=ONCE)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app):
        runs = await ended(handles)

    assert [(run.state, outcomes(run)) for run in runs] == [(State.DEAD, ["timed_out"])] * 3
    assert calls.stopped == 1


async def test_the_shortest_limit_of_its_runs_is_that_of_the_call_and_the_others_go_back_in_line(
    app: Mainspring, calls: Calls
) -> None:
    job = job_of(app, calls, timeout=600.0, retry=ONCE)
    hurried = await job.options(timeout=0.05).submit(Item(1))
    others = await job.submit_many(items(2, 3))
    async with working(app):
        (run,) = await ended([hurried])
        await until(lambda: _all_have(others, "interrupted"))

    assert (run.state, outcomes(run)) == (State.DEAD, ["timed_out"])
    assert [each.attempts[0].outcome for each in await found(others)] == ["interrupted"] * 2


async def _all_have(handles: Sequence[Handle[Any]], outcome: str) -> bool:
    return all(outcome in outcomes(run) for run in await found(handles))


async def test_a_call_that_would_not_stop_is_abandoned_and_all_its_runs_time_out(app: Mainspring) -> None:
    gate = threading.Event()

    @app.job(chunk=2, chunk_wait=LONG, timeout=0.05, retry=ONCE)
    def block(given: list[Item]) -> None:
        gate.wait()

    handles = await block.submit_many(items(1, 2))
    async with working(app, cancel_grace=0.0) as worker:
        runs = await ended(handles)
        assert worker.parts.executor.capacity.in_hand == 0
        gate.set()
        await until(lambda: worker.parts.executor.capacity.free_slots() == 200)

    assert [(run.state, outcomes(run)) for run in runs] == [(State.DEAD, ["timed_out"])] * 2


# ── threads ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_plain_function_is_called_in_one_thread_for_the_whole_chunk(app: Mainspring) -> None:
    names = set()

    @app.job(chunk=50, chunk_wait=LONG)
    def square(given: list[Item]) -> list[int]:
        names.add(threading.current_thread().name)
        return [item.number**2 for item in given]

    handles = await square.submit_many(items(*range(50)))
    async with working(app, threads=1):
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [n**2 for n in range(50)]

    assert len(names) == 1
    assert all(name.startswith("mainspring-handler") for name in names)


async def test_what_needs_no_thread_goes_on_while_chunks_wait_for_one(
    app: Mainspring, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    """Once all threads are taken, runs of such chunks stay in line for other workers."""
    gate, begun = threading.Semaphore(0), []

    @app.job(chunk=5, chunk_wait=LONG)
    def block(given: list[Item]) -> None:
        begun.append(len(given))
        gate.acquire()

    @app.job
    async def quick() -> str:
        return "done"

    await block.submit_many(items(*range(100)))
    async with working(app, slots=20, threads=1):
        await until(lambda: begun)
        for _ in range(3):
            assert await (await quick.submit()).result(timeout=PATIENCE) == "done"
        assert await connection.fetchval("select count(*) from ready") >= 50
        gate.release(1_000)


# ── what surrounds it ───────────────────────────────────────────────────────────────────────────────────────────


async def test_each_run_of_a_chunk_has_its_context(app: Mainspring) -> None:
    @app.job(chunk=2, chunk_wait=LONG, retry=RetryPolicy(max_attempts=2, first_delay=timedelta(0)))
    async def remember(contexts: list[Context], given: list[Item]) -> list[Any]:
        for context, item in zip(contexts, given, strict=True):
            context.log(f"this is {item.number}")
            context.progress(0.5, "half")
            if context.attempt == 1:
                await context.checkpoint(item.number * 10)
        if contexts[0].attempt == 1:
            raise ValueError("once")
        return [[context.run_id.hex, context.checkpointed, context.headers["x"]] for context in contexts]

    handles = [await remember.options(headers={"x": str(n)}).submit(Item(n)) for n in (1, 2)]
    await run_until_idle(app)

    assert [await handle.result() for handle in handles] == [
        [handles[0].id.hex, 10, "1"],
        [handles[1].id.hex, 20, "2"],
    ]
    for number, handle in enumerate(handles, start=1):
        assert [line.text for line in await handle.logs()] == [f"this is {number}"] * 2


async def test_lines_of_logging_are_kept_with_one_run_of_the_chunk(app: Mainspring) -> None:
    @app.job(chunk=2, chunk_wait=LONG)
    async def speak(given: list[Item]) -> None:
        logging.getLogger("shop").warning("for %d", len(given))

    handles = await speak.submit_many(items(1, 2))
    await run_until_idle(app)

    lines = [[line.text for line in await handle.logs()] for handle in handles]
    assert sorted(lines) == [[], ["for 2"]]


async def test_a_chunk_is_given_resources(app: Mainspring) -> None:
    @app.resource
    async def factor() -> AsyncIterator[int]:
        yield 7

    @app.job(chunk=2, chunk_wait=LONG)
    async def multiply(given: list[Item], *, factor: int = factor.injected) -> list[int]:
        return [item.number * factor for item in given]

    handles = await multiply.submit_many(items(1, 2))
    await run_until_idle(app)

    assert [await handle.result() for handle in handles] == [7, 14]


async def test_middleware_goes_around_each_run_and_the_call_is_one(app: Mainspring) -> None:
    seen, calls = [], []

    @app.middleware
    async def judge(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        if context.headers["x"] == "refused":
            raise Fail("refused")
        if context.headers["x"] == "answered":
            return -1
        try:
            return 1000 + await call_next()
        except ValueError as error:
            seen.append(str(error))
            raise

    @app.job(chunk=4, chunk_wait=LONG, retry=ONCE)
    async def double(given: list[Item]) -> list[int | Exception]:
        calls.append([item.number for item in given])
        return [item.number * 2 if item.number else ValueError("zero") for item in given]

    wishes = [("plain", 1), ("refused", 2), ("answered", 3), ("plain", 0)]
    handles = [await double.options(headers={"x": wish}).submit(Item(n)) for wish, n in wishes]
    await run_until_idle(app)

    assert [run.state for run in await found(handles)] == [State.SUCCEEDED, State.DEAD, State.SUCCEEDED, State.DEAD]
    assert [await handles[0].result(), await handles[2].result()] == [1002, -1]
    assert (sorted(calls[0]), len(calls), seen) == ([0, 1], 1, ["zero"])


async def test_middleware_that_lets_one_in_at_a_time_does_not_stop_a_chunk_for_ever(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.worker.chunk_middleware.PATIENCE_SECONDS", 0.01)
    door, calls = asyncio.Semaphore(1), []

    @app.middleware
    async def one_at_a_time(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        async with door:
            return await call_next()

    @app.job(chunk=3, chunk_wait=LONG)
    async def double(given: list[Item]) -> list[int]:
        calls.append(len(given))
        return [item.number * 2 for item in given]

    handles = await double.submit_many(items(1, 2, 3))
    await run_until_idle(app)

    assert [await handle.result() for handle in handles] == [2, 4, 6]
    assert calls == [1, 1, 1]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_what_middleware_or_handler_raise_costs_attempts_and_not_the_worker(
    app: Mainspring, error: BaseException
) -> None:
    @app.middleware
    async def pass_on(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        if context.headers.get("x"):
            raise error
        return await call_next()

    @app.job(chunk=2, chunk_wait=LONG, retry=ONCE)
    async def explode(given: list[Item]) -> None:
        raise error

    handles = [await explode.submit(Item(1)), await explode.options(headers={"x": "1"}).submit(Item(2))]
    await run_until_idle(app)

    assert [run.state for run in await found(handles)] == [State.DEAD, State.DEAD]


async def test_middleware_is_told_when_its_chunk_is_stopped(app: Mainspring, calls: Calls) -> None:
    told = []

    @app.middleware
    async def pass_on(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call_next()
        except asyncio.CancelledError:
            told.append(context.run_id)
            raise

    job = job_of(app, calls)
    handles = await job.submit_many(items(1, 2, 3))
    async with working(app):
        await until(lambda: calls.made)

    assert sorted(told) == sorted(handle.id for handle in handles)
    assert [outcomes(run) for run in await found(handles)] == [["interrupted"]] * 3


async def test_a_chunk_that_waits_for_other_runs_leaves_its_slot(app: Mainspring) -> None:
    @app.job
    async def child(number: int) -> int:
        return number + 1

    @app.job(chunk=2, chunk_wait=LONG)
    async def parent(given: list[Item]) -> list[int]:
        children = await child.submit_many([{"number": item.number} for item in given])
        return [await each.result() for each in children]

    handles = await parent.submit_many(items(1, 2))
    async with working(app, slots=1):
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [2, 3]


# ── a job that changes ──────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_of_a_plain_job_can_be_executed_by_a_chunk_handler(app: Mainspring, url: str, calls: Calls) -> None:
    @app.job(name="multiply")
    async def plain(number: int) -> int:
        return number

    handles = await plain.submit_many([{"number": n} for n in (1, 2, 3)])
    later = Mainspring(url, submitted_by="tester")
    job_of(later, calls)
    calls.gate.set()
    async with later, working(later):
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [10, 20, 30]

    assert len(calls.made) == 1
