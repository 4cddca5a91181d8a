"""A worker and a child talk: the child in a thread, both ends real."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import pytest

from mainspring.errors import MainspringError
from mainspring.worker.isolation.child import ChildChannel
from mainspring.worker.isolation.process import KEPT_OUTPUT, IsolatedProcess, NoReceiver
from mainspring.worker.isolation.wire import Done, Start

if TYPE_CHECKING:
    from collections.abc import Callable

START = Start(UUID(int=1), "job", 1, 1, msgspec.Raw(b"{}"))


class Ear(NoReceiver):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def on_notice(self, kind: str, body: Any) -> None:
        self.heard.append((kind, body))

    async def on_request(self, kind: str, body: Any) -> Any:
        if kind == "refuse":
            raise MainspringError("It is no longer yours.", code="lease-lost")
        await asyncio.sleep(0)
        return body * 2


async def talk(attempt: Callable[[ChildChannel, int], None], receiver: NoReceiver) -> tuple[Any, IsolatedProcess]:
    """Let `attempt` be the child; answers with its last word, and the conversation."""
    ours, theirs = socket.socketpair()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    conversation = IsolatedProcess(1, [ours.detach(), out, err])

    def child() -> None:
        channel = ChildChannel(theirs)
        assert channel.receive() == START
        attempt(channel, out_end)
        for fd in (out_end, err_end):
            os.close(fd)
        theirs.close()

    living = asyncio.ensure_future(asyncio.to_thread(child))
    word = await conversation.execute(START, receiver)
    await living
    return word, conversation


async def test_a_child_tells_and_asks_in_order() -> None:
    receiver = Ear()

    def attempt(channel: ChildChannel, _: int) -> None:
        channel.notify("progress", 0.5)
        doubled = channel.request("double", 21)
        channel.notify("log", ["a line"])
        channel.send(Done(doubled))

    word, _ = await talk(attempt, receiver)

    assert word == Done(42)
    assert receiver.heard == [("progress", 0.5), ("log", ["a line"])]


async def test_what_is_refused_is_raised_where_it_was_asked() -> None:
    def attempt(channel: ChildChannel, _: int) -> None:
        with pytest.raises(MainspringError, match="It is no longer yours"):
            channel.request("refuse", None)
        channel.send(Done("refused"))

    assert (await talk(attempt, Ear()))[0] == Done("refused")


async def test_where_nobody_listens_nothing_can_be_asked_for() -> None:
    def attempt(channel: ChildChannel, _: int) -> None:
        with pytest.raises(MainspringError, match="does not know how to do 'double'"):
            channel.request("double", 1)
        channel.send(Done())

    assert (await talk(attempt, NoReceiver()))[0] == Done()


async def test_only_the_end_of_the_output_is_kept() -> None:
    def attempt(channel: ChildChannel, out: int) -> None:
        for number in range(200):
            os.write(out, f"{number:05}".encode() * 200)
        channel.send(Done())

    _, conversation = await talk(attempt, NoReceiver())

    assert len(conversation.tails["stdout"]) == KEPT_OUTPUT
    assert conversation.tails["stdout"].endswith(b"00199")


async def test_what_was_said_before_the_end_counts() -> None:
    """The kernel's word and the child's come by different ways, and may overtake each other."""
    ours, theirs = socket.socketpair()
    out, err = os.pipe(), os.pipe()
    conversation = IsolatedProcess(1, [ours.detach(), out[0], err[0]])
    ChildChannel(theirs).send(Done("in time"))
    conversation.ended(0)

    assert await conversation.execute(START, NoReceiver()) == Done("in time")
    theirs.close()
    os.close(out[1])
    os.close(err[1])
