"""What handlers raise: how it travels to whoever waits for the call, and how history keeps it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidAnswers, MainspringError, UnfitArguments
from mainspring.model.payload import printable
from mainspring.model.steering import Steering
from mainspring.worker.isolation.remote_error import RemoteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import TracebackType

MAX_ERROR_LENGTH = 2_000
MAX_TRACEBACK_LENGTH = 8_000

# Where the code lives that calls handlers: ours, and what runs threads and tasks.
_CALLERS = tuple(str(Path(str(file)).parent) for file in (__file__, asyncio.__file__, concurrent.futures.__file__))

# What another attempt would end in as well: whatever policy there is, the run becomes a dead letter at once.
HOPELESS = (UnfitArguments, InvalidAnswers)

_described: tuple[BaseException, str] | None = None


@contextmanager
def described_once(error: object) -> Iterator[None]:
    """For an error of many runs: within this block its text is made once, because that takes a while."""
    global _described
    if isinstance(error, BaseException):
        _described = (error, error_document(error))
    try:
        yield
    finally:
        _described = None


def error_document(error: BaseException) -> str:
    """An error as history keeps it: cleaned, bounded, as JSON text."""
    if _described is not None and _described[0] is error:
        return _described[1]
    remote = error.traceback_text if isinstance(error, RemoteError) else None
    document = {
        "type": printable(type(error).__qualname__, 200),
        "message": printable(message_of(error), MAX_ERROR_LENGTH),
        "traceback": printable((remote or traceback_of(error))[-MAX_TRACEBACK_LENGTH:], MAX_TRACEBACK_LENGTH),
    }
    if isinstance(error, (MainspringError, RemoteError, Steering)) and error.code is not None:
        document["code"] = printable(error.code, 100)
    return msgspec.json.encode(document).decode()


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # a hostile __str__ must not fail the worker
        return "(the error's text cannot be had)"


def _from_the_handler_on(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames that called the handler: they are the same for every error, and none of its author's."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_CALLERS):
        inner = inner.tb_next
    return inner or trace


def traceback_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, _from_the_handler_on(error.__traceback__)))
    except BaseException:  # hostile notes, or a cause that is: the same
        return "(the error's traceback cannot be had)"


# ── from a thread, or between tasks, to whoever waits for the call ──────────────────────────────────────────────

# A future refuses StopIteration, and its waiter then waits for ever; GeneratorExit, thrown into a coroutine that waits,
# closes what that coroutine is in the middle of. Both travel inside another error.
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
