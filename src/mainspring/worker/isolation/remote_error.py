"""Errors from another process: what was raised there, told apart here as if it had been raised here."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from mainspring.errors import ProcessCrashed
from mainspring.model.limits import readable_size

if TYPE_CHECKING:
    from mainspring.model.job import JobDefinition
    from mainspring.worker.isolation.wire import Failed

MAX_NAMES = 20
MAX_NAME_LENGTH = 200


class RemoteError(Exception):
    """Was raised in an isolated child; has its names, its text and its traceback, but nothing more of it."""

    code: str | None = None
    traceback_text = ""
    is_hopeless = False  # another attempt would end like this one


def remote_error_of(failed: Failed) -> RemoteError:
    """An error whose class and base classes have the names that the original ones had: policies go by names."""
    kind: type[RemoteError] = RemoteError
    for module, name in reversed(failed.names[:MAX_NAMES]):
        names = {"__module__": module[:MAX_NAME_LENGTH], "__qualname__": name[:MAX_NAME_LENGTH]}
        kind = type(RemoteError.__name__, (kind,), names)
    error = kind(failed.message)
    error.code = failed.code
    error.traceback_text = failed.traceback
    error.is_hopeless = failed.is_hopeless
    return error


def crash_of(status: int | None, definition: JobDefinition, *, is_limited: bool = True) -> ProcessCrashed:
    """What the end of a process without a result means, by what the kernel said about it."""
    limits = _limits_of(definition) if is_limited else ""
    if status is None:
        return ProcessCrashed(f"The process of this run ended together with the one that started it.{limits}")
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        message = f"The process of this run ended with exit code {code} before the handler returned.{limits}"
        return ProcessCrashed(message, exit_code=code)
    name = _signal_name(-code)
    return ProcessCrashed(f"The process of this run was ended by {name}.{_meaning(-code)}{limits}", signal=name)


def _limits_of(definition: JobDefinition) -> str:
    limits = []
    if definition.memory is not None:
        limits.append(f"{readable_size(definition.memory)} of memory")
    if definition.cpu is not None:
        limits.append(f"{definition.cpu.total_seconds():g} s of processor time")
    return f" Its limits: {' and '.join(limits)}." if limits else ""


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _meaning(number: int) -> str:
    if number == signal.SIGXCPU:
        return " It used up its processor time."
    if number == signal.SIGKILL:
        return " We did not send it: the kernel does when memory runs out, or someone did by hand."
    return ""
