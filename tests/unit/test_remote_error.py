"""Errors from isolated children are told apart, kept and judged as if they had been raised here."""

from __future__ import annotations

import signal
from datetime import timedelta

import msgspec
import pytest

from mainspring.model.job import JobDefinition
from mainspring.worker.handler_errors import error_document
from mainspring.worker.isolation.remote_error import crash_of, remote_error_of
from mainspring.worker.isolation.wire import Failed

PLAIN = JobDefinition(name="job", isolated=True)
LIMITED = JobDefinition(name="job", isolated=True, memory=2**28, cpu=timedelta(seconds=90))


def test_an_echo_has_the_names_of_what_was_raised() -> None:
    names = [("shop.errors", "Outer.CardDeclined"), ("builtins", "ValueError"), ("builtins", "Exception")]

    error = remote_error_of(Failed(names, "card 7", "Traceback …", code="card-declined"))

    kinds = [(kind.__module__, kind.__qualname__) for kind in type(error).__mro__]
    assert kinds[:3] == names
    document = msgspec.json.decode(error_document(error))
    assert document == {
        "type": "Outer.CardDeclined",
        "message": "card 7",
        "traceback": "Traceback …",
        "code": "card-declined",
    }


def test_an_echo_of_a_hostile_error_is_bounded_and_clean() -> None:
    names = [("m" * 10_000, "N\x00" * 10_000)] * 1_000

    document = msgspec.json.decode(
        error_document(remote_error_of(Failed(names, "\x00" * 10**5, "t" * 10**5, code="c" * 10**5)))
    )

    assert len(document["type"]) <= 200
    assert len(document["message"]) <= 2_000
    assert len(document["traceback"]) <= 8_000
    assert len(document["code"]) <= 100
    assert "\x00" not in "".join(document.values())


@pytest.mark.parametrize(
    ("status", "definition", "said"),
    [
        (signal.SIGSEGV, PLAIN, "was ended by SIGSEGV (signal 11)."),
        (3 << 8, PLAIN, "ended with exit code 3 before the handler returned."),
        (0, PLAIN, "ended with exit code 0 before the handler returned."),
        (signal.SIGKILL, PLAIN, "We did not send it: the kernel does when memory runs out"),
        (signal.SIGXCPU, LIMITED, "It used up its processor time. Its limits: 256 MiB of memory and 90 s of processor"),
        (signal.SIGABRT, LIMITED, "SIGABRT (signal 6). Its limits: 256 MiB of memory"),
        (60, PLAIN, "was ended by signal 60."),
        (None, PLAIN, "ended together with the one that started it."),
    ],
)
def test_a_crash_says_what_the_kernel_said(status: int | None, definition: JobDefinition, said: str) -> None:
    error = crash_of(status, definition)

    assert error.code == "process-crashed"
    assert said in str(error)
