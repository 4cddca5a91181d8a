"""What cannot be a job is refused where it is decorated, with a remedy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nobody@nowhere.invalid/nothing")


def refusal(call: Callable[[], Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        call()
    return caught.value


class Sender:
    def __call__(self) -> None: ...


def numbers() -> Iterator[int]:
    yield 1


async def numbers_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Sender, "Sender cannot be a job: it is a class. Decorate a function that makes one and does the work."),
        (5, "5 cannot be a job: it is not a function. Decorate one: @app.job above def or async def."),
        ("mail", "'mail' cannot be a job: it is not a function. Decorate one: @app.job above def or async def."),
        (numbers, "numbers cannot be a job: it is a generator: calling it does nothing yet. Return a list, or submit"),
        (numbers_later, "numbers_later cannot be a job: it is a generator: calling it does nothing yet. Return a list"),
    ],
)
def test_what_is_no_handler_is_refused(app: Mainspring, function: Any, message: str) -> None:
    error = refusal(lambda: app.job(function))

    assert error.code == "invalid-handler"
    assert str(error).startswith(message)


@pytest.mark.parametrize("function", [Sender(), partial(print, "x")])
def test_what_can_be_called_but_is_no_function_is_refused(app: Mainspring, function: Any) -> None:
    assert "it is not a function" in refusal(lambda: app.job(name="send")(function)).message


def test_a_job_is_not_decorated_twice(app: Mainspring) -> None:
    @app.job
    def send() -> None: ...

    assert "it is not a function" in refusal(lambda: app.job(name="again")(send)).message


def after(n: int, context: Context) -> None: ...
def maybe(context: Context | None = None) -> None: ...
def by_name(*, context: Context) -> None: ...
def twice(first: Context, context: Context) -> None: ...


@pytest.mark.parametrize("function", [after, maybe, by_name, twice])
def test_a_context_that_is_not_the_first_parameter_is_refused(app: Mainspring, function: Any) -> None:
    error = refusal(lambda: app.job(function))

    assert error.code == "context-not-first"
    assert error.fields["field"] == "context"
    assert "a Context is given to the first parameter, and to that alone" in error.message
    assert error.hint == f"Write: def {function.__name__}(context: Context, …)."


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("retries", "Did you mean retry=RetryPolicy(max_attempts=…)?"),
        ("max_retries", "Did you mean retry=RetryPolicy(max_attempts=…)?"),
        ("time_limit", "Did you mean timeout=…?"),
        ("batch_size", "Did you mean chunk=…?"),
        ("flush_interval", "Did you mean chunk_wait=…?"),
        ("prioritty", "Did you mean 'priority'?"),
        ("command", "Known: after, backlog, breaker, calendars, capture_logs and 29 more."),
    ],
)
def test_an_option_that_there_is_not_is_refused(app: Mainspring, option: str, hint: str) -> None:
    error = refusal(lambda: app.job(**{option: 3}))  # type: ignore[call-overload]

    assert (error.code, error.message) == ("unknown-option", f"Jobs have no option '{option}'.")
    assert error.hint == hint
    assert error.fields["field"] == option


def test_an_option_that_commands_do_not_have_is_refused(app: Mainspring) -> None:
    assert refusal(lambda: app.command("list", ["ls"], retries=3)).code == "unknown-option"
