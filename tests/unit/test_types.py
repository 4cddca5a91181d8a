"""What type checkers are told is what happens. mypy checks this file like any other; here it is executed.

An unused `type: ignore` is an error: so each of them says that mypy refuses the line.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from tests.values import ORDER, Order

from mainspring import Context, Handle, Mainspring, Resource
from mainspring.errors import InvalidArguments
from mainspring.testing import inline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

app = Mainspring("postgresql://nobody@nowhere.invalid/nothing")


class Pool:
    def fetch(self) -> int:
        return 5


@app.resource
async def database() -> AsyncIterator[Pool]:
    yield Pool()


@app.middleware
async def count(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    assert_type(context.attempt, int)
    return await call_next()


@app.job
def total(order: Order, *, discount: Decimal = Decimal()) -> Decimal:
    return order.total - discount


@app.job(queue="mail")
async def send(context: Context, orders: list[Order]) -> dict[str, Path]:
    return {str(order.number): Path("sent") for order in orders}


@app.job
def fetch(*, pool: Pool = database.injected) -> set[int]:
    return {pool.fetch()}


async def test_a_result_has_the_type_that_the_handle_says() -> None:
    with inline(app):
        handle = await total.submit(ORDER, discount=Decimal("0.10"))
        assert_type(handle, Handle[Decimal])
        assert_type(await handle.result(), Decimal)
        assert await handle.result() == Decimal("1.00")

        handles = await send.submit_many([{"orders": [ORDER]}])
        assert_type(handles, list[Handle[dict[str, Path]]])
        assert await handles[0].result() == {"7": Path("sent")}


def test_code_that_is_not_async_is_told_the_same() -> None:
    with inline(app):
        assert_type(total.submit_sync(ORDER).result_sync(), Decimal)


async def test_arguments_are_those_of_the_handler_without_its_context() -> None:
    with inline(app):
        with pytest.raises(InvalidArguments):
            await total.submit("order")  # type: ignore[arg-type]
        with pytest.raises(InvalidArguments):
            await total.submit(ORDER, discont=1)  # type: ignore[call-arg]
        with pytest.raises(InvalidArguments):
            await send.submit()  # type: ignore[call-arg]
        with pytest.raises(InvalidArguments):
            await send.options(priority=1).submit(5)  # type: ignore[arg-type]


async def test_a_resource_has_the_type_that_it_yields() -> None:
    assert_type(database, Resource[Pool])
    assert_type(database.injected, Pool)
    with inline(app):
        result = await (await fetch.submit()).result()
    assert_type(result, set[int])
    assert result == {5}
