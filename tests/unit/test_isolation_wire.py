"""What an isolated child says is cut into frames and believed only if it is one of the messages there are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import BadFrame
from mainspring.worker.isolation.wire import (
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    Done,
    Failed,
    Frames,
    Notice,
    Reply,
    Request,
    Start,
    framed,
    from_child,
    to_child,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=5), st.lists(st.integers(1, 40), min_size=1))
def test_messages_arrive_as_they_were_sent_however_they_were_torn_apart(values: list[Any], cuts: list[int]) -> None:
    stream = b"".join(framed(Done(value)) for value in values)
    frames, heard = Frames(), []
    turn = 0
    while stream:
        cut = cuts[turn % len(cuts)]
        turn += 1
        heard += [from_child(body) for body in frames.feed(stream[:cut])]
        stream = stream[cut:]

    assert heard == [Done(value) for value in values]


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_nonsense_is_refused_or_waited_for_and_nothing_else(pieces: list[bytes]) -> None:
    frames = Frames()
    try:
        for piece in pieces:
            for body in frames.feed(piece):
                from_child(body)
    except BadFrame:
        pass


@given(JSON)
def test_json_that_is_no_message_is_refused(value: Any) -> None:
    is_message = isinstance(value, dict) and value.get("type") in ("tell", "ask", "done", "failed")
    if not is_message:
        with pytest.raises(BadFrame, match="not one of the protocol's"):
            from_child(msgspec.json.encode(value))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"type":"done","result":"\xff"}',
        b'{"type":"start"}',
        b'{"type":"ask","number":"1","kind":"x"}',
        b'{"type":"failed","names":[["a"]],"message":"","traceback":""}',
        b'{"type":"tell","kind":7}',
        b"[" * 100_000,
        b'{"type":"done","result":' + b"[" * 100_000,
    ],
)
def test_broken_messages_are_refused(body: bytes) -> None:
    with pytest.raises(BadFrame):
        from_child(body)


def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    announced = (MAX_FRAME_BYTES + 1).to_bytes(LENGTH_BYTES, "big")

    with pytest.raises(BadFrame, match="at most 1,048,576 are allowed"):
        list(Frames().feed(announced))


def test_a_message_that_does_not_fit_into_a_frame_is_not_sent() -> None:
    with pytest.raises(BadFrame, match="does not fit into a frame"):
        framed(Done("x" * MAX_FRAME_BYTES))


@pytest.mark.parametrize(
    "message",
    [
        Notice("progress", {"share": 0.4}),
        Request(1, "checkpoint", [1, 2]),
        Done(None),
        Failed([("builtins", "ValueError")], "no", "Traceback …", code="x", is_cancelled=True),
    ],
)
def test_each_message_of_a_child_survives_the_journey(message: msgspec.Struct) -> None:
    (body,) = Frames().feed(framed(message))

    assert from_child(body) == message


def test_a_payload_travels_as_it_is_stored() -> None:
    payload = msgspec.Raw(b'{"a": [1, "two"]}')
    start = Start(UUID(int=7), "job", 2, 3, payload, memory=5, cpu=1.5)

    (body,) = Frames().feed(framed(start))
    arrived = to_child(body)

    assert isinstance(arrived, Start)
    assert bytes(arrived.payload) == bytes(payload)
    assert (arrived.run_id, arrived.attempt, arrived.fence, arrived.memory) == (UUID(int=7), 2, 3, 5)
    assert to_child(next(Frames().feed(framed(Reply(1, error="no"))))) == Reply(1, error="no")
