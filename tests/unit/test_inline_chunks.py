"""Chunk handlers in inline mode: called alone or in chunks, as they are submitted."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Cancel, Context, Mainspring
from mainspring.errors import InvalidArguments, RunCancelled, RunFailed
from mainspring.testing import inline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@dataclass
class Item:
    number: int


def items(*numbers: int) -> list[Item]:
    return [Item(number) for number in numbers]


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nobody@nowhere.invalid/nothing")


async def test_what_is_submitted_alone_is_called_alone(app: Mainspring) -> None:
    @app.job(chunk=10)
    async def count(given: list[Item]) -> list[int]:
        return [len(given)] * len(given)

    with inline(app):
        assert await (await count.submit(Item(1))).result() == 1
        assert await (await count.submit(number=2)).result() == 1
        with pytest.raises(InvalidArguments, match="argument 'number'"):
            await count.submit(number="two")


async def test_what_is_submitted_together_is_called_in_chunks(app: Mainspring) -> None:
    @app.job(chunk=2)
    async def double(contexts: list[Context], given: list[Item]) -> list[tuple[int, int]]:
        assert len({context.run_id for context in contexts}) == len(given)
        return [(item.number * 2, len(given)) for item in given]

    with inline(app):
        handles = await double.submit_many([*items(1, 2), {"number": 3}])

    assert [await handle.result() for handle in handles] == [(2, 2), (4, 2), (6, 1)]


def test_a_plain_function_is_called_from_code_that_is_not_async(app: Mainspring) -> None:
    @app.job(chunk=3)
    def count(given: list[Item]) -> list[int]:
        return [len(given)] * len(given)

    with inline(app):
        assert [handle.result_sync() for handle in count.submit_many_sync(items(1, 2))] == [2, 2]
        assert count.submit_sync(Item(1)).result_sync() == 1
    app.close_sync()


@pytest.mark.parametrize("together", [True, False])
async def test_each_run_has_its_own_end(app: Mainspring, together: bool) -> None:
    @app.job(chunk=4)
    async def judge(given: list[Item]) -> list[int | Exception]:
        ends: list[Any] = [7, ValueError("no"), Cancel("not needed"), "seven"]
        return [ends[item.number] for item in given]

    with inline(app):
        if together:
            handles = await judge.submit_many(items(0, 1, 2, 3))
        else:
            handles = [await judge.submit(item) for item in items(0, 1, 2, 3)]

    assert await handles[0].result() == 7
    for handle, kind, cause in zip(
        handles[1:], (RunFailed, RunCancelled, RunFailed), ("no", "not needed", "Expected `int`"), strict=True
    ):
        with pytest.raises(kind, match=cause):
            await handle.result()


@pytest.mark.parametrize("together", [True, False])
async def test_what_the_handler_raises_or_forgets_fails_its_runs(app: Mainspring, together: bool) -> None:
    @app.job(chunk=2)
    async def explode(given: list[Item]) -> list[int]:
        if given[0].number == 0:
            raise ValueError("no such thing")
        return []

    with inline(app):
        for number, cause in ((0, "no such thing"), (1, "returned 0 answers")):
            if together:
                handles = await explode.submit_many(items(number, number))
            else:
                handles = [await explode.submit(Item(number))]
            for handle in handles:
                with pytest.raises(RunFailed, match=cause):
                    await handle.result()


async def test_resources_middleware_and_log_lines_are_as_in_a_worker(app: Mainspring) -> None:
    @app.resource
    async def factor() -> AsyncIterator[int]:
        yield 7

    @app.middleware
    async def add(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return 100 + await call_next()

    @app.job(chunk=2)
    async def multiply(given: list[Item], *, factor: int = factor.injected) -> list[int]:
        logging.getLogger("shop").warning("%d of them", len(given))
        return [item.number * factor for item in given]

    with inline(app):
        handles = await multiply.submit_many(items(1, 2))

    assert [await handle.result() for handle in handles] == [107, 114]
    assert [[line.text for line in await handle.logs()] for handle in handles] == [["2 of them"], []]
