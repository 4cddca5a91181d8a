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
from mainspring.worker.isolation.child import Line
from mainspring.worker.isolation.conversation import KEPT_OUTPUT, Conversation, Silence
from mainspring.worker.isolation.wire import Done, Start

if TYPE_CHECKING:
    from collections.abc import Callable

START = Start(UUID(int=1), "job", 1, 1, msgspec.Raw(b"{}"))


class Ear(Silence):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def told(self, kind: str, body: Any) -> None:
        self.heard.append((kind, body))

    async def asked(self, kind: str, body: Any) -> Any:
        if kind == "refuse":
            raise MainspringError("It is no longer yours.", code="lease-lost")
        await asyncio.sleep(0)
        return body * 2


async def talk(life: Callable[[Line, int], None], ear: Silence) -> tuple[Any, Conversation]:
    """Let `life` be the child; answers with its last word, and the conversation."""
    ours, theirs = socket.socketpair()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    conversation = Conversation(1, [ours.detach(), out, err])

    def child() -> None:
        line = Line(theirs)
        assert line.hear() == START
        life(line, out_end)
        for fd in (out_end, err_end):
            os.close(fd)
        theirs.close()

    living = asyncio.ensure_future(asyncio.to_thread(child))
    word = await conversation.hold(START, ear)
    await living
    return word, conversation


async def test_a_child_tells_and_asks_in_order() -> None:
    ear = Ear()

    def life(line: Line, _: int) -> None:
        line.tell("progress", 0.5)
        doubled = line.ask("double", 21)
        line.tell("log", ["a line"])
        line.say(Done(doubled))

    word, _ = await talk(life, ear)

    assert word == Done(42)
    assert ear.heard == [("progress", 0.5), ("log", ["a line"])]


async def test_what_is_refused_is_raised_where_it_was_asked() -> None:
    def life(line: Line, _: int) -> None:
        with pytest.raises(MainspringError, match="It is no longer yours"):
            line.ask("refuse", None)
        line.say(Done("refused"))

    assert (await talk(life, Ear()))[0] == Done("refused")


async def test_where_nobody_listens_nothing_can_be_asked_for() -> None:
    def life(line: Line, _: int) -> None:
        with pytest.raises(MainspringError, match="does not know how to do 'double'"):
            line.ask("double", 1)
        line.say(Done())

    assert (await talk(life, Silence()))[0] == Done()


async def test_only_the_end_of_the_output_is_kept() -> None:
    def life(line: Line, out: int) -> None:
        for number in range(200):
            os.write(out, f"{number:05}".encode() * 200)
        line.say(Done())

    _, conversation = await talk(life, Silence())

    assert len(conversation.tails["stdout"]) == KEPT_OUTPUT
    assert conversation.tails["stdout"].endswith(b"00199")


async def test_what_was_said_before_the_end_counts() -> None:
    """The kernel's word and the child's come by different ways, and may overtake each other."""
    ours, theirs = socket.socketpair()
    out, err = os.pipe(), os.pipe()
    conversation = Conversation(1, [ours.detach(), out[0], err[0]])
    Line(theirs).say(Done("in time"))
    conversation.ended(0)

    assert await conversation.hold(START, Silence()) == Done("in time")
    theirs.close()
    os.close(out[1])
    os.close(err[1])
