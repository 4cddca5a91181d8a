"""Inline mode: submitting executes, and nothing else is there."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mainspring import Context, Mainspring, MainspringError
from mainspring.errors import InvalidArguments, RunAlreadyEnded, RunFailed, RunNotFound
from mainspring.testing import inline


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nobody@nowhere.invalid/nothing")


async def test_submitting_executes_and_the_handle_has_the_result(app: Mainspring) -> None:
    @app.job
    async def add(a: int, b: int = 2) -> int:
        return a + b

    with inline(app):
        handle = await add.submit(1)

    assert await handle.result() == 3


async def test_arguments_and_results_go_through_json_as_in_real_life(app: Mainspring) -> None:
    @app.job
    async def echo(pair: tuple[int, int]) -> Any:
        assert isinstance(pair, tuple)
        return pair

    with inline(app):
        handle = await echo.submit(pair=(1, 2))

    assert await handle.result() == [1, 2]


async def test_wrong_arguments_are_refused_when_they_are_submitted(app: Mainspring) -> None:
    @app.job
    async def add(a: int) -> int:
        return a

    with inline(app), pytest.raises(InvalidArguments, match="argument 'a'"):
        await add.submit(a="one")  # type: ignore[arg-type]


async def test_a_failing_handler_fails_its_run_and_not_its_submission(app: Mainspring) -> None:
    @app.job
    async def fail() -> None:
        raise ValueError("no such invoice")

    with inline(app):
        handle = await fail.submit()

    with pytest.raises(RunFailed, match="no such invoice") as caught:
        await handle.result()
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_result_that_cannot_be_stored_fails_the_run(app: Mainspring) -> None:
    @app.job
    async def unkeepable() -> str:
        return "\0"

    with inline(app):
        handle = await unkeepable.submit()

    with pytest.raises(RunFailed) as caught:
        await handle.result()
    assert caught.value.fields["error"]["code"] == "result-not-storable"  # type: ignore[index]


async def test_the_context_is_that_of_a_first_attempt(app: Mainspring) -> None:
    seen: list[Context] = []

    @app.job
    async def look(context: Context, word: str) -> str:
        seen.append(context)
        return word

    with inline(app):
        handle = await look.submit(word="hello")

    assert (seen[0].run_id, seen[0].job, seen[0].attempt, seen[0].fence) == (handle.id, "look", 1, 1)


async def test_handlers_that_submit_others_nest(app: Mainspring) -> None:
    @app.job
    def leaf(n: int) -> int:
        return n

    @app.job
    def trunk(n: int) -> int:
        return leaf.submit_sync(n).result_sync() + 1

    @app.job
    async def root(n: int) -> int:
        return await (await trunk.submit(n)).result() + 1

    with inline(app) as handles:
        assert await (await root.submit(1)).result() == 3
    assert [await handle.result() for handle in handles] == [1, 2, 3]


def test_a_program_without_a_loop_gets_its_results_too(app: Mainspring) -> None:
    @app.job
    def where() -> str:
        return threading.current_thread().name

    @app.job
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    with inline(app):
        assert where.submit_sync().result_sync() == threading.current_thread().name
        assert [handle.result_sync() for handle in double.submit_many_sync([{"n": 1}, {"n": 2}])] == [2, 4]


async def test_many_are_executed_in_order(app: Mainspring) -> None:
    done: list[int] = []

    @app.job
    async def note(n: int) -> None:
        done.append(n)

    with inline(app):
        await note.submit_many([{"n": 1}, {"n": 2}, {"n": 3}])

    assert done == [1, 2, 3]


async def test_an_inline_run_can_neither_be_found_nor_cancelled(app: Mainspring) -> None:
    @app.job
    async def nothing() -> None: ...

    with inline(app):
        handle = await nothing.submit()

    with pytest.raises(RunNotFound, match="inline"):
        await handle.find()
    with pytest.raises(RunAlreadyEnded, match="succeeded"):
        await handle.cancel()


async def test_after_the_block_submissions_go_to_the_database_again(app: Mainspring) -> None:
    @app.job
    async def nothing() -> None: ...

    with inline(app):
        await nothing.submit()
    with pytest.raises(MainspringError, match="cannot be reached"):
        await nothing.submit()


@pytest.mark.parametrize("is_sync", [False, True])
@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit, BaseException])
async def test_whatever_a_handler_raises_fails_its_run(
    app: Mainspring, kind: type[BaseException], is_sync: bool
) -> None:
    @app.job
    def fail() -> None:
        raise kind("no more")

    with inline(app):
        async with asyncio.timeout(30):
            handle = await (asyncio.to_thread(fail.submit_sync) if is_sync else fail.submit())

    with pytest.raises(RunFailed, match="no more") as caught:
        await handle.result()
    assert type(caught.value.__cause__) is kind


async def test_a_generator_exit_of_an_async_handler_fails_its_run_and_nobody_else(app: Mainspring) -> None:
    @app.job
    async def fail() -> None:
        raise GeneratorExit("no more")

    with inline(app):
        handle = await fail.submit()

    with pytest.raises(RunFailed, match="no more"):
        await handle.result()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_whoever_interrupts_the_tests_interrupts_them(app: Mainspring, kind: type[BaseException]) -> None:
    @app.job
    def interrupt() -> None:
        raise kind

    with inline(app), pytest.raises(kind):
        interrupt.submit_sync()


def test_blocking_twins_of_an_inline_handle_need_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_REQUIRE_SERVER", "1")
    app = Mainspring()

    @app.job
    def greet(name: str) -> str:
        return f"Hello {name}"

    with inline(app):
        handle = app.jobs.submit_sync("greet", {"name": "Ada"})

        assert handle.result_sync() == "Hello Ada"
        assert handle.logs_sync() == []
        for act in (handle.find_sync, handle.watch_sync, handle.cancel_sync, handle.change_sync):
            with pytest.raises((RunNotFound, RunAlreadyEnded)):
                act()
