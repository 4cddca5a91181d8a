"""Errors that cannot travel as they are from a thread, or between tasks, to whoever waits for the call.

A future refuses StopIteration, and its waiter then waits for ever; GeneratorExit, thrown into a coroutine that waits,
closes what that coroutine is in the middle of. Both travel inside another error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

UNFIT_TO_TRAVEL = (StopIteration, GeneratorExit)


class CarriedError(Exception):
    """Has in it what a handler raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"The handler raised {type(error).__qualname__}.")
        self.error = error


def call_carrying(function: Callable[..., Any], *positional: Any, **named: Any) -> Any:
    """Call a handler in a thread; whatever it raises can travel."""
    try:
        return function(*positional, **named)
    except UNFIT_TO_TRAVEL as error:
        raise CarriedError(error) from error


async def await_carrying(awaitable: Awaitable[Any]) -> Any:
    """The same for what a task of its own awaits. (Python makes a RuntimeError of a StopIteration here.)"""
    try:
        return await awaitable
    except GeneratorExit as error:
        raise CarriedError(error) from error


def unpacked(error: BaseException) -> BaseException:
    """What the handler raised."""
    return error.error if isinstance(error, CarriedError) else error
