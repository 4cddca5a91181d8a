"""What a supervisor makes of what its child says, and when it takes one for stuck."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from mainspring.worker.supervised import LOST, ProcessCommand, SupervisedProcess

from .hands import HandClock

if TYPE_CHECKING:
    from collections.abc import Iterator


class Child:
    """A real process that only waits, and a second end of its socket for us to speak through."""

    def __init__(self) -> None:
        self.process = SupervisedProcess(uuid4(), self._command, HandClock(), drain_seconds=1.0)

    def _command(self, worker_id: object, channel: int) -> ProcessCommand:
        self.channel = socket.socket(fileno=os.dup(channel))
        return ProcessCommand([sys.executable, "-c", "import signal; signal.pause()"], dict(os.environ))

    def says(self, words: bytes) -> None:
        self.channel.sendall(words)
        self.process.poll()


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.process.kill()
    child.process._process.wait()
    child.process._channel.close()
    child.channel.close()


def test_words_are_heard_in_one_piece_or_in_many(child: Child) -> None:
    for piece in (b"rea", b"dy\nlim", b"it 12.5\nlimit 1", b"7.25", b"\n"):
        child.says(piece)

    assert child.process.is_ready
    assert child.process.hard_limit == 17.25


def test_a_child_that_departs_has_no_more_heartbeats_and_is_not_called_lost(
    child: Child, caplog: pytest.LogCaptureFixture
) -> None:
    child.says(b"ready\n")
    assert child.process.is_to_have_heartbeats
    child.channel.sendall(b"departed\n")
    child.process.declared_lost()  # by a heartbeat that was under way

    assert not child.process.is_to_have_heartbeats
    assert not child.process.is_told_lost
    assert caplog.records == []


def test_a_child_that_did_not_depart_is_told_that_it_is_lost(child: Child, caplog: pytest.LogCaptureFixture) -> None:
    child.process.declared_lost()

    assert child.channel.recv(100) == LOST
    assert len(caplog.records) == 1


def test_a_child_past_its_hard_limit_has_a_few_looks_to_say_that_it_is_not_stuck(child: Child) -> None:
    child.says(b"limit 100.000\n")

    assert [child.process.is_stuck(now, looks=2) for now in (99, 101, 101, 101)] == [False, False, False, True]


def test_a_child_that_says_something_newer_is_not_stuck(child: Child) -> None:
    child.says(b"limit 100.000\n")
    assert not any(child.process.is_stuck(101, looks=2) for _ in range(2))
    child.says(b"limit inf\n")

    assert not any(child.process.is_stuck(1_000, looks=2) for _ in range(5))


def test_a_frozen_child_is_not_taken_for_stuck(child: Child) -> None:
    child.says(b"limit 100.000\n")
    child.process.is_frozen = True
    assert not any(child.process.is_stuck(101, looks=2) for _ in range(5))

    child.process.is_frozen = False
    assert [child.process.is_stuck(101, looks=2) for _ in range(3)] == [False, False, True]
