"""The errors of handlers, as history keeps them."""

from __future__ import annotations

import msgspec
import pytest

from mainspring.worker.handler_errors import call_carrying, error_document


def handler() -> None:
    raise ValueError("no such order")


def test_a_traceback_begins_with_the_author_s_own_code() -> None:
    with pytest.raises(ValueError, match="no such order") as raised:
        call_carrying(handler)
    error = raised.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame: a worker called it

    document = msgspec.json.decode(error_document(error))

    assert (document["type"], document["message"]) == ("ValueError", "no such order")
    assert "in handler" in document["traceback"]
    assert "in call_carrying" not in document["traceback"]


def test_an_error_of_the_calling_code_itself_keeps_its_frames() -> None:
    with pytest.raises(TypeError) as raised:
        call_carrying(None)  # type: ignore[arg-type]  # on purpose
    error = raised.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next

    assert "in call_carrying" in msgspec.json.decode(error_document(error))["traceback"]
