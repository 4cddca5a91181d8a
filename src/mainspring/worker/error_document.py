"""Errors of handlers as history keeps them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import MainspringError
from mainspring.model.payload import printable
from mainspring.model.steering import Steering
from mainspring.worker.isolation.remote_error import RemoteError

if TYPE_CHECKING:
    from types import TracebackType

MAX_ERROR_LENGTH = 2_000
MAX_TRACEBACK_LENGTH = 8_000

# Where the code lives that calls handlers: ours, and what runs threads and tasks.
_CALLERS = tuple(str(Path(str(file)).parent) for file in (__file__, asyncio.__file__, concurrent.futures.__file__))


def error_document(error: BaseException) -> str:
    """An error as history keeps it: cleaned, bounded, as JSON text."""
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
