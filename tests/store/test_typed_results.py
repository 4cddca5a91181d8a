"""Results come back as what they were, from wherever they are asked for."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.values import ADDRESS, CASES, ORDER, Address, Order

from mainspring import Context, Mainspring, RetryPolicy, State
from mainspring.errors import InvalidResult, RunFailed
from mainspring.testing import inline, run_until_idle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def test_every_kind_of_value_goes_there_and_back(frozen_app: Mainspring) -> None:
    jobs = [job for number, (kind, _) in enumerate(CASES) for job in echoes(frozen_app, str(number), kind)]
    values = [value for _, value in CASES for _ in range(2)]

    handles = [await job.submit(value) for job, value in zip(jobs, values, strict=True)]
    await run_until_idle(frozen_app)

    assert [await handle.result(timeout=0) for handle in handles] == values


def echoes(app: Mainspring, name: str, kind: Any) -> tuple[Any, Any]:
    """A job that runs in a thread, and one that is async."""

    def echo(value: Any) -> Any:
        return value

    async def echo_async(value: Any) -> Any:
        return value

    for function in (echo, echo_async):
        function.__annotations__ = {"value": kind, "return": kind}
    return app.job(name=name)(echo), app.job(name=f"{name}-async")(echo_async)


async def test_a_result_by_its_id_is_converted_where_the_job_is_known(frozen_app: Mainspring, url: str) -> None:
    @frozen_app.job
    def load() -> Order:
        return ORDER

    handle = await load.submit()
    await run_until_idle(frozen_app)

    async with Mainspring(url) as other:
        plain = await other.runs.result(handle.id)
    assert await frozen_app.runs.result(handle.id) == ORDER
    assert plain["lines"] == [{"price": "1.10", "file": "a/b"}]


@pytest.mark.parametrize("result", [None, {"street": "Elm"}])
async def test_a_result_that_is_not_what_was_promised_makes_the_run_dead_at_once(
    frozen_app: Mainspring, result: Any
) -> None:
    calls = []

    @frozen_app.job(retry=RetryPolicy(max_attempts=5))
    def load() -> Address:
        calls.append(1)
        return result  # type: ignore[no-any-return]

    handle = await load.submit()
    await run_until_idle(frozen_app)

    with pytest.raises(RunFailed, match="is dead: InvalidResult: load: the result does not fit") as caught:
        await handle.result()
    assert caught.value.error["code"] == "invalid-result"
    assert len(calls) == 1


async def test_middleware_that_forgets_the_result_is_told(frozen_app: Mainspring) -> None:
    @frozen_app.middleware
    async def forget(context: Context, call_next: Callable[[], Awaitable[Any]]) -> None:
        await call_next()

    @frozen_app.job
    def load() -> Address:
        return ADDRESS

    handle = await load.submit()
    await run_until_idle(frozen_app)

    with pytest.raises(RunFailed, match="Return what the annotation says, from middleware too"):
        await handle.result()


async def test_a_result_of_an_older_version_that_does_not_fit_is_an_error_and_can_be_seen(
    frozen_app: Mainspring, url: str
) -> None:
    @frozen_app.job
    def load() -> str:
        return "Elm"

    handle = await load.submit()
    await run_until_idle(frozen_app)

    async with Mainspring(url) as newer:

        @newer.job(name="load")
        def load_newer() -> Address:
            return ADDRESS

        with pytest.raises(InvalidResult, match="As plain JSON, the run's last attempt has it"):
            await newer.runs.result(handle.id)
        run = await newer.runs.find(handle.id)
    assert (run.state, run.attempts[-1].result) == (State.SUCCEEDED, "Elm")


async def test_the_result_of_a_transactional_run_is_what_it_was_finished_with(frozen_app: Mainspring) -> None:
    @frozen_app.job(delivery="transactional")
    async def pay(context: Context, amount: Decimal) -> Decimal:
        await context.finish(None, amount)
        return amount

    @frozen_app.job(delivery="transactional")
    async def note(context: Context) -> None:
        await context.finish(None, {"at": Decimal("1.10")})

    with inline(frozen_app):
        assert await (await pay.submit(Decimal("1.10"))).result() == Decimal("1.10")
        assert await (await note.submit()).result() == {"at": "1.10"}  # type: ignore[func-returns-value]


async def test_a_transactional_run_is_not_finished_with_what_was_not_promised(frozen_app: Mainspring) -> None:
    @frozen_app.job(delivery="transactional")
    async def pay(context: Context) -> Decimal:
        await context.finish(None, "much")
        return Decimal(1)

    with inline(frozen_app), pytest.raises(RunFailed, match="InvalidResult: pay: the result does not fit"):
        await (await pay.submit()).result()
