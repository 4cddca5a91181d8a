"""Whatever a handler raises is a failed attempt: also what futures and coroutines cannot carry as it is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import RunFailed
from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.model.context import Context

ONCE = RetryPolicy(max_attempts=1)


class Enough(BaseException):
    """What an application may derive for itself."""


class EnoughOfIt(StopIteration):
    """Futures refuse it like the one it is derived from."""


class Unspeakable(BaseException):
    """Neither its text nor its traceback can be had."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise GeneratorExit

    def __str__(self) -> str:
        raise GeneratorExit


KINDS = (StopIteration, EnoughOfIt, GeneratorExit, Enough, Unspeakable, SystemExit, KeyboardInterrupt)


def raising(kind: type[BaseException], *, is_async: bool) -> Callable[[], Any]:
    def fail() -> None:
        raise kind("no more")

    async def fail_async() -> None:
        raise kind("no more")

    return fail_async if is_async else fail


def recorded(kind: type[BaseException], *, is_async: bool) -> str:
    """Of which type it is in history: Python itself makes a RuntimeError of a StopIteration in a coroutine."""
    return "RuntimeError" if is_async and issubclass(kind, StopIteration) else kind.__name__


@pytest.fixture(params=[False, True], ids=["bare", "through middleware"])
def surrounded_app(request: pytest.FixtureRequest, app: Mainspring) -> Mainspring:
    if request.param:

        @app.middleware
        async def pass_on(context: Context, call_next: Callable[[], Any]) -> Any:
            return await call_next()

    return app


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_a_handler_raises_is_a_failed_attempt(
    surrounded_app: Mainspring, kind: type[BaseException], is_async: bool
) -> None:
    fail = surrounded_app.job(name="fail", retry=ONCE)(raising(kind, is_async=is_async))

    handle = await fail.submit()
    await run_until_idle(surrounded_app)

    with pytest.raises(RunFailed) as caught:
        await handle.result(timeout=20)
    error: Any = caught.value.fields["error"]
    assert error["type"] == recorded(kind, is_async=is_async)


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit, Enough])
async def test_policies_know_it_by_its_own_name(app: Mainspring, kind: type[BaseException]) -> None:
    tries: list[int] = []

    @app.job(retry=RetryPolicy(max_attempts=3, never_on=(kind,)))
    def fail() -> None:
        tries.append(1)
        raise kind

    handle = await fail.submit()
    await run_until_idle(app)

    assert (await handle.find()).state == "dead"
    assert len(tries) == 1


async def test_a_handler_that_ran_out_of_something_to_iterate_is_tried_again(app: Mainspring) -> None:
    items: list[int] = []

    @app.job(retry=RetryPolicy(max_attempts=2, first_delay=timedelta(0)))
    def take_one() -> int:
        try:
            return next(iter(list(items)))
        finally:
            items.append(7)

    handle = await take_one.submit()
    await run_until_idle(app)
    await run_until_idle(app)

    assert await handle.result(timeout=20) == 7


async def test_a_result_that_fails_while_it_is_encoded_fails_its_attempt(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job(retry=ONCE)
    async def nothing() -> str:
        return "something"

    def encode(*arguments: Any, **named: Any) -> bytes:
        raise Enough

    monkeypatch.setattr("mainspring.model.results.encode", encode)
    handle = await nothing.submit()
    await run_until_idle(app)

    assert (await handle.find()).attempts[-1].error["type"] == "Enough"  # type: ignore[index]


async def test_a_failed_run_names_the_type_and_the_message_of_its_error(app: Mainspring) -> None:
    @app.job(retry=ONCE)
    def load() -> None:
        raise ValueError("no such order")

    handle = await load.submit()
    await run_until_idle(app)

    with pytest.raises(RunFailed) as caught:
        await handle.result()
    assert caught.value.message == f"Run {handle.id} is dead: ValueError: no such order"
    assert (caught.value.error["type"], caught.value.error["message"]) == ("ValueError", "no such order")
    assert "raise ValueError" in caught.value.error["traceback"]


async def test_a_run_that_failed_without_a_message_names_the_type(app: Mainspring) -> None:
    @app.job(retry=ONCE)
    def load() -> None:
        raise KeyError

    handle = await load.submit()
    await run_until_idle(app)

    with pytest.raises(RunFailed, match="is dead: KeyError See: mainspring run show"):
        await handle.result()
